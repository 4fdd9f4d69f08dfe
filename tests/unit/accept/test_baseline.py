"""Runs to profiles, and two side by side."""

from __future__ import annotations

import pytest

from bundler.accept.baseline import compare, profiles_from, side_of_profiles, side_of_record
from bundler.domain.facts import AcceptanceRecord
from bundler.domain.spec import Acceptance
from bundler.domain.verdict import Verdict
from bundler.errors import StateError
from bundler.format.profiles import parse_profiles, profile_bytes
from tests.unit.accept.fake_chat import Behaviour
from tests.unit.accept.known import run


def runs(count: int) -> list[AcceptanceRecord]:
    """Runs whose tokens come 9.5 ms to 10.5 ms apart."""
    return [
        run(gap_s=0.0095 + 0.001 * number / max(1, count - 1), began=f"2026-01-{number + 1:02}")
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def ten() -> list[AcceptanceRecord]:
    return runs(10)


def test_ten_runs_make_a_profile_that_their_like_passes_and_a_slow_one_fails(
    ten: list[AcceptanceRecord],
) -> None:
    profiles, left_out = profiles_from(ten)
    assert left_out == ()
    [known] = parse_profiles(profile_bytes(profiles), "written")
    assert (known,) == profiles
    assert known.kind == "measured"
    assert known.name == "Qwen3-30B-A3B-FP8 on NVIDIA H200"
    assert known.source == "airbundle accept: 10 runs, 2026-01-01 to 2026-01-10"
    assert {len(figure.runs) for figure in known.figures} == {10}
    like, slow = run(profiles=profiles), run(gap_s=0.015, profiles=profiles)
    assert like.verdict is Verdict.PASS
    assert {c.outcome for c in like.comparisons} == {"within"}
    assert "tolerance interval 95/95 of 10 runs" in {c.basis for c in like.comparisons}
    assert slow.verdict is Verdict.FAIL


def test_runs_of_different_set_ups_make_no_profile() -> None:
    other = run(moe=("deepgemm",), began="later")
    with pytest.raises(StateError, match="differ in kernel: triton / deepgemm"):
        profiles_from([run(moe=("triton",)), other])
    with pytest.raises(StateError, match="given twice"):
        profiles_from([run(), run()])
    with pytest.raises(StateError, match="no run"):
        profiles_from([])
    old = run().model_copy(update={"fingerprints": {}})
    with pytest.raises(StateError, match="does not say what it was of"):
        profiles_from([old])


def test_a_level_in_doubt_is_left_out_and_said() -> None:
    short = run(behaviour=Behaviour(output_tokens=7), began="later")
    profiles, left_out = profiles_from([run(), short])
    assert {len(figure.runs) for figure in profiles[0].figures} == {1}
    assert left_out[0].startswith("later, chat x1: ")
    assert "output tokens" in left_out[0]
    with pytest.raises(StateError, match="without a doubt"):
        profiles_from([short])


def test_two_runs_side_by_side() -> None:
    fast, slow = run(moe=("triton",)), run(moe=("deepgemm",), gap_s=0.02)
    [pair] = compare(side_of_record(fast, "a"), side_of_record(slow, "b"))
    assert pair.differs == ("kernel: triton / deepgemm",)
    rows = {row.metric: row for row in pair.rows}
    assert rows["tpot_ms_p50"].ratio == pytest.approx(2)
    assert rows["tpot_ms_p50"].outcome == "worse"
    assert rows["output_tokens_per_s"].outcome == "worse"
    assert rows["ttft_ms_p50"].outcome == "within"
    [back] = compare(side_of_record(slow, "b"), side_of_record(fast, "a"))
    assert {row.metric: row.outcome for row in back.rows}["tpot_ms_p50"] == "better"


def test_a_run_beside_a_profile_of_ten_is_judged_by_their_spread(
    ten: list[AcceptanceRecord],
) -> None:
    profiles, _ = profiles_from(ten)
    [pair] = compare(side_of_profiles(profiles, "p"), side_of_record(run(gap_s=0.012), "r"))
    rows = {row.metric: row for row in pair.rows}
    # 20 % slower is within the default of 30 %, and beyond what ten runs showed.
    assert rows["tpot_ms_p50"].outcome == "worse"
    assert rows["tpot_ms_p50"].basis.startswith("tolerance interval")


def test_what_has_nothing_in_common_is_not_compared() -> None:
    other = run(plan=Acceptance(concurrency=(2,), requests=60))
    with pytest.raises(StateError, match="no figure in common"):
        compare(side_of_record(run(), "a"), side_of_record(other, "b"))
