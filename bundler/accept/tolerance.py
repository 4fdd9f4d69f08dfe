"""In which range a figure of the next run lies, from reference runs.

With ten or more: a one-sided normal tolerance limit for 95 % of runs at 95 % confidence, on the logarithm of
the figures, since noise of times and rates is a factor (k-factors: NIST/SEMATECH e-Handbook of
Statistical Methods, 7.2.6.3; N. L. Johnson and B. L. Welch, "Applications of the non-central
t-distribution", Biometrika 31, 1940). With fewer the factor would be so large that the limit says nothing,
and a labelled default stands in: 25 % for rates, 30 % for medians of times, 50 % for their p95. These three
are choices of ours, not of a source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, fmean, median, stdev

from bundler.domain.profile import Figure

ENOUGH_RUNS = 10
COVERAGE = 0.95
_STEPS = 400
# Runs of one day agree better than those of a week do.
_NARROWEST = 0.05
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Limits:
    """`worst` and `best` are the ends on the bad and on the good side; `basis` says how they were made."""

    worst: float
    best: float
    basis: str


def limits(figure: Figure) -> Limits:
    """The range of a figure: what its source states, a tolerance interval, or the default."""
    if figure.low is not None and figure.high is not None:
        return _ends(figure, figure.low, figure.high, "range that the source states")
    count = len(figure.runs)
    if count >= ENOUGH_RUNS:
        low, high = tolerance(figure.runs)
        return _ends(figure, low, high, f"tolerance interval 95/95 of {count} runs")
    share = _default(figure.metric)
    middle = median(figure.runs)
    # A source that varies more than the default is taken at its word.
    low = min(middle * (1 - share), *figure.runs)
    high = max(middle * (1 + share), *figure.runs)
    runs = "1 run" if count == 1 else f"{count} runs"
    return _ends(figure, low, high, f"±{share * 100:g} % by default, of {runs}")


def tolerance(runs: Sequence[float]) -> tuple[float, float]:
    """Both one-sided limits; never narrower than 5 % to a side.

    Raises:
        ValueError: fewer than two runs, or one that is not positive.
    """
    logs = [math.log(value) for value in runs]
    centre = fmean(logs)
    reach = max(tolerance_factor(len(runs)) * stdev(logs), math.log1p(_NARROWEST))
    return math.exp(centre - reach), math.exp(centre + reach)


@lru_cache(maxsize=256)
def tolerance_factor(runs: int, coverage: float = COVERAGE, confidence: float = 0.95) -> float:
    """How many standard deviations from the mean of so many runs: 2.91 for 10, 2.40 for 20.

    The confidence quantile of a non-central t with runs - 1 degrees of freedom and non-centrality
    z(coverage) * sqrt(runs), over sqrt(runs).

    Raises:
        ValueError: fewer than two runs.
    """
    if runs < 2:
        raise ValueError(f"no tolerance limit from {runs} run(s)")
    shift = _NORMAL.inv_cdf(coverage) * math.sqrt(runs)
    low, high = 0.0, 200.0 * math.sqrt(runs)
    for _ in range(60):
        middle = (low + high) / 2
        if _noncentral_t(middle, runs - 1, shift) < confidence:
            low = middle
        else:
            high = middle
    return high / math.sqrt(runs)


def _noncentral_t(value: float, freedom: int, shift: float) -> float:
    """P(T <= value), integrated over s, the root of chi-square over its degrees of freedom.

    T = (Z + shift) / s, so P = integral of Phi(value * s - shift) * f(s), by Simpson's rule.
    """
    half = freedom / 2
    log_scale = math.log(2) + half * math.log(half) - math.lgamma(half)

    def weight(s: float) -> float:
        if s <= 0:
            return math.exp(log_scale) if freedom == 1 else 0.0
        return math.exp(log_scale + (freedom - 1) * math.log(s) - half * s * s)

    # The density's spread is about 1/sqrt(2 freedom) around 1; twelve of it leave nothing outside.
    spread = 12 / math.sqrt(2 * freedom)
    low, high = max(0.0, 1 - spread), 1 + spread
    width = (high - low) / _STEPS
    total = 0.0
    for place in range(_STEPS + 1):
        s = low + place * width
        factor = 1 if place in (0, _STEPS) else 4 if place % 2 else 2
        total += factor * weight(s) * _NORMAL.cdf(value * s - shift)
    return total * width / 3


def _default(metric: str) -> float:
    if metric.endswith(("_p95", "_p99")):
        return 0.5
    return 0.3 if "_ms_" in metric else 0.25


def _ends(figure: Figure, low: float, high: float, basis: str) -> Limits:
    if figure.higher_is_better:
        return Limits(low, high, basis)
    return Limits(high, low, basis)
