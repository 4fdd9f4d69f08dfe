from __future__ import annotations

import random

import pytest

from bundler.accept.tolerance import limits, tolerance, tolerance_factor
from bundler.domain.profile import Figure


@pytest.mark.parametrize(
    ("runs", "factor"),
    # One-sided, 95 % of the population at 95 % confidence: the published tables.
    [(3, 7.66), (5, 4.20), (8, 3.19), (10, 2.91), (20, 2.40), (30, 2.22)],
)
def test_the_factors_are_those_of_the_tables(runs: int, factor: float) -> None:
    assert tolerance_factor(runs) == pytest.approx(factor, abs=0.006)


def test_a_limit_covers_nineteen_of_twenty_runs_nineteen_times_of_twenty() -> None:
    chance = random.Random(3)
    trials, covered = 1000, 0
    for _ in range(trials):
        low, _ = tolerance([chance.lognormvariate(5, 0.2) for _ in range(10)])
        # The 5 % point of the population.
        covered += low <= random_quantile(5, 0.2)
    assert 0.93 * trials <= covered <= 0.97 * trials


def random_quantile(mean: float, deviation: float) -> float:
    from math import exp
    from statistics import NormalDist

    return exp(NormalDist(mean, deviation).inv_cdf(0.05))


def figure(metric: str, *runs: float, **more: object) -> Figure:
    return Figure.model_validate({"metric": metric, "concurrency": 1, "runs": runs, **more})


def test_ten_runs_make_a_tolerance_interval_and_nine_do_not() -> None:
    ten = limits(figure("output_tokens_per_s", *range(91, 101)))
    nine = limits(figure("output_tokens_per_s", *range(91, 100)))
    assert ten.basis == "tolerance interval 95/95 of 10 runs"
    assert ten.worst < 91 < 100 < ten.best
    assert nine.basis == "±25 % by default, of 9 runs"


@pytest.mark.parametrize(
    ("metric", "worst", "best"),
    [
        ("output_tokens_per_s", 75, 125),
        ("ttft_ms_p50", 130, 70),
        ("ttft_ms_p95", 150, 50),
        ("tpot_ms_p50", 130, 70),
    ],
)
def test_few_runs_get_the_labelled_default(metric: str, worst: float, best: float) -> None:
    found = limits(figure(metric, 100))
    assert (found.worst, found.best) == (pytest.approx(worst), pytest.approx(best))
    assert found.basis.endswith("by default, of 1 run")


def test_runs_that_vary_more_than_the_default_widen_it() -> None:
    found = limits(figure("output_tokens_per_s", 50, 100, 160))
    assert (found.worst, found.best) == (50, 160)


def test_a_range_that_the_source_states_stands() -> None:
    found = limits(figure("ttft_ms_p50", 100, low=90, high=300))
    assert (found.worst, found.best, found.basis) == (300, 90, "range that the source states")


def test_equal_runs_leave_five_per_cent() -> None:
    found = limits(figure("output_tokens_per_s", *[100.0] * 10))
    assert (found.worst, found.best) == (pytest.approx(100 / 1.05), pytest.approx(105))


def test_one_run_has_no_tolerance() -> None:
    with pytest.raises(ValueError, match="no tolerance"):
        tolerance_factor(1)
