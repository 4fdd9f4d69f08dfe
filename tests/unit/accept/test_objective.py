"""How often the verdict errs, on populations whose truth is known."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from itertools import accumulate

import pytest

from bundler.accept.load import UNSENT
from bundler.accept.objective import (
    assess,
    design_effect,
    judge_objective,
    requests_to_tell,
)
from bundler.accept.statistics import P99_NEEDS, requests_needed
from bundler.domain.spec import Slo
from bundler.domain.verdict import Verdict
from tests.unit.accept.levels import failed, level, sample

TARGET = 0.95
TRIALS = 2000
SIZES = (30, 100, 300)
PASS, FAIL, HOLD = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE


def terms(number: int, share: float) -> list[float]:
    return [
        math.comb(number, k) * share**k * (1 - share) ** (number - k) for k in range(number + 1)
    ]


def verdicts(number: int) -> list[Verdict]:
    return [assess(good, number, TARGET).verdict for good in range(number + 1)]


def simulated(number: int, share: float) -> Counter[Verdict]:
    """Verdicts of 2,000 runs of so many requests, each good with chance `share`."""
    chance = random.Random(f"{number}/{share}")
    below = list(accumulate(terms(number, share)))
    told = verdicts(number)
    return Counter(told[min(number, bisect_left(below, chance.random()))] for _ in range(TRIALS))


@pytest.mark.parametrize("number", SIZES)
@pytest.mark.parametrize("share", [0.90, 0.93, 0.945, 0.9499])
def test_a_service_below_the_target_passes_at_most_one_time_in_twenty(
    number: int, share: float
) -> None:
    assert simulated(number, share)[PASS] <= 0.05 * TRIALS


@pytest.mark.parametrize("number", SIZES)
@pytest.mark.parametrize("share", [0.95, 0.955, 0.97, 0.99])
def test_a_service_at_or_above_the_target_fails_at_most_one_time_in_twenty(
    number: int, share: float
) -> None:
    assert simulated(number, share)[FAIL] <= 0.05 * TRIALS


@pytest.mark.parametrize("number", [*SIZES, 59, 93, 1000])
def test_the_exact_risk_at_the_target_itself_is_at_most_five_in_a_hundred(number: int) -> None:
    told = verdicts(number)
    chances = terms(number, TARGET)
    for verdict in (PASS, FAIL):
        risk = math.fsum(c for v, c in zip(told, chances, strict=True) if v is verdict)
        assert risk <= 0.05 + 1e-12


def test_what_is_far_from_the_target_is_told_and_what_is_near_is_not() -> None:
    assert simulated(300, 0.999)[PASS] > 0.95 * TRIALS
    assert simulated(300, 0.85)[FAIL] > 0.95 * TRIALS
    assert simulated(300, 0.95)[HOLD] > 0.9 * TRIALS
    assert simulated(30, 1.0) == {HOLD: TRIALS}


def waves(chance: random.Random, count: int, size: int, share: float, tie: float) -> list[bool]:
    """Requests whose wave shares a beta-distributed chance; `tie` is their correlation in a wave."""
    scale = (1 - tie) / tie
    good: list[bool] = []
    for _ in range(count):
        luck = chance.betavariate(share * scale, (1 - share) * scale)
        good += [chance.random() < luck for _ in range(size)]
    return good


def tied(
    size: int, share: float, tie: float, design: Callable[[list[bool], int], float]
) -> Counter[Verdict]:
    chance = random.Random(f"{size}/{share}/{tie}")
    found: Counter[Verdict] = Counter()
    for _ in range(TRIALS):
        good = waves(chance, 300 // size, size, share, tie)
        found[assess(sum(good), len(good), TARGET, design(good, size)).verdict] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 25])
def test_requests_that_share_their_waves_luck_do_not_fail_a_good_service(size: int) -> None:
    naive = tied(size, 0.95, 0.1, lambda good, size: 1.0)
    assert naive[FAIL] > 0.05 * TRIALS  # counting them as independent would
    assert tied(size, 0.95, 0.1, design_effect)[FAIL] <= 0.05 * TRIALS


@pytest.mark.slow
@pytest.mark.parametrize(("size", "share"), [(10, 0.94), (25, 0.94), (25, 0.93)])
def test_nor_do_they_pass_a_service_a_point_below_the_target(size: int, share: float) -> None:
    assert tied(size, share, 0.1, design_effect)[PASS] <= 0.05 * TRIALS


def test_one_bad_request_in_a_wave_is_chance_and_a_bad_wave_is_not() -> None:
    chance = [True] * 120
    chance[30] = chance[70] = False
    assert design_effect(chance, 10) == 1
    lumped = [True] * 120
    lumped[30:40] = [False] * 10
    assert design_effect(lumped, 10) == pytest.approx(10, rel=0.05)
    assert design_effect(lumped, 1) == 1


def test_a_bad_first_wave_is_no_sign_that_requests_hang_together() -> None:
    assert design_effect([False] * 10 + [True] * 40, 10) == 1


def test_a_reduced_number_widens_both_bounds() -> None:
    whole, reduced = assess(97, 100, TARGET), assess(97, 100, TARGET, 3.0)
    assert reduced.counted == 33
    assert reduced.low < whole.low
    assert whole.high < reduced.high


def test_the_check_tells_the_burst_apart_from_what_came_after() -> None:
    slow = [sample(ttft_ms=900)] * 10
    metrics, samples = level(*slow, *[sample()] * 90, concurrency=10)
    check = judge_objective(Slo(ttft_ms=200), metrics, samples)
    assert check.verdict is FAIL
    assert check.reason == "missed: TTFT 10; good in the first wave 0/10, after it 90/90"


def test_the_check_says_when_requests_count_for_fewer() -> None:
    good = [sample()] * 10
    metrics, samples = level(*good * 5, *[failed()] * 10, *good * 6, concurrency=10)
    check = judge_objective(Slo(ttft_ms=200), metrics, samples)
    assert check.verdict is HOLD
    assert "good and bad come in waves, so they count as 12" in check.measured


def test_an_engine_that_is_gone_at_the_end_of_a_level_fails_it() -> None:
    died = [failed()] * 10 + [failed(f"{UNSENT} after 10 failures in a row: gone", e2e_ms=0.0)] * 10
    metrics, samples = level(*[sample()] * 110, *died, concurrency=10)
    check = judge_objective(Slo(ttft_ms=200), metrics, samples)
    assert (check.verdict, check.reason) == (FAIL, "missed: failed 20")


def test_how_many_requests_tell_at_the_same_rate() -> None:
    assert requests_to_tell(1.0, 0.95) == pytest.approx(requests_needed(0.95), rel=0.06)
    assert requests_to_tell(0.5, 0.95) in range(2, 10)
    assert requests_to_tell(0.95, 0.95) is None
    few, many = requests_to_tell(0.99, 0.95), requests_to_tell(0.97, 0.95)
    assert few is not None
    assert many is not None
    assert few < many


def test_a_burst_and_what_comes_after_have_figures_of_their_own() -> None:
    slow = [sample(ttft_ms=900)] * 4
    metrics, _ = level(*slow, *[sample()] * 16, concurrency=4)
    assert metrics.burst is not None
    assert metrics.steady is not None
    assert (metrics.burst.requests, metrics.burst.ttft.p50) == (4, 900)
    assert (metrics.steady.requests, metrics.steady.ttft.p50) == (16, 100)
    assert metrics.burst.good is None
    alone, _ = level(sample(), sample())
    assert alone.burst is alone.steady is None


@pytest.mark.parametrize(("number", "told"), [(P99_NEEDS - 1, False), (P99_NEEDS, True)])
def test_there_is_no_p99_of_too_few_requests(number: int, told: bool) -> None:
    metrics, _ = level(*[sample()] * number)
    assert (metrics.ttft.p99 is not None) is told
    assert (metrics.itl.p99 is not None) is told
    assert metrics.ttft.most == 100


def test_the_number_that_a_p99_needs_is_the_published_one() -> None:
    assert requests_needed(0.99) == P99_NEEDS
