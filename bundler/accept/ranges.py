"""A run's figures beside those that are known of the same set-up.

Only the bad side fails, and only against figures whose conditions are known: measured by airbundle, or
published with all of them. Anything else warns: a field report without its prompt length must fail nobody.
What is too good warns too: a cache or another model may have answered.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bundler.accept.fingerprint import Match, same
from bundler.accept.statistics import P99_NEEDS, quantile
from bundler.accept.tolerance import limits
from bundler.domain.facts import LevelMetrics
from bundler.domain.profile import MEASURABLE, Comparison, Figure, Fingerprint, Profile
from bundler.domain.verdict import Check, Verdict

# Kernels that differ by less are told apart by no single run.
_A_STORY = 1.25
_OUTCOMES = {"within": Verdict.PASS, "better": Verdict.PASS, "worse": Verdict.FAIL}


@dataclass(frozen=True)
class Ranged:
    """What the profiles say of one level: comparisons, the checks that may fail, and warnings."""

    comparisons: tuple[Comparison, ...] = ()
    checks: tuple[Check, ...] = ()
    warnings: tuple[str, ...] = ()


def compare_level(
    profiles: Sequence[Profile], fingerprint: Fingerprint, level: LevelMetrics
) -> Ranged:
    """Hold a level's figures against every profile that is of the same set-up."""
    comparisons: list[Comparison] = []
    checks: list[Check] = []
    warnings: list[str] = []
    for profile in profiles:
        match = same(profile.fingerprint, fingerprint)
        if not match.fits:
            continue
        for figure in profile.figures:
            found = _compare(profile, match, figure, level)
            if found is None:
                continue
            comparisons.append(found)
            if _may_fail(profile, figure) and found.outcome in _OUTCOMES:
                checks.append(_check(found))
            elif found.outcome == "worse":
                warnings.append(f"{_where(level)}: slower than known: {_words(found)}")
            if found.outcome == "better":
                warnings.append(
                    f"{_where(level)}: better than known, a cache or another model?: {_words(found)}"
                )
    warnings += _stories(profiles, fingerprint, level)
    return Ranged(tuple(comparisons), tuple(checks), tuple(warnings))


def nothing_known(profiles: Sequence[Profile], fingerprint: Fingerprint) -> str:
    """Why there is nothing to compare with; empty when some profile fits."""
    if any(same(profile.fingerprint, fingerprint).fits for profile in profiles):
        return ""
    model, gpu = fingerprint.model or "this model", fingerprint.gpu or "this machine"
    return f"none of {len(profiles)} profiles is of {model} on {gpu}; `airbundle baseline record` makes one"


def level_value(level: LevelMetrics, metric: str) -> float | None:
    """A level's figure by its name in a profile; None when it has none, or too few requests for it."""
    if metric == "output_tokens_per_s_per_user":
        return 1000 / level.tpot.p50 if level.tpot.p50 else None
    if metric not in MEASURABLE or not level.succeeded:
        return None
    if metric.endswith("_p99") and level.succeeded < P99_NEEDS:
        return None
    family, _, share = metric.partition("_ms_")
    value = getattr(getattr(level, family), share) if share else getattr(level, metric)
    return value or None


def _compare(
    profile: Profile, match: Match, figure: Figure, level: LevelMetrics
) -> Comparison | None:
    """One figure; None when it is not of this level, or this level has none like it."""
    # Of a figure whose load nobody told it is at least known that one user is the least load there is.
    if level.concurrency != (figure.concurrency or 1):
        return None
    value = level_value(level, figure.metric)
    if value is None:
        return None
    ends = limits(figure)
    # What the profile's author lists says more than the names of empty fields.
    told = [*(profile.unknown or match.unstated), *match.unknown]
    told += [figure.note] if figure.note else []
    if figure.concurrency is None:
        told.append("users at once unknown, taken as one")
    return Comparison(
        service=level.service,
        concurrency=level.concurrency,
        metric=figure.metric,
        measured=value,
        profile=profile.name,
        kind=profile.kind,
        worst=ends.worst,
        best=ends.best,
        # Of a run whose kernel is unknown nobody can say whether it is slow for its kernel.
        outcome=outcome_of(value, ends.worst, ends.best, higher=figure.higher_is_better)
        if not match.unknown
        else "not judged",
        basis=ends.basis,
        caveats=tuple(dict.fromkeys(told)),
    )


def outcome_of(
    value: float, worst: float, best: float, *, higher: bool
) -> Literal["within", "worse", "better"]:
    """Where a value lies; `higher` says whether more is better."""
    # Times are better when they are low: seen from below zero, everything is a rate.
    sign = 1 if higher else -1
    if sign * value < sign * worst:
        return "worse"
    return "better" if sign * value > sign * best else "within"


def _may_fail(profile: Profile, figure: Figure) -> bool:
    if figure.concurrency is None:
        return False
    if profile.kind == "measured":
        return True
    return profile.kind == "published" and not profile.unknown and not profile.fingerprint.unstated


def _check(found: Comparison) -> Check:
    higher = found.worst is not None and found.best is not None and found.worst < found.best
    sign = ">=" if higher else "<="
    return Check(
        service=found.service,
        concurrency=found.concurrency,
        what=f"profile {found.profile}: {found.metric} {sign} {found.worst:.4g}",
        verdict=_OUTCOMES[found.outcome],
        measured=f"{found.measured:.4g}",
        reason="; ".join([found.basis, *found.caveats]),
    )


def _words(found: Comparison) -> str:
    end = found.best if found.outcome == "better" else found.worst
    unknown = f"; unknown: {', '.join(found.caveats)}" if found.caveats else ""
    return (
        f"{found.metric} {found.measured:.4g} against {end:.4g}"
        f" ({found.kind} profile {found.profile}, {found.basis}{unknown})"
    )


def _where(level: LevelMetrics) -> str:
    return f"{level.service}, concurrency {level.concurrency}"


def _stories(
    profiles: Sequence[Profile], fingerprint: Fingerprint, level: LevelMetrics
) -> Iterator[str]:
    """Where a run is as fast as a slow kernel was, and a better one is known for the same set-up."""
    by_name = {profile.name: profile for profile in profiles}
    for fast in profiles:
        slow = by_name.get(fast.compare_with or "")
        if slow is None or not same(fast.fingerprint, fingerprint, kernel=False).fits:
            continue
        for good in fast.figures:
            bad = next((f for f in slow.figures if _like(f, good)), None)
            value = level_value(level, good.metric)
            if bad is None or value is None or level.concurrency != (good.concurrency or 1):
                continue
            quick, slack = quantile(good.runs, 0.5), quantile(bad.runs, 0.5)
            if quick and slack and _nearer(value, slack, quick, higher=good.higher_is_better):
                yield (
                    f"{_where(level)}: {good.metric} {value:.4g} is near {slack:.4g}, which kernel"
                    f" {slow.fingerprint.kernel or 'unknown'} gave in {slow.kind} profile {slow.name}; kernel"
                    f" {fast.fingerprint.kernel or 'of another kind'} gave {quick:.4g} there; this run's kernel:"
                    f" {fingerprint.kernel or 'unknown'} (airbundle kernels)"
                )


def _like(one: Figure, other: Figure) -> bool:
    return (one.metric, one.concurrency) == (other.metric, other.concurrency)


def _nearer(value: float, slow: float, fast: float, *, higher: bool) -> bool:
    """Whether a value is nearer to the slow figure, by factors, and the two differ enough to matter."""
    gain = fast / slow if higher else slow / fast
    if gain < _A_STORY:
        return False
    return abs(math.log(value / slow)) < abs(math.log(value / fast))
