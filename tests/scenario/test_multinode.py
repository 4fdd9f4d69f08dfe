"""A service over several nodes: the scripts run for real, with a stand-in for vLLM and Ray that meets as they do."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bundler.cli.app import run
from tests.fakes.site import Site

pytestmark = pytest.mark.slow

NODES = 3
AIRBUNDLE = [sys.executable, "-m", "bundler"]


@pytest.fixture
def nodes(
    site: Any, free_port: int, tmp_path: Path, capsys: Any
) -> Iterator[Callable[..., list[Site]]]:
    """Three hosts that have installed the bundle, each with its own root."""
    made: list[Site] = []

    def make(**changes: Any) -> list[Site]:
        service = {
            "name": "toy",
            "model": "toy",
            "port": free_port,
            "nodes": NODES,
            "host": "0.0.0.0",
        }
        settings = {"tensor_parallel": 2, "pipeline_parallel": NODES}
        small = site(
            engine="vllm",
            services=(service,),
            settings=settings,
            waived=("format-mismatch", "tensor-parallel"),
            **changes,
        ).small
        made.extend(Site(small, tmp_path / f"node {at}", capsys) for at in range(NODES))
        for here in made:
            here.up()
            program = here.root / "bin" / "airbundle"
            program.parent.mkdir(exist_ok=True)
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bundler "$@"\n')
            program.chmod(0o755)
        return made

    yield make
    for here in made:
        run(["stop", "--root", str(here.root)])


def written(here: Site, form: str, out: Path, port: int) -> Path:
    """The exported folder, filled in."""
    here.do("export", "--format", form, "--out", str(out))
    folder = out / "toy"
    assert sorted(path.name for path in folder.iterdir()) == ["head.sh", "nodes.env", "worker.sh"]
    for script in ("head.sh", "worker.sh"):
        subprocess.run(["sh", "-n", folder / script], check=True)
    (folder / "nodes.env").write_text(
        f"HEAD_ADDRESS=127.0.0.1\nHEAD_PORT={port}\nNCCL_SOCKET_IFNAME=lo\n"
    )
    here.do("export", "--format", form, "--out", str(out))
    assert "NCCL_SOCKET_IFNAME=lo" in (folder / "nodes.env").read_text()
    return folder


@contextmanager
def script(path: Path, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        ["sh", path, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=20)


def told(here: Site, log: str = "toy") -> dict[str, Any]:
    """What the process said of itself."""
    path = here.root / "logs" / f"{log}.log"
    for _ in range(300):
        if path.exists() and (text := path.read_text()).endswith("}\n"):
            return dict(json.loads(text.splitlines()[-1]))
        time.sleep(0.1)
    raise AssertionError(path.read_text() if path.exists() else f"no {path}")


def value(argv: list[str], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def known(here: Site) -> dict[str, Any]:
    for _ in range(300):
        if services := here.json("status")["services"]:
            return dict(services[0])
        time.sleep(0.1)
    raise AssertionError("never known")


def second_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("form", ["multinode", "ray"])
def test_the_nodes_meet_and_the_head_serves(nodes: Any, tmp_path: Path, form: str) -> None:
    head, *others = nodes(ray=form == "ray")
    port = second_port()
    folders = [
        written(here, form, tmp_path / f"out{at}", port) for at, here in enumerate((head, *others))
    ]
    key = head.root / "secrets"
    with ExitStack() as stack:
        leader = stack.enter_context(script(folders[0] / "head.sh", "--to-log"))
        followers = [
            stack.enter_context(script(folder / "worker.sh", str(rank), "--to-log"))
            for rank, folder in enumerate(folders[1:], 1)
        ]
        assert known(head)["state"] == "starting"
        # It waits until the head has answered: alone it never would.
        [state] = head.json("start", "--quiet")
        assert state["ready_after_s"] is not None
        assert leader.poll() is None
        said = told(head)
        assert said["env"]["VLLM_HOST_IP"] == "127.0.0.1"
        assert said["env"]["HF_HUB_OFFLINE"] == "1"
        assert said["env"]["NCCL_SOCKET_IFNAME"] == "lo"
        assert said["env"]["HOME"].startswith(str(head.root))
        assert said["env"]["VLLM_API_KEY"] == next(key.iterdir()).read_text().strip()
        assert value(said["argv"], "--pipeline-parallel-size") == str(NODES)
        for rank, here in enumerate(others, 1):
            one = told(here) if form == "multinode" else told(here, "toy-ray")
            assert "VLLM_API_KEY" not in one["env"]
            assert one["env"]["HF_HUB_OFFLINE"] == "1"
            assert known(here)["state"] == f"node {rank}"
            assert f"node {rank} of several" in here.do("start", code=17)
            assert not list((here.root / "secrets").glob("*"))
            if form == "multinode":
                assert one["argv"][0] == "serve"
                assert value(one["argv"], "--nnodes") == str(NODES)
                assert value(one["argv"], "--node-rank") == str(rank)
                assert value(one["argv"], "--master-port") == str(port)
            else:
                assert value(one["argv"], "--address") == f"127.0.0.1:{port}"
                assert value(one["argv"], "--num-gpus") == "2"
        if form == "ray":
            assert said["env"]["RAY_ADDRESS"] == f"127.0.0.1:{port}"
            assert value(said["argv"], "--distributed-executor-backend") == "ray"
            assert "--head" in told(head, "toy-ray")["argv"]
        leader.terminate()
        assert leader.wait(20) == 143
        for follower in followers:
            assert follower.wait(20) != 0


def test_no_key_is_in_a_file(nodes: Any, tmp_path: Path) -> None:
    head = nodes()[0]
    folder = written(head, "multinode", tmp_path / "out", 1)
    text = "".join(path.read_text() for path in folder.iterdir())
    assert "--headless" in text  # The commands are shown,
    assert "KEY" not in text  # and no key, nor the variable that takes it.


def test_what_cannot_be_is_said(nodes: Any, tmp_path: Path) -> None:
    head = nodes()[0]
    out = ("--out", str(tmp_path / "out"))
    assert "ray[cgraph]" in head.do("export", "--format", "ray", *out, code=3)
    assert "ray[cgraph]" in head.do(
        "export", "--format", "k8s", "--image", "x", "--over", "ray", *out, code=17
    )
    for form in ("systemd", "ansible"):
        assert "multinode" in head.do("export", "--format", form, *out, code=17)
    assert not (tmp_path / "out").exists()
    assert "spans 3 nodes" in head.do("start", code=17)
    fresh = Site(head.small, tmp_path / "fresh", head._capsys)
    fresh.bring()
    assert "spans 3 nodes" in fresh.do("upgrade", "--quiet", code=17)
    assert not fresh.root.joinpath("releases").exists()
    assert "spans 3 nodes" in head.do("run", "toy", code=17)
    seat = ("run", "toy", "--over", "native", "--head")
    assert "no node 3" in head.do(*seat, "127.0.0.1", "--node", "3", code=17)
    assert "no address" in head.do(*seat, "-x;y", code=17)
    assert "no way to it" in head.do(*seat, "no.such.host.invalid", code=14)
    folder = tmp_path / "late"
    head.do("export", "--format", "multinode", "--out", str(folder))
    for words in (["head.sh"], ["worker.sh", "1"], ["worker.sh"], ["worker.sh", "x"]):
        done = subprocess.run(["sh", *words], cwd=folder / "toy", capture_output=True, text=True)
        assert done.returncode == 64
        assert "HEAD_ADDRESS is empty" in done.stderr


def test_a_service_on_one_node_needs_no_such_scripts(site: Any, tmp_path: Path) -> None:
    here = site()
    here.up()
    said = here.do("export", "--format", "multinode", "--out", str(tmp_path / "out"), code=17)
    assert "services[].nodes" in said
    assert "no node 1" in here.do(
        "run", "toy", "--over", "native", "--node", "1", "--head", "127.0.0.1", code=17
    )


@pytest.mark.index
@pytest.mark.slow
def test_ray_itself_makes_a_cluster_of_the_nodes(nodes: Any, tmp_path: Path) -> None:
    """Real Ray in the place of the stand-in: what we start are two nodes of one cluster, with their GPUs."""
    head, worker, _ = nodes(ray=True)
    venv = tmp_path / "ray"
    for words in (
        ["venv", "-q", "--python", sys.executable, venv],
        ["pip", "install", "-q", "--python", venv, "ray"],
    ):
        subprocess.run([sys.executable, "-m", "uv", *words], check=True, timeout=300)
    port, place = second_port(), Path(tempfile.mkdtemp(prefix="ray"))
    ray = f'RAY_TMPDIR={place} exec "{venv}/bin/ray" "$@"'
    for here in (head, worker):
        program = here.root / "current" / "venv" / "bin" / "ray"
        program.unlink()
        program.write_text(f"#!/bin/sh\nexport {ray.replace(' exec ', '; exec ', 1)}\n")
        program.chmod(0o755)
    node = [
        *AIRBUNDLE,
        "run",
        "toy",
        "--over",
        "ray-node",
        "--head",
        "127.0.0.1",
        "--head-port",
        str(port),
    ]

    def status() -> str:
        return subprocess.run(
            ["sh", "-c", f"export RAY_TMPDIR={place}; '{venv}/bin/ray' status --address 127.0.0.1:{port}"],
            capture_output=True, text=True, timeout=60,
        ).stdout  # fmt: skip

    began: list[subprocess.Popen[bytes]] = []
    try:
        for rank, here in enumerate((head, worker)):
            words = [*node, "--node", str(rank), "--root", str(here.root), "--to-log"]
            began.append(subprocess.Popen(words, start_new_session=True))
            for _ in range(120):
                said = status()
                if len(re.findall(r"^ *1 node_", said, re.MULTILINE)) > rank:
                    break
                assert began[rank].poll() is None, (here.root / "logs" / "toy-ray.log").read_text()
                time.sleep(1)
        assert "/4.0 GPU" in said, said
    finally:
        for process in reversed(began):
            process.terminate()
        for process in reversed(began):
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)
        shutil.rmtree(place, ignore_errors=True)
