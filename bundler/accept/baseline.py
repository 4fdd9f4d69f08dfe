"""Acceptance runs to profiles, and two of either side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from pydantic import ValidationError

from bundler.accept.fingerprint import differences
from bundler.accept.judge import judge, sample_key
from bundler.accept.ranges import level_value, outcome_of
from bundler.accept.tolerance import limits
from bundler.domain.facts import AcceptanceRecord, LevelMetrics
from bundler.domain.profile import Figure, Figured, Fingerprint, Profile
from bundler.domain.verdict import Verdict
from bundler.errors import FormatError, StateError
from bundler.format.untrusted import shown

RECORDED: tuple[Figured, ...] = (
    "output_tokens_per_s", "output_tokens_per_s_per_user", "ttft_ms_p50", "ttft_ms_p95",
    "tpot_ms_p50", "tpot_ms_p95", "e2e_ms_p50", "e2e_ms_p95",
)  # fmt: skip
_RECORD_HINT = "Record runs of one set-up, one service each; `airbundle baseline compare A B` shows how two differ."
_Key = tuple[int | None, str]


def profiles_from(
    records: Sequence[AcceptanceRecord], name: str | None = None
) -> tuple[tuple[Profile, ...], tuple[str, ...]]:
    """A profile for each service that the runs measured, and what was left out and why.

    Raises:
        StateError: no run, one twice, runs of different set-ups, or no level fit to compare with.
    """
    _refuse_twins(records)
    prints = _common(records)
    left_out: list[str] = []
    profiles = []
    for service, fingerprint in prints.items():
        figures = _figures(records, service, left_out)
        if not figures:
            raise StateError(
                f"{service}: no level of these runs was measured without a doubt",
                hint="; ".join(left_out[:3]) or _RECORD_HINT,
            )
        label = name or f"{fingerprint.model or service} on {fingerprint.gpu or 'unknown'}"
        profiles.append(
            Profile(
                name=label if len(prints) == 1 else f"{label}, {service}",
                kind="measured",
                source=_source(records),
                conditions=_conditions(records[0]),
                fingerprint=fingerprint,
                figures=figures,
            )
        )
    return tuple(profiles), tuple(left_out)


def _refuse_twins(records: Sequence[AcceptanceRecord]) -> None:
    if not records:
        raise StateError("no run to record", hint=_RECORD_HINT)
    seen = [(record.bundle_id, record.began) for record in records]
    twice = next((one for one in seen if seen.count(one) > 1), None)
    if twice is not None:
        raise StateError(f"the run of {twice[1]} is given twice", hint="Name every run once.")


def _common(records: Sequence[AcceptanceRecord]) -> Mapping[str, Fingerprint]:
    """The set-ups that all runs are of."""
    first = records[0]
    if not first.fingerprints:
        raise StateError(
            f"the run of {first.began} does not say what it was of",
            hint="It was made by an older airbundle: measure again.",
        )
    for record in records[1:]:
        if set(record.fingerprints) != set(first.fingerprints):
            raise StateError(
                f"the runs of {first.began} and {record.began} are of different services",
                hint=_RECORD_HINT,
            )
        for service, fingerprint in first.fingerprints.items():
            other = record.fingerprints[service]
            if found := differences(fingerprint, other):
                raise StateError(
                    f"{service}: the runs of {first.began} and {record.began} differ in"
                    f" {'; '.join(found)}",
                    hint=_RECORD_HINT,
                )
    return first.fingerprints


def _figures(
    records: Sequence[AcceptanceRecord], service: str, left_out: list[str]
) -> tuple[Figure, ...]:
    runs: dict[tuple[int, Figured], list[float]] = {}
    for record in records:
        for level in record.levels:
            if level.service != service:
                continue
            if doubt := doubt_of(record, level):
                left_out.append(f"{record.began}, {service} x{level.concurrency}: {doubt}")
                continue
            for metric in RECORDED:
                value = level_value(level, metric)
                if value:
                    runs.setdefault((level.concurrency, metric), []).append(round(value, 4))
    return tuple(
        _figure(records[0], metric, concurrency, tuple(values))
        for (concurrency, metric), values in sorted(runs.items())
    )


def _figure(
    record: AcceptanceRecord, metric: Figured, concurrency: int, runs: tuple[float, ...]
) -> Figure:
    """The figure, from a record that need not be one of ours.

    Raises:
        FormatError: nothing that was measured is such a figure.
    """
    try:
        return Figure(metric=metric, concurrency=concurrency, runs=runs)
    except ValidationError as cause:
        raise FormatError(
            f"the run of {shown(record.began)}: {metric} {runs[0]:g} at {concurrency} users is no figure",
            hint="The record was changed since, or is damaged. Measure again.",
        ) from cause


def doubt_of(record: AcceptanceRecord, level: LevelMetrics) -> str:
    """Why a level's figures are no reference; empty when they are."""
    plan = record.plan.model_copy(update={"slo": None, "expected": ()})
    key = sample_key(level.service, level.concurrency)
    checks, _ = judge(plan, [level], {key: record.samples.get(key, ())})
    return next((c.reason or c.what for c in checks if c.verdict is not Verdict.PASS), "")


