"""`run` and the units that call it: a real process that other commands know, units that systemd itself accepts."""

import configparser
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.site import gone
from tests.scenario.test_services import ask, environment

pytestmark = pytest.mark.slow

AIRBUNDLE = [sys.executable, "-m", "bundler"]


@contextmanager
def running(here: Any, *words: str) -> "Iterator[subprocess.Popen[bytes]]":
    argv = [*AIRBUNDLE, "run", "toy", "--root", str(here.root), *words]
    pipe = subprocess.PIPE
    engine = subprocess.Popen(argv, start_new_session=True, stdout=pipe, stderr=pipe)
    try:
        yield engine
    finally:
        engine.kill()
        engine.communicate(timeout=10)


def known(here: Any, engine: "subprocess.Popen[bytes]") -> None:
    """Wait until other commands know of it."""
    for _ in range(100):
        if here.json("status")["services"]:
            return
        assert engine.poll() is None, engine.communicate()
        time.sleep(0.1)
    raise AssertionError("never known")


def test_a_service_that_a_supervisor_runs_is_known_to_the_other_commands(site: Any) -> None:
    here = site()
    here.up()
    with running(here, "--to-log") as engine:
        # Waits for it until it has answered, and starts no other.
        known(here, engine)
        [state] = here.json("start", "--quiet")
        assert state["pid"] == engine.pid
        assert ask(state["url"]) == 200
        assert "toy engine" in here.do("logs")
        assert here.json("kernels")[0]["running"]["kv_dtype"] == ["f16"]
        assert here.json("accept", "--quiet")["verdict"] == "PASS"
        again = subprocess.run(
            [*AIRBUNDLE, "run", "toy", "--root", str(here.root)], capture_output=True
        )
        assert again.returncode == 17
        assert b"runs already" in again.stderr
        here.do("stop")
        assert engine.wait(10) == -signal.SIGTERM
        assert gone(engine.pid)


def test_a_supervisors_sigterm_ends_it_and_the_next_start_is_free(site: Any) -> None:
    here = site()
    here.up()
    with running(here, "--to-log") as engine:
        known(here, engine)
        engine.terminate()
        engine.wait(10)
    with running(here) as engine:
        assert engine.stdout
        assert b"toy engine" in engine.stdout.readline()
        engine.terminate()


def test_a_supervisor_may_hand_out_the_gpus(site: Any, free_port: int) -> None:
    service = {"name": "toy", "model": "toy", "port": free_port, "gpus": [3]}
    here = site(services=(service,))
    here.up()
    for words, gpus in (((), "3"), (("--any-gpu",), None)):
        with running(here, *words) as engine:
            known(here, engine)
            here.json("start", "--quiet")
            assert environment(engine.pid).get("CUDA_VISIBLE_DEVICES") == gpus
            here.do("stop")


def test_run_refuses_what_is_not_there(site: Any) -> None:
    here = site()
    here.up()
    assert "no service of small" in here.do("run", "nope", code=17)


@pytest.mark.parametrize("words", [(), ("--user",)])
def test_units_are_what_systemd_takes(site: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    here = site()
    here.up()
    out = tmp_path / "units"
    written = here.json("export", "--format", "systemd", "--out", str(out), *words)["files"]
    unit = out / "airbundle-toy.service"
    assert sorted(written) == sorted([str(unit), str(here.root / "etc" / "toy.env")])
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    command = shlex.split(parser["Service"]["ExecStart"])
    assert command[1:] == ["run", "toy", "--to-log", "--root", str(here.root)]
    assert ("User" in parser["Service"]) == (not words)
    # The operator's own lines are not overwritten.
    (here.root / "etc" / "toy.env").write_text("NCCL_DEBUG=INFO\n")
    here.do("export", "--format", "systemd", "--out", str(out), *words)
    assert (here.root / "etc" / "toy.env").read_text() == "NCCL_DEBUG=INFO\n"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
@pytest.mark.parametrize("words", [(), ("--user",)])
def test_systemd_itself_finds_nothing_wrong(
    site: Any, tmp_path: Path, words: tuple[str, ...]
) -> None:
    here = site()
    here.up()
    here.do("export", "--format", "systemd", "--out", str(tmp_path / "units"), *words)
    program = here.root / "bin" / "airbundle"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "units" / "airbundle-toy.service"
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True
    )
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    assert said == [], done.stderr
    if not words:
        judged = subprocess.run(
            ["systemd-analyze", "security", "--offline=true", "--json=short", unit],
            capture_output=True, text=True,
        )  # fmt: skip
        if judged.returncode == 0 and judged.stdout.startswith("["):
            exposed = {item["json_field"] for item in json.loads(judged.stdout) if not item["set"]}
            assert not exposed & {"NoNewPrivileges", "ProtectSystem", "PrivateTmp", "ProtectHome"}
