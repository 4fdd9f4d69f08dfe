"""Two acceptance runs side by side. What is like what, and what is noise, is `baseline`'s to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bundler.accept.baseline import Pair, Row, compare, doubt_of, side_of_record
from bundler.domain.compared import (
    FigureRow,
    LevelRow,
    RunHead,
    RunsCompared,
    ServicePair,
    SetupRow,
)
from bundler.domain.facts import AcceptanceRecord
from bundler.domain.profile import Fingerprint
from bundler.domain.verdict import Verdict, overall

_PLAN = ("requests", "api", "language", "arrivals", "rate", "think_time_s", "ramp_s", "slo")


def runs_compared(
    a: AcceptanceRecord, b: AcceptanceRecord, labels: tuple[str, str]
) -> RunsCompared:
    """B judged by A: the set-ups, and each figure that both have.

    A figure is judged only where both runs are of one set-up and both measured its level without a doubt.

    Raises:
        StateError: the runs have no figure in common.
    """
    pairs = compare(side_of_record(a, labels[0]), side_of_record(b, labels[1]))
    reasons: dict[str, None] = {}
    services = tuple(_pair(a, b, pair, reasons) for pair in pairs)
    return RunsCompared(
        a=_head(a, labels[0]),
        b=_head(b, labels[1]),
        setup=tuple(_setup(a, b, pairs)),
        services=services,
        not_comparable=tuple(reasons),
    )


def _head(record: AcceptanceRecord, label: str) -> RunHead:
    return RunHead(
        label=label,
        name=record.name,
        bundle_id=record.bundle_id,
        key_id=record.key_id,
        engine=f"{record.engine_name} {record.engine_version}",
        began=record.began,
        ended=record.ended,
        verdict=record.verdict,
    )


def _pair(
    a: AcceptanceRecord, b: AcceptanceRecord, pair: Pair, reasons: dict[str, None]
) -> ServicePair:
    """Notes in `reasons` why a figure is not judged."""
    setup = _other_setup(a, b, pair)
    doubts = {**_doubts(a, pair.a), **_doubts(b, pair.b)}
    if setup:
        reasons[setup] = None
    reasons.update((f"{pair.b} x{users}: {why}", None) for users, why in doubts.items())
    why = "another set-up" if setup else ""
    figures = [_figure(row, why or doubts.get(row.concurrency or 0, "")) for row in pair.rows]
    users = sorted(
        {x.concurrency for x in a.levels if x.service == pair.a}
        | {x.concurrency for x in b.levels if x.service == pair.b}
    )
    levels = [
        LevelRow(concurrency=at, a=_verdict(a, pair.a, at), b=_verdict(b, pair.b, at))
        for at in users
    ]
    return ServicePair(
        a=pair.a, b=pair.b, differs=pair.differs, levels=tuple(levels), figures=tuple(figures)
    )


def _other_setup(a: AcceptanceRecord, b: AcceptanceRecord, pair: Pair) -> str:
    """Why the two are not of one set-up; empty when they are."""
    if pair.differs:
        return f"{pair.b}: the set-ups differ in {'; '.join(pair.differs)}"
    if pair.a not in a.fingerprints or pair.b not in b.fingerprints:
        return f"{pair.b}: a run does not say what it was of (made by an older airbundle)"
    return ""


def _doubts(record: AcceptanceRecord, service: str) -> dict[int, str]:
    """Levels whose figures are no reference, and why: a gate that failed, requests that were not answered."""
    found = {}
    for level in record.levels:
        if level.service == service:
            where = (service, level.concurrency)
            failed = next(
                (g.reason or g.name for g in record.gates
                 if g.state == "failed" and (g.service, g.concurrency) == where), "",
            )  # fmt: skip
            if why := failed or doubt_of(record, level):
                found[level.concurrency] = why
    return found


def _figure(row: Row, why_not: str) -> FigureRow:
    return FigureRow(
        concurrency=row.concurrency or 0,
        metric=row.metric,
        a=row.a,
        b=row.b,
        worst=row.worst,
        best=row.best,
        outcome="not judged" if why_not else row.outcome,
        basis=why_not or row.basis,
    )


def _verdict(record: AcceptanceRecord, service: str, users: int) -> Verdict | None:
    if not any((x.service, x.concurrency) == (service, users) for x in record.levels):
        return None
    return overall(
        tuple(c for c in record.checks if (c.service, c.concurrency) == (service, users))
    )


def _setup(a: AcceptanceRecord, b: AcceptanceRecord, pairs: tuple[Pair, ...]) -> Iterator[SetupRow]:
    """What differs, that which decides first."""
    for pair in pairs:
        one, other = a.fingerprints.get(pair.a), b.fingerprints.get(pair.b)
        for field in Fingerprint.model_fields:
            values = (_text(getattr(one, field, None)), _text(getattr(other, field, None)))
            if values[0] != values[1]:
                what = f"{pair.b}: {field.replace('_', ' ')}"
                yield SetupRow(what=what, a=values[0], b=values[1], decides=True)
    yield from _differing("bundle", {"": a.bundle_id}, {"": b.bundle_id})
    yield from _differing("models", {"": ", ".join(a.models)}, {"": ", ".join(b.models)})
    plans = [{name: getattr(x.plan, name) for name in _PLAN} for x in (a, b)]
    yield from _differing("plan", plans[0], plans[1])
    yield from _differing("host", a.host, b.host)


def _differing(
    what: str, one: Mapping[str, object], other: Mapping[str, object]
) -> Iterator[SetupRow]:
    for name in dict.fromkeys((*one, *other)):
        a, b = _text(one.get(name)), _text(other.get(name))
        if a != b:
            shown = f"{what}: {name.replace('_', ' ')}" if name else what
            yield SetupRow(what=shown, a=a, b=b, decides=False)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
