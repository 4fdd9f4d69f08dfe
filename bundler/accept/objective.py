"""Whether a share of good requests is shown to be high enough, shown not to be, or neither.

The bounds are one-sided, exact and at 95 % each: of services that are just below the target at most 5 %
pass, of those that are just at it at most 5 % fail. A run that is repeated until it passes has no such
promise: of k tries one passes with a chance of up to 1 - 0.95^k.

Requests of a closed loop are sent in waves and may share their luck. Where the steady waves differ by more
than chance, the requests count for fewer: the number is divided by the design effect, the variance
between waves over the binomial one (L. Kish, "Survey Sampling", 1965; with exact bounds on the reduced
number as E. L. Korn and B. I. Graubard, "Confidence intervals for proportions with small expected number
of positive counts estimated from survey data", Survey Methodology 24, 1998, pages 193-201).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from bundler.accept.load import UNSENT
from bundler.accept.statistics import (
    CONFIDENCE,
    lower_bound,
    requests_needed,
    upper_bound,
)
from bundler.domain.facts import LevelMetrics, RequestSample
from bundler.domain.spec import Slo
from bundler.domain.verdict import Check, Verdict

_LEAST_WAVES = 3
_MOST_TOLD = 100_000


@dataclass(frozen=True)
class Assessment:
    """`good` of `total` requests; `counted` are what they count for once waves are allowed for."""

    good: int
    total: int
    counted: int
    low: float
    high: float
    verdict: Verdict


def assess(good: int, total: int, target: float, design: float = 1.0) -> Assessment:
    """Judge a share. Both roundings of a reduced number widen the bounds.

    Args:
        good: requests that met every limit.
        total: all requests; at least one.
        target: share that must be good, between 0 and 1.
        design: design effect, at least 1.
    """
    counted = max(1, math.floor(total / max(1.0, design)))
    bad = math.ceil((total - good) * counted / total)
    low = lower_bound(counted - bad, counted)
    high = upper_bound(math.ceil(good * counted / total), counted)
    verdict = Verdict.INCONCLUSIVE
    if low >= target:
        verdict = Verdict.PASS
    elif high < target:
        verdict = Verdict.FAIL
    return Assessment(good, total, counted, low, high, verdict)


def design_effect(good: Sequence[bool], concurrency: int) -> float:
    """How much more the waves after the first differ than chance would have it; 1 when not more.

    Args:
        good: whether each request met its limits, in the order in which they were sent.
        concurrency: requests in a wave. The first wave is left out: that it differs is no chance.
    """
    steady = good[concurrency:]
    waves = [
        sum(steady[at : at + concurrency])
        for at in range(0, len(steady) - concurrency + 1, concurrency)
    ]
    if concurrency < 2 or len(waves) < _LEAST_WAVES:
        return 1.0
    share = fmean(waves) / concurrency
    if not 0 < share < 1:
        return 1.0
    return min(concurrency, max(1.0, variance(waves) / (concurrency * share * (1 - share))))


def requests_to_tell(share: float, target: float) -> int | None:
    """About how many requests decide if `share` of them stays good; None when no sensible number does."""
    number = 1
    while number <= _MOST_TOLD:
        if assess(round(share * number), number, target).verdict is not Verdict.INCONCLUSIVE:
            return number
        number = max(number + 1, number * 21 // 20)
    return None


def judge_objective(slo: Slo, level: LevelMetrics, samples: Sequence[RequestSample]) -> Check:
    """The check of a level against its objective, burst and steady told apart."""
    limits = _limits(slo)
    terms = ", ".join(f"{name} <= {limit:g} ms" for name, _, limit in limits) or "answered"
    missed = [_misses(sample, limits) for sample in samples]
    good = [not names for names in missed]
    # That an engine is gone is no bad luck of some waves, however its failures lie together.
    gone = any(sample.error.startswith(UNSENT) for sample in samples)
    design = 1.0 if gone else design_effect(good, level.concurrency)
    found = assess(sum(good), len(good), slo.attainment, design)
    counts = [
        f"{name} {number}"
        for name in ("failed", *(name for name, _, _ in limits))
        if (number := sum(name in names for names in missed))
    ]
    reasons = [
        _undecided(found, slo.attainment) if found.verdict is Verdict.INCONCLUSIVE else "",
        f"missed: {', '.join(counts)}" if counts and found.verdict is not Verdict.PASS else "",
        _apart(good, level.concurrency) if found.verdict is not Verdict.PASS else "",
    ]
    return Check(
        service=level.service,
        concurrency=level.concurrency,
        what=f"SLO: {terms} for {slo.attainment * 100:g} %",
        verdict=found.verdict,
        measured=_measured(found),
        reason="; ".join(filter(None, reasons)),
    )


def _measured(found: Assessment) -> str:
    share = found.good / found.total * 100
    said = (
        f"{found.good} of {found.total} good ({share:.1f} %),"
        f" one-sided {CONFIDENCE * 100:g} % bounds {found.low * 100:.1f} % and {found.high * 100:.1f} %"
    )
    if found.counted < found.total:
        said += f"; good and bad come in waves, so they count as {found.counted}"
    return said


def _undecided(found: Assessment, target: float) -> str:
    """How many more requests are needed."""
    share = found.good / found.total
    # Each request of a wave tells less than one; as many more are needed.
    factor = found.total / found.counted
    needed = math.ceil(factor * requests_needed(target, math.ceil((1 - share) * found.counted)))
    if found.counted == found.total:
        needed = requests_needed(target, found.total - found.good)
    reason = (
        f"too few requests to tell: {needed - found.total} more are needed if none of them fails"
        f" (acceptance.requests: {needed})"
    )
    if found.good == found.total:
        return reason
    same = requests_to_tell(share, target)
    if same is None:
        return f"{reason}; the share is too near the target for any number at this rate"
    return f"{reason}; about {max(needed, math.ceil(factor * same))} in all at this rate"


def _apart(good: Sequence[bool], concurrency: int) -> str:
    """The burst and what came after it, when they differ in kind."""
    burst, steady = good[:concurrency], good[concurrency:]
    if concurrency < 2 or not steady or all(burst):
        return ""
    return f"good in the first wave {sum(burst)}/{len(burst)}, after it {sum(steady)}/{len(steady)}"


def is_good(slo: Slo, sample: RequestSample) -> bool:
    """Whether a request succeeded and met every limit."""
    return not _misses(sample, _limits(slo))


def _limits(slo: Slo) -> list[tuple[str, str, float]]:
    """Name, field of a sample and limit, of those limits that are set."""
    rows = (
        ("TTFT", "ttft_ms", slo.ttft_ms),
        ("TPOT", "tpot_ms", slo.tpot_ms),
        ("E2E", "e2e_ms", slo.e2e_ms),
    )
    return [(name, key, limit) for name, key, limit in rows if limit is not None]


def _misses(sample: RequestSample, limits: Sequence[tuple[str, str, float]]) -> list[str]:
    """What a request missed; a figure that is not there is a miss, as nothing shows that it was met."""
    if not sample.ok:
        return ["failed"]
    missed = []
    for name, key, limit in limits:
        value = getattr(sample, key)
        if value is None or value > limit:
            missed.append(name)
    return missed
