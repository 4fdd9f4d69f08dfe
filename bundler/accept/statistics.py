"""Quantiles and exact binomial bounds, in the standard library: the closed side carries no SciPy.

Bounds are one-sided and exact (C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial
limits illustrated in the case of the binomial", Biometrika 26, 1934, pages 404-413). They treat the
requests as independent. Requests of a closed loop come in waves and are not quite, so the true
confidence is somewhat lower than the nominal one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

CONFIDENCE = 0.95
# `requests_needed(0.99)`: with fewer even all of them would not bound a 99th percentile from above.
P99_NEEDS = 299
_BISECTIONS = 64
_NEGLIGIBLE = 1e-18
_MOST_REQUESTS = 2**40


def quantile(values: Sequence[float], share: float) -> float | None:
    """The `share` quantile (0 to 1) by linear interpolation, as NumPy's default does.

    This is definition 7 of Hyndman and Fan, "Sample quantiles in statistical packages", The American
    Statistician 50, 1996. None without values.

    Raises:
        ValueError: `share` is not between 0 and 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share {share} is not between 0 and 1")
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    low, high = ordered[below], ordered[above]
    # Clamped: rounding must not put a quantile outside the values that it lies between.
    return min(max(low + (high - low) * (place - below), low), high)


def tail_at_least(successes: int, trials: int, chance: float) -> float:
    """Probability of `successes` or more in `trials` when each succeeds with `chance`.

    Sums from the edge of the tail towards its thin end, so that it needs about sqrt(trials) terms.
    """
    if successes <= 0:
        return 1.0
    if successes > trials or chance <= 0:
        return 0.0
    if chance >= 1:
        return 1.0
    if successes > trials * chance:
        return min(1.0, _sum_outwards(successes, trials, chance))
    # P(X <= k - 1) counts as many failures as P(n - X >= n - k + 1) with the chances swapped.
    return max(0.0, 1 - _sum_outwards(trials - successes + 1, trials, 1 - chance))


def _sum_outwards(start: int, trials: int, chance: float) -> float:
    """Sum of the binomial terms from `start`, which is at or above the mean, up to `trials`."""
    log_first = (
        math.lgamma(trials + 1)
        - math.lgamma(start + 1)
        - math.lgamma(trials - start + 1)
        + start * math.log(chance)
        + (trials - start) * math.log1p(-chance)
    )
    odds = chance / (1 - chance)
    term = total = 1.0
    for number in range(start, trials):
        term *= (trials - number) / (number + 1) * odds
        total += term
        if term < _NEGLIGIBLE * total:
            break
    return math.exp(log_first + math.log(total))


def lower_bound(successes: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """One-sided lower Clopper-Pearson bound of a share: 59 of 59 gives 0.9505 at 0.95.

    Raises:
        ValueError: the counts or the confidence make no sense.
    """
    _refuse_nonsense(successes, trials, confidence)
    if successes == 0:
        return 0.0
    alpha = 1 - confidence
    if successes == trials:
        return math.exp(math.log(alpha) / trials)
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if tail_at_least(successes, trials, middle) > alpha:
            high = middle
        else:
            low = middle
    return low


def upper_bound(successes: int, trials: int, confidence: float = CONFIDENCE) -> float:
    """One-sided upper Clopper-Pearson bound of a share.

    Raises:
        ValueError: as `lower_bound`.
    """
    _refuse_nonsense(successes, trials, confidence)
    return 1 - lower_bound(trials - successes, trials, confidence)


def requests_needed(attainment: float, failures: int = 0, confidence: float = CONFIDENCE) -> int:
    """Fewest requests, `failures` of them bad, that still show a good share of `attainment`.

    59 for 95 % without a failure, 93 with one, 124 with two; 299 for 99 %.

    Raises:
        ValueError: `attainment` or `confidence` is not between 0 and 1, or `failures` is negative.
    """
    if not (0 < attainment < 1 and 0 < confidence < 1 and failures >= 0):
        raise ValueError(f"no number of requests for {attainment}, {failures}, {confidence}")

    def enough(trials: int) -> bool:
        return tail_at_least(trials - failures, trials, attainment) <= 1 - confidence

    high = failures + 1
    while not enough(high):
        high *= 2
        if high > _MOST_REQUESTS:
            raise ValueError(f"{attainment} needs more requests than anyone can send")
    low = failures
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def _refuse_nonsense(successes: int, trials: int, confidence: float) -> None:
    if not (trials > 0 and 0 <= successes <= trials and 0 < confidence < 1):
        raise ValueError(f"no bound for {successes} of {trials} at confidence {confidence}")
