"""The line about a load that is running, in a log and on a terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bundler.cli import console
from bundler.cli.console import PlainProgress, SilentProgress
from bundler.cli.loadfigures import LoadFigures
from bundler.domain.facts import RequestSample
from bundler.domain.telemetry import EngineObservation
from bundler.instruments import LoadView

ANSWER = RequestSample(ok=True, started_s=0, ttft_ms=120, e2e_ms=900, output_tokens=128)
FAILURE = RequestSample(ok=False, started_s=0, e2e_ms=9, error="boom")


def engine(t_s: float, tokens: float | None = None, service: str = "chat") -> EngineObservation:
    return EngineObservation(
        t_s=t_s, service=service, kv_usage=0.34, running=8, waiting=2, generation_tokens=tokens
    )


def test_it_says_how_the_load_is_now_and_forgets_the_warm_up() -> None:
    now = LoadFigures()
    now.begin("chat x8")
    assert now.words() == ""
    now.answered(ANSWER.model_copy(update={"ttft_ms": 9999.0}))
    assert now.words().startswith("warm-up: TTFT p50/p95 9,999/9,999 ms")
    now.measuring()
    assert now.words() == ""
    for at in range(100):
        now.answered(ANSWER.model_copy(update={"ttft_ms": 100.0 + at}))
    now.answered(FAILURE)
    assert now.words().startswith("measured: TTFT p50/p95 149/194 ms, ")
    assert now.words().endswith("tok/s now, 1 failed")


def test_the_engines_own_counter_gives_the_rate_where_it_has_one() -> None:
    now = LoadFigures()
    now.begin("chat x8")
    now.seen(engine(1, 1000))
    now.seen(engine(3, 1500))
    now.seen(engine(4, 9999, service="another"))
    assert now.words() == "warm-up: 250 tok/s now, engine: 8 running, 2 waiting, KV 34 %"
    now.seen(engine(5, 3))  # restarted: its counter fell
    assert now.words() == "warm-up: engine: 8 running, 2 waiting, KV 34 %"
    now.begin("another x1")
    assert now.words() == ""


def test_a_log_has_it_in_its_lines_and_quiet_has_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "PLAIN_EVERY_S", 0.0)
    shown = PlainProgress()
    assert isinstance(shown, LoadView)
    with shown.task("chat x8", 80, "requests") as task:
        shown.answered(ANSWER)
        task.advance(1)
    with shown.task("copy", 80) as task:
        task.advance(1)
    lines = capsys.readouterr().err.splitlines()
    assert "chat x8: 1 of 80 requests, " in lines[0]
    assert "; warm-up: TTFT p50/p95 120/120 ms, " in lines[0]
    assert not any("TTFT" in line for line in lines if line.startswith("copy"))
    assert not isinstance(SilentProgress(), LoadView)


@pytest.mark.slow
def test_a_terminal_shows_it_below_the_bar() -> None:
    code = (
        "from tests.unit.cli.test_loadfigures import ANSWER, engine\n"
        "from bundler.cli.console import progress\n"
        "shown = progress()\n"
        "with shown.task('chat x8', 80, 'requests') as task:\n"
        "    shown.measuring(); shown.answered(ANSWER); shown.seen(engine(1)); task.advance(1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        env={**os.environ, "FORCE_COLOR": "1", "COLUMNS": "160"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1/80" in done.stderr
    assert "measured: TTFT p50/p95 120/120 ms" in done.stderr
    assert "engine: 8 running, 2 waiting, KV 34 %" in done.stderr


def test_a_bar_of_a_load_is_drawn_no_more_than_four_times_a_second() -> None:
    from bundler.cli.drawing import _Load

    assert _Load(LoadFigures()).live.refresh_per_second <= 4
