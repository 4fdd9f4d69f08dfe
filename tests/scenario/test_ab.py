"""`accept --ab` through the command line: real processes, started anew for each run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SMALL = {"concurrency": [1, 4], "requests": 20, "output_tokens": 8}
pytestmark = pytest.mark.slow


def nothing_runs(here: Any) -> bool:
    return here.json("status")["services"] == []


def test_the_faster_setting_is_the_one_to_keep(site: Any) -> None:
    here = site(acceptance=SMALL)
    here.up()
    words = ("accept", "--ab", "env.TOY_TOKEN_S=0.05,0.01", "--pairs", "2", "--quiet")
    found = here.json(*words)
    assert (found["keep"], found["decided"]) == ("B", True)
    assert "keep env.TOY_TOKEN_S=0.01" in found["said"]
    assert [run["arm"] for run in found["runs"]] == ["A", "B", "B", "A"]
    by_figure = {one["figure"]: one for one in found["comparisons"]}
    assert 2.5 < by_figure["all@4 output_tokens_per_s"]["ratio"] < 6
    assert by_figure["toy@4 tpot_ms_p50"]["wins"] == "B"
    assert nothing_runs(here)
    said = here.do("audit", "show")
    assert "accept --ab" in said


def test_the_same_in_two_spellings_is_no_difference(site: Any) -> None:
    here = site(acceptance=SMALL)
    here.up()
    said = here.do("accept", "--ab", "env.TOY_TOKEN_S=0.01,0.010", "--pairs", "2")
    assert "no difference: keep what you have" in said


def test_an_arm_that_does_not_get_what_it_asked_for_is_void(site: Any) -> None:
    here = site("--ignores-kv", acceptance=SMALL)
    here.up()
    said = here.do("accept", "--ab", "kv_cache_dtype=f16,q8_0", "--pairs", "2", code=11)
    assert "undecided: kv_cache_dtype=q8_0 (pair 1)" in said
    assert "runs f16" in said
    assert nothing_runs(here)


def test_an_arm_that_does_not_start_is_void_and_ends_the_comparison(site: Any) -> None:
    here = site(acceptance=SMALL)
    here.up()
    found = here.json(
        "accept", "--ab", "env.TOY_TOKEN_S=0.01,never", "--pairs", "2", "--quiet", code=11
    )
    assert found["keep"] is None
    assert len(found["runs"]) == 2
    assert "no request at 1 users was answered" in found["said"]
    assert nothing_runs(here)


@pytest.mark.parametrize(
    ("ab", "words"),
    [
        ("kernel", "wants KEY=A,B"),
        ("kernel=a,a", "wants KEY=A,B"),
        ("kernal=auto,triton", "the nearest is kernel"),
        ("kernel=auto,triton", "llama.cpp"),
        ("max_model_len=4096,lots", "max_model_len=lots"),
        ("services=toy,other", "other: is no service"),
    ],
)
def test_what_cannot_be_compared_is_said_before_anything_starts(
    site: Any, ab: str, words: str
) -> None:
    here = site(acceptance=SMALL)
    here.up()
    assert words in here.do("accept", "--ab", ab, "--quiet", code=3)
    assert not list((here.root / "acceptance").glob("*-ab"))


def test_what_serves_is_not_stopped_for_a_comparison(site: Any) -> None:
    here = site(acceptance=SMALL)
    here.up()
    here.do("start", "--quiet")
    assert "Stop it first" in here.do("accept", "--ab", "max_num_seqs=1,2", code=17)
    assert here.json("status")["services"][0]["state"] == "ready"


def test_an_interrupted_comparison_keeps_its_runs_and_leaves_no_engine(site: Any) -> None:
    here = site(acceptance=SMALL)
    here.up()
    argv = [sys.executable, "-m", "bundler", "accept", "--ab", "env.TOY_TOKEN_S=0.05,0.01",
            "--root", str(here.root), "--quiet"]  # fmt: skip
    begun = subprocess.Popen(argv, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, env=os.environ.copy())  # fmt: skip
    try:
        for _ in range(600):
            records = list((here.root / "acceptance").glob("*-ab/ab.json"))
            if records and json.loads(records[0].read_text())["runs"]:
                break
            time.sleep(0.1)
        begun.send_signal(signal.SIGINT)
        assert begun.wait(60) == 130
    finally:
        begun.kill()
        begun.wait()
    [path] = (here.root / "acceptance").glob("*-ab/ab.json")
    kept = json.loads(path.read_text())
    assert kept["runs"]
    assert kept["decided"] is False
    assert nothing_runs(here)