def _source(records: Sequence[AcceptanceRecord]) -> str:
    dates = sorted(record.began for record in records)
    count = "1 run" if len(dates) == 1 else f"{len(dates)} runs"
    return f"airbundle accept: {count}, {dates[0]} to {dates[-1]}"


def _conditions(record: AcceptanceRecord) -> str:
    told = [f"{name} {record.host[name]}" for name in ("driver", "kernel") if name in record.host]
    signed = "" if record.key_id else "; the bundle was UNSIGNED"
    return f"closed loop, prompts without a common beginning; {', '.join(told)}{signed}"[:2000]


@dataclass(frozen=True)
class Side:
    """One side of a comparison: per service or profile its fingerprint (if known) and figures."""

    label: str
    prints: Mapping[str, Fingerprint]
    figures: Mapping[str, Mapping[_Key, Figure]]


def side_of_record(record: AcceptanceRecord, label: str) -> Side:
    """A run as one side."""
    figures: dict[str, dict[_Key, Figure]] = {}
    for level in record.levels:
        for metric in RECORDED:
            value = level_value(level, metric)
            if value:
                figures.setdefault(level.service, {})[(level.concurrency, metric)] = _figure(
                    record, metric, level.concurrency, (value,)
                )
    return Side(label, record.fingerprints, figures)


def side_of_profiles(profiles: Sequence[Profile], label: str) -> Side:
    """A file of profiles as one side."""
    return Side(
        label,
        {profile.name: profile.fingerprint for profile in profiles},
        {
            profile.name: {(f.concurrency, f.metric): f for f in profile.figures}
            for profile in profiles
        },
    )


@dataclass(frozen=True)
class Row:
    """One figure of both sides. `outcome` is B's, by A's range."""

    concurrency: int | None
    metric: str
    a: float
    b: float
    outcome: Literal["within", "worse", "better"]
    basis: str
    worst: float
    best: float

    @property
    def ratio(self) -> float:
        """B over A."""
        return self.b / self.a

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "concurrency": self.concurrency, "metric": self.metric, "a": self.a, "b": self.b,
            "ratio": round(self.ratio, 4), "outcome": self.outcome, "basis": self.basis,
        }  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """A service of A beside one of B: in what their set-ups differ, and the figures that both have."""

    a: str
    b: str
    differs: tuple[str, ...]
    rows: tuple[Row, ...]


def compare(one: Side, other: Side) -> tuple[Pair, ...]:
    """Services of one name are paired; else the only one of each side.

    Raises:
        StateError: nothing on one side is like anything on the other.
    """
    names = [(name, name) for name in one.figures if name in other.figures]
    if not names and len(one.figures) == len(other.figures) == 1:
        names = [(next(iter(one.figures)), next(iter(other.figures)))]
    pairs = tuple(_pair(one, a, other, b) for a, b in names)
    if not any(pair.rows for pair in pairs):
        raise StateError(
            f"{one.label} and {other.label} have no figure in common"
            f" ({', '.join(one.figures) or 'none'} / {', '.join(other.figures) or 'none'})",
            hint="Compare runs or profiles of the same service and concurrency levels.",
        )
    return pairs


def _pair(one: Side, a: str, other: Side, b: str) -> Pair:
    differs: tuple[str, ...] = ()
    if a in one.prints and b in other.prints:
        differs = differences(one.prints[a], other.prints[b])
    mine, theirs = one.figures[a], other.figures[b]
    shared = [key for key in mine if key in theirs]
    return Pair(a, b, differs, tuple(_row(mine[key], theirs[key]) for key in shared))


def _row(mine: Figure, theirs: Figure) -> Row:
    ends, value = limits(mine), median(theirs.runs)
    return Row(
        concurrency=mine.concurrency,
        metric=mine.metric,
        a=median(mine.runs),
        b=value,
        outcome=outcome_of(value, ends.worst, ends.best, higher=mine.higher_is_better),
        basis=ends.basis,
        worst=ends.worst,
        best=ends.best,
    )
