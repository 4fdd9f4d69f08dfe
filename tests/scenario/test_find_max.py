"""`accept --find-max` over a real process that answers three requests at once and refuses the fourth."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

PLAN = {"concurrency": [1], "requests": 20}
THREE = ("--most-at-once", "3")


def evidence(root: Path) -> dict[str, Any]:
    [path] = root.glob("acceptance/*-find-max/capacity.json")
    return dict(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.slow
def test_the_edge_is_found_and_found_again(site: Any) -> None:
    here = site(*THREE, acceptance=PLAN)
    here.up()
    here.do("start", "--quiet")
    found = here.json("accept", "--find-max", "--to", "8")
    assert (found["verdict"], found["best"], found["edge"]) == ("PASS", 3, 4)
    assert [trial["concurrency"] for trial in found["trials"]] == [1, 2, 4, 3, 4, 3]
    assert found["reason"].startswith("passes at 3 and ")
    kept = evidence(here.root)
    assert Path(found["record"]).read_bytes()
    assert [trial["metrics"]["requests"] for trial in kept["trials"]] == [124] * 6
    assert "all slots are taken" in json.dumps(kept["trials"][2]["metrics"]["errors"])
    text = here.do("accept", "--find-max", "--from", "4", "--to", "8", code=10)
    assert "fails at 4 already" in text


@pytest.mark.slow
def test_a_search_needs_an_objective_and_one_service(site: Any) -> None:
    here = site(acceptance={**PLAN, "slo": None})
    here.up()
    here.do("start", "--quiet")
    assert "no SLO to search by" in here.do("accept", "--find-max", code=17)
    assert "no service nope" in here.do("accept", "--find-max", "--service", "nope", code=17)
    found = here.json("accept", "--find-max", "--ttft-ms", "60000", "--to", "2", "--quiet")
    assert (found["best"], found["edge"]) == (2, None)
    assert here.do("accept", "--ttft-ms", "5", code=2)
    assert here.do("accept", "--find-max", "--budget", "soon", code=2)
    assert here.do("accept", "--find-max", "--from", "9", "--to", "2", code=2)


@pytest.mark.slow
def test_the_budget_ends_a_search_and_ctrl_c_keeps_what_was_measured(site: Any) -> None:
    here = site(acceptance=PLAN)
    here.up()
    here.do("start", "--quiet")
    cut = here.json("accept", "--find-max", "--budget", "1s", "--quiet", code=11)
    assert cut["verdict"] == "INCONCLUSIVE"
    assert cut["reason"] == "the budget of 1 s is used up; no level passed yet"
    Path(cut["record"]).unlink()
    Path(cut["record"]).parent.rmdir()
    command = [sys.executable, "-m", "bundler", "accept", "--find-max", "--root", str(here.root)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        until = time.monotonic() + 120
        while not list(here.root.glob("acceptance/*-find-max/capacity.json")):
            assert time.monotonic() < until, "no level was measured"
            assert process.poll() is None
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, said
    kept = evidence(here.root)
    assert kept["trials"]
    assert kept["reason"].startswith("interrupted; ")
    assert kept["verdict"] == "INCONCLUSIVE"
