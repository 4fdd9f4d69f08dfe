"""`accept --ab` through the command line: real processes, started anew for each run."""

import json
import os
import signal
import socket
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


BOTH = {"concurrency": [1, 4], "requests": 16, "output_tokens": 4, "slo": None, "correctness": []}


def two_small(port: int, other: int, token_s: tuple[str, str]) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"name": name, "model": "toy", "port": at, "settings": {"env": {"TOY_TOKEN_S": seconds}}}
        for name, at, seconds in zip(("one", "two"), (port, other), token_s, strict=True)
    )


def test_two_services_are_loaded_at_the_same_time_and_two_releases_compared(
    site: Any, free_port: int
) -> None:
    big = site(acceptance=BOTH, settings={"env": {"TOY_TOKEN_S": "0.15"}})
    big.up()
    small = site(
        acceptance=BOTH,
        bundle_name="pair",
        services=two_small(free_port, spare_port(), ("0.02", "0.03")),
    )
    small.bring()
    small.do("install", "--quiet")
    uses = {one["use"]: one["release"] for one in small.json("releases")["releases"]}
    ids = [uses["previous"], uses["current"]]
    small.do("rollback", "--quiet")
    words = ("accept", "--ab", f"release={ids[0]},{ids[1]}", "--pairs", "2", "--quiet")
    found = small.json(*words)
    assert [arm["release"] for arm in found["arms"]] == ids
    assert (found["keep"], found["primary"]) == ("B", "all@4 output_tokens_per_s")
    figures = found["runs"][1]["figures"]
    assert {name.split()[0] for name in figures} == {"one@2", "two@2", "all@4"}
    rates = [figures[f"{name}@2 output_tokens_per_s"] for name in ("one", "two")]
    assert figures["all@4 output_tokens_per_s"] == pytest.approx(sum(rates))
    assert figures["all@4 ttft_ms_p95"] == max(
        figures[f"{name}@2 ttft_ms_p95"] for name in ("one", "two")
    )
    # One user cannot be split over two services, and what only one arm has is not compared.
    assert {one["figure"].split()[0] for one in found["comparisons"]} == {"all@4"}
    # A busy machine's runs may not be comparable; then nothing is applied.
    sound = all(run["verdict"] != "NOT COMPARABLE" for run in found["runs"])
    apply = ("accept", "--ab-record", found["record"], "--apply")
    applied = small.json(*apply, code=0 if sound else 11)["applied"]
    assert applied == ({"release": ids[1], "new": True} if sound else None)
    small.do("install", ids[1], "--quiet")
    assert nothing_runs(small)
    assert "is no service" in small.do("accept", "--ab", "services=one,three", code=3)
    found = small.json("accept", "--ab", "services=one,one+two", "--pairs", "2", "--quiet")
    assert set(found["runs"][0]["figures"]) >= {"one@4 ttft_ms_p95", "all@4 ttft_ms_p95"}


def spare_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
