from __future__ import annotations

from collections.abc import Sequence

import pytest

from bundler.accept.judge import judge, metric_value, sample_key
from bundler.domain.facts import LevelMetrics, RequestSample
from bundler.domain.spec import Acceptance, Expected, Slo
from bundler.domain.verdict import Check, Verdict, overall
from tests.unit.accept.levels import failed, level, sample

PASS, FAIL, HOLD = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE
NOT_COMPARABLE = Verdict.NOT_COMPARABLE
TTFT = Slo(ttft_ms=200)
Level = tuple[LevelMetrics, Sequence[RequestSample]]


def judged(
    *levels: Level, slo: Slo | None = None, expected: Sequence[Expected] = ()
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    plan = Acceptance(
        concurrency=tuple(metrics.concurrency for metrics, _ in levels),
        slo=slo,
        expected=tuple(expected),
    )
    samples = {sample_key(m.service, m.concurrency): tuple(s) for m, s in levels}
    return judge(plan, [metrics for metrics, _ in levels], samples)


def only(what: str, checks: Sequence[Check]) -> Check:
    (found,) = [check for check in checks if what in check.what]
    return found


def test_without_slo_and_ranges_every_request_must_succeed() -> None:
    good, _ = judged(level(sample(), sample()))
    bad, _ = judged(level(sample(), failed("HTTP 500: boom")))
    assert [check.verdict for check in good] == [PASS]
    assert [(c.verdict, c.measured, c.reason) for c in bad] == [
        (FAIL, "1 of 2", "1 failed: HTTP 500: boom")
    ]


def test_a_level_without_an_answer_fails_whatever_the_plan() -> None:
    checks, _ = judged(level(failed(), failed()), slo=TTFT)
    assert only("answered", checks).verdict is FAIL
    assert "Connection refused" in only("answered", checks).reason


def test_what_requests_met_is_told_before_what_was_not_sent() -> None:
    unsent = failed("not sent after 4 failures in a row: HTTP 500: boom")
    metrics, runs = level(failed("HTTP 500: boom"), unsent, unsent)
    checks, _ = judged((metrics, runs))
    assert checks[0].reason == "every request failed: HTTP 500: boom"
    assert metrics.errors == {"HTTP 500: boom": 1, unsent.error: 2}
    alone, _ = judged(level(unsent))
    assert alone[0].reason == f"every request failed: {unsent.error}"


def test_answers_without_output_tokens_fail() -> None:
    checks, _ = judged(level(*[sample(output_tokens=0, tpot_ms=None)] * 3))
    assert [(c.verdict, c.reason) for c in checks] == [(FAIL, "the answers held no output tokens")]


@pytest.mark.parametrize(
    ("good", "bad", "verdict"),
    [(59, 0, PASS), (58, 0, HOLD), (92, 1, PASS), (91, 1, HOLD), (50, 10, FAIL), (0, 60, FAIL)],
)
def test_the_slo_is_judged_by_exact_bounds(good: int, bad: int, verdict: Verdict) -> None:
    slow = [sample(ttft_ms=201)] * bad
    checks, _ = judged(level(*[sample()] * good, *slow), slo=TTFT)
    assert only("SLO", checks).verdict is verdict


def test_a_failed_request_counts_against_the_slo() -> None:
    checks, _ = judged(level(*[sample()] * 50, *[failed()] * 10), slo=TTFT)
    check = only("SLO", checks)
    assert check.verdict is FAIL
    assert check.measured.startswith("50 of 60 good (83.3 %)")
    assert check.reason == "missed: failed 10"
    assert only("answered", checks).verdict is PASS


def test_an_undecided_slo_says_how_many_more_requests_are_needed() -> None:
    checks, _ = judged(level(*[sample()] * 58, sample(ttft_ms=300)), slo=TTFT)
    assert only("SLO", checks).reason == (
        "too few requests to tell: 34 more are needed if none of them fails"
        " (acceptance.requests: 93); about 127 in all at this rate; missed: TTFT 1"
    )


def test_a_request_must_meet_every_limit() -> None:
    slo = Slo(ttft_ms=200, tpot_ms=20, e2e_ms=500)
    slow = [sample(tpot_ms=30)] * 10 + [sample(e2e_ms=900)] * 10
    checks, _ = judged(level(*[sample()] * 40, *slow), slo=slo)
    check = only("SLO", checks)
    assert check.what == "SLO: TTFT <= 200 ms, TPOT <= 20 ms, E2E <= 500 ms for 95 %"
    assert (check.verdict, check.reason) == (FAIL, "missed: TPOT 10, E2E 10")


def test_an_slo_without_limits_asks_for_answers() -> None:
    checks, _ = judged(level(*[sample()] * 59), slo=Slo())
    assert only("SLO", checks).what == "SLO: answered for 95 %"
    assert only("SLO", checks).verdict is PASS


@pytest.mark.parametrize(
    ("low", "high", "verdict", "reason"),
    [
        (50, None, PASS, "source: lab"),
        (100, None, FAIL, "below 100 (source: lab)"),
        (None, 100, PASS, "source: lab"),
        (None, 50, FAIL, "above 50 (source: lab)"),
        (70, 80, PASS, "source: lab"),
    ],
)
def test_a_figure_outside_its_range_fails_on_the_side_that_is_given(
    low: float | None, high: float | None, verdict: Verdict, reason: str
) -> None:
    wanted = Expected(concurrency=1, metric="output_tokens_per_s", min=low, max=high, source="lab")
    checks, _ = judged(level(*[sample()] * 10), expected=[wanted])  # 32 tokens in 0.41 s: 78.05/s
    check = only("expected", checks)
    assert (check.verdict, check.reason, check.measured) == (verdict, reason, "78.05")


def test_a_range_is_for_its_level_and_service_only() -> None:
    wanted = [
        Expected(concurrency=2, metric="ttft_ms_p95", max=50),
        Expected(concurrency=1, metric="ttft_ms_p95", max=50, service="other"),
    ]
    checks, _ = judged(level(sample()), level(sample(), sample(), concurrency=2), expected=wanted)
    assert [(c.concurrency, c.verdict) for c in checks] == [(1, PASS), (2, PASS), (2, FAIL)]


def test_failures_are_not_excused_by_a_range_of_another_figure() -> None:
    fast = Expected(concurrency=1, metric="output_tokens_per_s", min=1)
    share = Expected(concurrency=1, metric="success_rate", min=0.5)
    strict, _ = judged(level(sample(), failed()), expected=[fast])
    lenient, _ = judged(level(sample(), failed()), expected=[share])
    assert only("answered", strict).verdict is FAIL
    assert overall(lenient) is PASS


def test_answers_without_usage_decide_nothing() -> None:
    uncounted = [sample(input_tokens=0, output_tokens=0, tpot_ms=None)] * 60
    checks, _ = judged(level(*uncounted), slo=TTFT)
    assert {c.verdict for c in checks} == {NOT_COMPARABLE}
    assert {c.reason for c in checks} == {"60 of 60 answers came without token counts (usage)"}


def test_answers_of_another_length_decide_nothing() -> None:
    short = [sample(output_tokens=7)] * 5
    checks, _ = judged(level(*[sample()] * 55, *short), slo=TTFT)
    assert {c.verdict for c in checks} == {NOT_COMPARABLE}
    assert checks[0].reason == (
        "5 of 60 answers were not of 32 output tokens (7 to 7): the engine does not honour ignore_eos"
    )


def test_too_little_load_decides_nothing_and_says_how_many_requests_would() -> None:
    measured = level(*[sample()] * 20, concurrency=8, duration_s=20 * 0.41 / 6)
    checks, _ = judged(measured)
    assert checks[0].verdict is NOT_COMPARABLE
    assert checks[0].reason == (
        "only 6.0 of 8 requests were in flight on average; raise acceptance.requests to 40"
    )


def test_limits_missed_under_less_load_than_asked_for_stay_missed() -> None:
    slow = level(*[sample(ttft_ms=900)] * 60, concurrency=8, duration_s=60 * 0.41 / 4)
    wanted = Expected(concurrency=8, metric="output_tokens_per_s", min=10_000)
    checks, _ = judged(slow, slo=TTFT, expected=[wanted])
    assert only("SLO", checks).verdict is FAIL
    assert only("expected", checks).verdict is NOT_COMPARABLE


def test_load_within_a_fifth_of_the_level_is_enough() -> None:
    checks, _ = judged(level(*[sample()] * 60, concurrency=8, duration_s=60 * 0.41 / 6.5))
    assert checks[0].verdict is PASS


def test_a_doubtful_level_leaves_the_others_alone() -> None:
    checks, _ = judged(level(sample(output_tokens=3)), level(sample(), sample(), concurrency=2))
    assert [c.verdict for c in checks] == [NOT_COMPARABLE, PASS]


def test_warnings_name_what_a_reader_should_know() -> None:
    pieces = [sample(itl_ms=(), input_tokens=120)] * 3
    _, warnings = judged(level(*pieces, failed("boom")))
    assert warnings == (
        "chat, concurrency 1: 3 requests say nothing of p99, which needs 299",
        "chat, concurrency 1: 1 of 4 requests failed: boom",
        "chat, concurrency 1: prompts had 120 tokens at the median, 64 were asked for",
        "chat, concurrency 1: answers came in one piece; TPOT and ITL say nothing there",
    )


def test_every_metric_of_the_spec_has_a_figure() -> None:
    metrics, _ = level(sample())
    names = Expected.model_fields["metric"].annotation.__args__  # type: ignore[union-attr]
    assert all(metric_value(metrics, name) is not None for name in names)
