import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.accept.statistics import (
    lower_bound,
    quantile,
    requests_needed,
    tail_at_least,
    upper_bound,
)

counts = st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
confidences = st.sampled_from([0.8, 0.9, 0.95, 0.99])
numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50)


def test_quantiles_are_those_of_numpy_by_default() -> None:
    assert quantile([1, 2, 3, 4], 0.5) == 2.5
    assert quantile([4, 1, 3, 2], 0.95) == pytest.approx(3.85)
    assert quantile([10, 20], 0.99) == pytest.approx(19.9)
    assert quantile([7], 0.99) == 7
    assert quantile([], 0.5) is None


def test_a_share_outside_zero_and_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1\.5"):
        quantile([1], 1.5)


@given(numbers, st.floats(0, 1), st.floats(0, 1))
def test_a_quantile_lies_between_the_extremes_and_grows_with_its_share(
    values: list[float], a: float, b: float
) -> None:
    low, high = quantile(values, min(a, b)), quantile(values, max(a, b))
    assert low is not None
    assert high is not None
    assert min(values) <= low <= max(values)
    assert low <= high + 1e-6 * max(1, abs(high))


@pytest.mark.parametrize(
    ("attainment", "confidence", "by_failures"),
    [
        (0.95, 0.95, {0: 59, 1: 93, 2: 124, 3: 153, 5: 208}),
        (0.99, 0.95, {0: 299, 1: 473, 2: 628, 3: 773, 5: 1049}),
        (0.95, 0.99, {0: 90, 1: 130, 2: 165, 3: 198, 5: 259}),
        (0.99, 0.99, {0: 459, 1: 662, 2: 838, 3: 1001, 5: 1307}),
        (0.90, 0.95, {0: 29, 1: 46, 2: 61, 3: 76, 5: 103}),
    ],
)
def test_requests_needed_are_those_of_the_published_tables(
    attainment: float, confidence: float, by_failures: dict[int, int]
) -> None:
    found = {
        failures: requests_needed(attainment, failures, confidence) for failures in by_failures
    }
    assert found == by_failures


def test_fifty_nine_of_fifty_nine_show_ninety_five_per_cent_and_fifty_eight_do_not() -> None:
    assert lower_bound(59, 59) == pytest.approx(0.95049, abs=1e-5)
    assert lower_bound(59, 59) >= 0.95 > lower_bound(58, 58)
    assert lower_bound(92, 93) >= 0.95 > lower_bound(91, 92)


@pytest.mark.parametrize(
    ("good", "total", "low", "high"),
    # One-sided 95 % Clopper-Pearson, computed with SciPy's beta.ppf.
    [
        (1, 10, 0.005116197, 0.394163302),
        (5, 10, 0.222441101, 0.777558899),
        (97, 100, 0.924289206, 0.991774171),
        (99_000, 100_000, 0.989466799, 0.990512003),
    ],
)
def test_bounds_are_those_of_the_beta_distribution(
    good: int, total: int, low: float, high: float
) -> None:
    assert lower_bound(good, total) == pytest.approx(low, abs=1e-9)
    assert upper_bound(good, total) == pytest.approx(high, abs=1e-9)


def test_no_success_and_no_failure_have_closed_forms() -> None:
    assert lower_bound(0, 20) == 0
    assert upper_bound(20, 20) == 1
    assert upper_bound(0, 20) == pytest.approx(1 - 0.05 ** (1 / 20))


def test_a_hundred_thousand_trials_neither_underflow_nor_take_long() -> None:
    assert lower_bound(100_000, 100_000) == pytest.approx(0.05 ** (1 / 100_000))
    assert 0.5 - 0.003 < lower_bound(50_000, 100_000) < 0.5 < upper_bound(50_000, 100_000)


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
       st.floats(0.001, 0.999))  # fmt: skip
def test_the_tail_is_the_sum_of_its_terms(counted: tuple[int, int], chance: float) -> None:
    least, trials = counted
    exact = math.fsum(
        math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
        for k in range(least, trials + 1)
    )
    assert tail_at_least(least, trials, chance) == pytest.approx(exact, rel=1e-9, abs=1e-12)


@given(counts, confidences)
def test_bounds_hold_the_share_between_them(counted: tuple[int, int], confidence: float) -> None:
    good, total = counted
    low, high = lower_bound(good, total, confidence), upper_bound(good, total, confidence)
    assert 0 <= low <= good / total <= high <= 1


@given(counts, confidences)
def test_the_lower_bound_is_where_the_tail_has_the_risk(
    counted: tuple[int, int], confidence: float
) -> None:
    good, total = counted
    low = lower_bound(good, total, confidence)
    if good:
        assert tail_at_least(good, total, low) == pytest.approx(1 - confidence, rel=1e-6)


@given(st.floats(0.5, 0.995), st.integers(0, 8), confidences)
def test_requests_needed_pass_and_one_fewer_does_not(
    attainment: float, failures: int, confidence: float
) -> None:
    needed = requests_needed(attainment, failures, confidence)
    assert lower_bound(needed - failures, needed, confidence) >= attainment - 1e-9
    fewer = needed - 1
    assert fewer == failures or lower_bound(fewer - failures, fewer, confidence) < attainment + 1e-9


@pytest.mark.parametrize(
    ("good", "total", "confidence"), [(1, 0, 0.95), (5, 4, 0.95), (-1, 4, 0.9), (1, 2, 1)]
)
def test_counts_that_make_no_sense_are_refused(good: int, total: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="no bound"):
        lower_bound(good, total, confidence)


def test_an_attainment_that_no_number_shows_is_refused() -> None:
    with pytest.raises(ValueError, match="no number"):
        requests_needed(1.0)
    with pytest.raises(ValueError, match="more requests than anyone"):
        requests_needed(1 - 1e-15)
