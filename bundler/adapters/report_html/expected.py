"""Expected against measured, as bars: the range that a figure should lie in, and where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from bundler.adapters.report_html.texts import both, number, said
from bundler.domain.facts import AcceptanceRecord, LevelMetrics
from bundler.domain.verdict import Verdict

_WIDTH, _HEIGHT = 300, 22
_MOST_ROWS = 60


@dataclass(frozen=True)
class _Bar:
    service: str
    concurrency: int
    metric: str
    low: float | None
    high: float | None
    measured: float | None
    style: str
    """`PASS`, `FAIL` or `INCONCLUSIVE`: the colour."""
    source: str


def expected(record: AcceptanceRecord) -> str:
    """The section; nothing when no range is known."""
    bars = [*_planned(record), *_known(record)]
    if not bars:
        return ""
    # What is out of its range is what a reader looks for.
    bars.sort(key=lambda one: one.style != "FAIL")
    names = (
        ("서비스", "Service"), ("동시 요청", "In flight"), ("지표", "Figure"), ("측정값", "Measured"),
        ("예상 범위", "Expected"), ("위치", "Where it lies"), ("근거", "From"),
    )  # fmt: skip
    head = "".join(f"<th>{both(*name)}</th>" for name in names)
    rows = "".join(map(_row, bars[:_MOST_ROWS]))
    more = len(bars) - _MOST_ROWS
    note = both(
        "띠는 예상 범위, 표시선은 측정값입니다.",
        "The band is the expected range, the mark what was measured.",
    )
    if more > 0:
        note += " " + both(
            f"외 {more}건은 report.json에 있습니다.", f"{more} more are in report.json."
        )
    label = both("예상 대 측정", "Expected against measured")
    return (
        f'<h2>{label}</h2><div class="scroll" tabindex="0" role="group" aria-label="예상 대 측정 / expected">'
        f'<table class="data"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="dim">{note}</p>'
    )


def _planned(record: AcceptanceRecord) -> list[_Bar]:
    """The plan's own ranges, each at the levels that it is for."""
    found = []
    for item in record.plan.expected:
        for level in record.levels:
            if item.concurrency != level.concurrency or item.service not in (None, level.service):
                continue
            value = _figure(level, item.metric)
            style = _judged(record, level, item.metric)
            found.append(
                _Bar(level.service, level.concurrency, item.metric, item.min, item.max, value, style,
                     said(f"source: {item.source}") if item.source else both("시험 계획", "the plan"))
            )  # fmt: skip
    return found


def _judged(record: AcceptanceRecord, level: LevelMetrics, metric: str) -> str:
    verdicts: Sequence[Verdict] = [
        one.verdict
        for one in record.checks
        if (one.service, one.concurrency) == (level.service, level.concurrency)
        and one.what.startswith(f"expected: {metric} ")
    ]
    worst = next((v for v in (Verdict.FAIL, Verdict.NOT_COMPARABLE) if v in verdicts), None)
    return (
        "PASS"
        if verdicts and worst is None
        else "FAIL"
        if worst is Verdict.FAIL
        else "INCONCLUSIVE"
    )


def _figure(level: LevelMetrics, metric: str) -> float | None:
    family, _, share = metric.partition("_ms_")
    value: float | None = (
        getattr(getattr(level, family), share) if share else getattr(level, metric)
    )
    return value


def _known(record: AcceptanceRecord) -> list[_Bar]:
    styles = {
        "within": "PASS",
        "worse": "FAIL",
        "better": "INCONCLUSIVE",
        "not judged": "INCONCLUSIVE",
    }
    found = []
    for one in record.comparisons:
        ends = [value for value in (one.worst, one.best) if value is not None]
        low, high = (min(ends), max(ends)) if len(ends) == 2 else (one.worst, one.best)
        found.append(
            _Bar(one.service, one.concurrency, one.metric, low, high, one.measured,
                 styles[one.outcome], escape(one.profile))
        )  # fmt: skip
    return found


def _row(one: _Bar) -> str:
    low = number(one.low) if one.low is not None else ""
    high = number(one.high) if one.high is not None else ""
    wanted = f"{low} – {high}" if low and high else f"≥ {low}" if low else f"≤ {high}"
    return (
        f"<tr><td>{escape(one.service)}</td><td class=num>{one.concurrency}</td>"
        f"<td><code class=metric>{escape(one.metric)}</code></td>"
        f'<td class="num {one.style}"><strong>{number(one.measured)}</strong></td>'
        f"<td class=num>{wanted}</td><td>{_svg(one)}</td><td>{one.source}</td></tr>"
    )


def _svg(one: _Bar) -> str:
    """The axis runs from zero to a little beyond the largest of the three."""
    known = [value for value in (one.low, one.high, one.measured) if value is not None]
    most = max(known, default=0.0) * 1.15 or 1.0

    def x(value: float) -> float:
        return min(max(value / most, 0.0), 1.0) * _WIDTH

    left, right = x(one.low or 0.0), x(one.high) if one.high is not None else float(_WIDTH)
    band = (
        f'<rect class="range" x="{left:.1f}" y="4" width="{max(right - left, 1):.1f}" height="14"/>'
    )
    mark = ""
    if one.measured is not None:
        at = min(max(x(one.measured), 2.0), _WIDTH - 2.0)
        mark = (
            f'<rect class="mark {one.style}" x="{at - 2:.1f}" y="0" width="4" height="{_HEIGHT}"/>'
        )
    return (
        f'<svg class="range-bar" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true">'
        f'<rect class="rail" y="10" width="{_WIDTH}" height="2"/>{band}{mark}</svg>'
    )
