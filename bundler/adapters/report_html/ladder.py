"""The capacity ladder: each number of users that was tried, whether it passes, and by how much."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from bundler.adapters.report_html.glossary import term, terms
from bundler.adapters.report_html.texts import VERDICT, both, number, said
from bundler.domain.capacity import CapacityRecord
from bundler.domain.facts import AcceptanceRecord, LevelMetrics
from bundler.domain.spec import Slo
from bundler.domain.verdict import Check, Verdict, overall

_BOUNDS = re.compile(r"bounds (\S+) % and (\S+) %")
HEADS = (
    ("동시 요청", "In flight"), ("판정", "Verdict"), ("성공/요청", "Answered"), ("신뢰하한–상한 %", "Bounds %"),
    ("TTFT p95 / 한계 ms", "TTFT p95 / limit ms"), ("합계 tok/s", "tok/s in total"),
    ("사용자당 tok/s", "tok/s per user"), ("사유", "Reason"),
)  # fmt: skip


@dataclass(frozen=True)
class Rung:
    """One measurement of one level, with its verdict."""

    level: LevelMetrics
    verdict: Verdict
    checks: Sequence[Check]

    @property
    def bounds(self) -> tuple[str, str] | None:
        """What the good share is at least and at most, per cent, as the judge wrote it."""
        found = [match for one in self.checks if (match := _BOUNDS.search(one.measured))]
        return (found[0][1], found[0][2]) if found else None

    @property
    def per_user(self) -> float | None:
        """Output tokens a second that one user sees."""
        return 1000 / self.level.tpot.p50 if self.level.tpot.p50 else None


def rungs(record: AcceptanceRecord, service: str) -> list[Rung]:
    """A service's levels from few users to many. A level that nobody judged is undecided."""
    found = []
    for level in sorted(record.levels, key=lambda one: one.concurrency):
        if level.service != service:
            continue
        where = (level.service, level.concurrency)
        checks = tuple(one for one in record.checks if (one.service, one.concurrency) == where)
        found.append(Rung(level, overall(checks), checks))
    return found


def highest(found: Sequence[Rung]) -> int | None:
    """The most users that pass, below every number that fails; None when no level is such."""
    failed = [one.level.concurrency for one in found if one.verdict is Verdict.FAIL]
    good = [
        one.level.concurrency
        for one in found
        if one.verdict is Verdict.PASS and one.level.concurrency < min(failed, default=1 << 30)
    ]
    return max(good, default=None)


def ladders(record: AcceptanceRecord) -> str:
    """The section: a ladder for each service; nothing when no level was measured."""
    parts = []
    slo = record.plan.slo or Slo()
    services = list(dict.fromkeys(level.service for level in record.levels))
    for place, service in enumerate(services):
        found = rungs(record, service)
        name = escape(service)
        parts.append(
            f"<h3>{name}: {told(highest(found))}</h3>"
            + _table(found, slo, highest(found), f"ladder-{place}")
        )
    if not parts:
        return ""
    line = terms(("slo", "bound", "inconclusive", "not_comparable"), "ladder")
    return f"<h2>{both('수용 능력', 'Capacity ladder')}</h2>{line}{''.join(parts)}"


def searched(records: Sequence[CapacityRecord]) -> str:
    """The section on searches for the highest number of users (`accept --find-max`); nothing without one."""
    parts = []
    for place, one in enumerate(records):
        found = [Rung(trial.metrics, trial.verdict, trial.checks) for trial in one.trials]
        found.sort(key=lambda rung: rung.level.concurrency)
        verdict = f'<span class="tag {one.verdict.name}">{both(*VERDICT[one.verdict])}</span>'
        if one.verdict is Verdict.PASS:
            verdict = ""
        limits = _limits(one.plan.slo or Slo())
        parts.append(
            f"<h3>{escape(one.service)}: {told(one.best)} {verdict}</h3>"
            f'<p>{said(one.reason)}</p><p class="dim">{limits}; {escape(one.began)} – {escape(one.ended)}</p>'
            + _table(found, one.plan.slo or Slo(), one.best, f"search-{place}")
        )
    if not parts:
        return ""
    return f"<h2>{both('최대 동시 사용자 탐색', 'Search for the most users')}</h2>{''.join(parts)}"


def told(best: int | None) -> str:
    """The ladder's outcome in words."""
    if best is None:
        return both("합격한 단계 없음", "no level passes")
    return both(f"동시 요청 {best}건까지 합격", f"passes up to {best} in flight")


def _limits(slo: Slo) -> str:
    terms_ = [
        f"{name} ≤ {value:g} ms"
        for name, value in (("TTFT", slo.ttft_ms), ("TPOT", slo.tpot_ms), ("E2E", slo.e2e_ms))
        if value is not None
    ]
    share = f"{slo.attainment * 100:g} %"
    limits = ", ".join(terms_)
    return both(
        f"요청의 {share} 이상이 {limits or '응답'}",
        f"{limits or 'answered'} for {share} of requests",
    )


def _table(found: Sequence[Rung], slo: Slo, best: int | None, where: str) -> str:
    heads = [both(*head) for head in HEADS]
    heads[0] = term("in_flight", where, heads[0])
    heads[4] = term("ttft", where, heads[4])
    heads[5] = term("rate", where, heads[5])
    numbers = {0, 2, 3, 4, 5, 6}
    head = "".join(
        f"<th{' class=num' if place in numbers else ''}>{text}</th>"
        for place, text in enumerate(heads)
    )
    most = max((one.level.output_tokens_per_s for one in found), default=0.0)
    rows = "".join(_row(one, slo, best, most) for one in found)
    return (
        f'<div class="box"><table class="data cards ladder"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(one: Rung, slo: Slo, best: int | None, most: float) -> str:
    level = one.level
    here = best is not None and level.concurrency == best and one.verdict is Verdict.PASS
    mark = f' <span class="best-mark">{both("최고 합격", "highest pass")}</span>' if here else ""
    deciding = next((c for c in one.checks if c.verdict is one.verdict and c.reason), None)
    reason = said(deciding.reason) if deciding and one.verdict is not Verdict.PASS else ""
    limit = f"{slo.ttft_ms:,.0f}" if slo.ttft_ms is not None else "–"
    bounds = "–".join(one.bounds) if one.bounds else "–"
    late = slo.ttft_ms is not None and (level.ttft.p95 or 0) > slo.ttft_ms
    ttft = f"{number(level.ttft.p95)} / {limit}"
    cells = (
        f"<strong>{level.concurrency}</strong>{mark}",
        f'<span class="tag {one.verdict.name}">{both(*VERDICT[one.verdict])}</span>',
        f"{level.succeeded:,}/{level.requests:,}",
        bounds,
        f'<span class="red">{ttft}</span>' if late else ttft,
        f"{number(level.output_tokens_per_s)}{_meter(level.output_tokens_per_s, most)}",
        number(one.per_user),
        reason,
    )
    inside = "".join(
        f"<td{' class=num' if 2 <= place <= 6 or not place else ''}>{cell}</td>"
        for place, cell in enumerate(cells)
    )
    return f"<tr{' class=best' if here else ''}>{inside}</tr>"


def _meter(value: float, most: float) -> str:
    """A bar under a figure, as wide as its share of the most."""
    width = 100 * value / most if most > 0 else 0.0
    return (
        '<svg class="meter" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="bar" width="{width:.1f}" height="4"/></svg>'
    )
