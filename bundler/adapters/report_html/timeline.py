"""What was seen beside the load, as panels over one time axis, with the levels as bands. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeVar

from bundler.adapters.report_html.charts import nice_top
from bundler.adapters.report_html.glossary import terms
from bundler.adapters.report_html.texts import both, number
from bundler.domain.telemetry import GpuObservation, Span, Telemetry

WIDTH = 960
_LEFT, _RIGHT, _TOP, _PANEL, _GAP, _BOTTOM = 64, 14, 30, 76, 26, 30
_TICKS = 6
_NARROW = 46
# Points of a line, of all lines together, and marks: the picture has no more pixels for them.
_MOST_POINTS, _LEAST_POINTS, _ALL_POINTS, _MOST_MARKS = 400, 40, 6_000, 120
_GIB = 2**30
T = TypeVar("T")
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class _Panel:
    """One figure over time; up to three lines, and times at which something held the clocks down."""

    ko: str
    en: str
    lines: tuple[tuple[str, Points], ...]
    top: float | None = None
    marks: tuple[tuple[float, str], ...] = ()


def observed(telemetry: Telemetry) -> str:
    """The section; nothing when nothing was sampled."""
    if not telemetry.period_s:
        return ""
    panels = [panel for panel in _panels(telemetry) if any(points for _, points in panel.lines)]
    title = (
        f"<h2>{both('부하 중 관측', 'Seen beside the load')}</h2>"
        f"{terms(('kv_cache', 'preemption'), 'timeline')}"
    )
    faults = "".join(f"<li>{escape(text)}</li>" for text in telemetry.faults)
    notes = f'<ul class="warn">{faults}</ul>' if faults else ""
    if not panels:
        return title + notes
    end = max(
        [at for panel in panels for _, points in panel.lines for at, _ in points]
        + [span.ended_s for span in telemetry.spans]
    )
    caption = both(
        "가로축은 시험 시작 후 경과 시간(s), 띠는 단계와 동시 요청 수(x), ▼는 클럭 제한 사유가 있던 시점",
        "seconds since the run began; bands are phases and requests in flight (x); ▼: clocks were held down",
    )
    return (
        f"{title}<figure>{_svg(panels, telemetry.spans, max(end, 1.0))}"
        f"<figcaption>{caption}{_reasons(panels)}</figcaption></figure>{notes}"
    )


def _panels(seen: Telemetry) -> Iterable[_Panel]:
    gpus = sorted({one.gpu for one in seen.gpus})
    for gpu in gpus:
        own = [one for one in seen.gpus if one.gpu == gpu]
        name = f"GPU {gpu}"
        yield _Panel(f"{name} 메모리, GiB", f"{name} memory, GiB",
                     (("", _points(own, lambda one: one.memory_used, _GIB)),))  # fmt: skip
        yield _Panel(f"{name} 전력, W", f"{name} power, W",
                     (("", _points(own, lambda one: one.power_w)),
                      ("cap", _points(own, lambda one: one.power_limit_w))))  # fmt: skip
        yield _Panel(f"{name} SM 클럭, MHz", f"{name} SM clock, MHz",
                     (("", _points(own, lambda one: one.sm_clock_mhz)),), marks=_brakes(own))  # fmt: skip
    for service in dict.fromkeys(one.service for one in seen.engines):
        answers = [one for one in seen.engines if one.service == service]
        yield _Panel(f"{service} KV 캐시 사용률, %", f"{service} KV cache in use, %",
                     (("", _points(answers, lambda one: one.kv_usage, 0.01)),), top=100)  # fmt: skip
        yield _Panel(f"{service} 요청", f"{service} requests",
                     (("running", _points(answers, lambda one: one.running)),
                      ("waiting", _points(answers, lambda one: one.waiting)),
                      ("preempted", _points(answers, lambda one: one.preemptions))))  # fmt: skip
    for service in dict.fromkeys(one.service for one in seen.processes):
        uses = [one for one in seen.processes if one.service == service]
        yield _Panel(f"{service} 프로세스 RSS, GiB", f"{service} processes' RSS, GiB",
                     (("", _points(uses, lambda one: one.rss, _GIB)),))  # fmt: skip


def _points(
    seen: Sequence[T], value: Callable[[T], float | None], unit: float = 1
) -> list[tuple[float, float]]:
    found = [(getattr(one, "t_s"), value(one)) for one in seen]  # noqa: B009 - every series has it
    return [(at, amount / unit) for at, amount in found if amount is not None]


def _brakes(seen: Sequence[GpuObservation]) -> tuple[tuple[float, str], ...]:
    return tuple((one.t_s, ", ".join(one.throttle_reasons)) for one in seen if one.throttle_reasons)


def _reasons(panels: Sequence[_Panel]) -> str:
    named = dict.fromkeys(text for panel in panels for _, text in panel.marks)
    return f": {escape('; '.join(named))}" if named else ""


def _svg(panels: Sequence[_Panel], spans: Sequence[Span], end: float) -> str:
    height = _TOP + len(panels) * (_PANEL + _GAP) + _BOTTOM
    parts = [_bands(spans, end, height)]
    lines = sum(len(panel.lines) for panel in panels)
    most = min(_MOST_POINTS, max(_LEAST_POINTS, _ALL_POINTS // max(lines, 1)))
    for place, panel in enumerate(panels):
        parts.append(_drawn(panel, _TOP + place * (_PANEL + _GAP) + _GAP, end, most))
    parts.append(_seconds(end, height))
    inside = "".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-hidden="true">{inside}</svg>'


def _x(at: float, end: float) -> float:
    return _LEFT + min(max(at / end, 0.0), 1.0) * (WIDTH - _LEFT - _RIGHT)


def _bands(spans: Sequence[Span], end: float, height: int) -> str:
    parts = []
    for place, span in enumerate(spans):
        left, right = _x(span.began_s, end), _x(span.ended_s, end)
        words = f"{span.service} {span.what}"
        label = span.what if right - left >= _NARROW or span.what.startswith("x") else ""
        # A correctness phase is told by its tooltip when its band is too narrow for words.
        label = label if right - left >= 6.2 * len(label) else ""
        parts.append(
            f'<g><title>{escape(words)}</title><rect class="band b{place % 2}" x="{left:.1f}" y="{_TOP - 16}"'
            f' width="{max(right - left, 0.5):.1f}" height="{height - _TOP - _BOTTOM + 16}"/>'
            f'<text x="{(left + right) / 2:.1f}" y="{_TOP - 4}" text-anchor="middle">{escape(label)}</text></g>'
        )
    return "".join(parts)


def peaks(points: Points, most: int) -> Points:
    """At most so many points: of each stretch of time its lowest and highest, so that no peak gets lost."""
    if len(points) <= most:
        return points
    step = -(-2 * len(points) // most)
    kept: list[tuple[float, float]] = []
    for at in range(0, len(points), step):
        some = points[at : at + step]
        ends = {min(some, key=lambda one: one[1]), max(some, key=lambda one: one[1])}
        kept += sorted(ends)
    return kept


def _drawn(panel: _Panel, top: int, end: float, most_points: int) -> str:
    known = [value for _, points in panel.lines for _, value in points]
    most = panel.top or nice_top(max(known))
    low = top + _PANEL
    parts = []
    for share in (0, 0.5, 1):
        y = low - share * _PANEL
        parts.append(
            f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{most * share:.4g}</text>'
        )
    place = f'x="{_LEFT}" y="{top - 6}"'
    parts.append(
        f'<text class="value ko" {place}>{escape(panel.ko)}</text>'
        f'<text class="value en" {place}>{escape(panel.en)}</text>'
    )
    for number_, (name, points) in enumerate(panel.lines):
        if not points:
            continue
        path = " ".join(
            f"{_x(at, end):.1f},{low - min(value / most, 1.0) * _PANEL:.1f}"
            for at, value in peaks(points, most_points)
        )
        peak = number(max(value for _, value in points))
        parts.append(
            f'<g><title>{escape(name)} max {peak}</title><polyline class="line s{number_}" points="{path}"/></g>'
        )
        if name:
            x = WIDTH - _RIGHT - 90 * (len(panel.lines) - number_)
            parts.append(
                f'<polyline class="line s{number_}" points="{x},{top - 10} {x + 22},{top - 10}"/>'
                f'<text x="{x + 27}" y="{top - 6}">{escape(name)}</text>'
            )
    parts += [
        f'<g><title>{escape(why)}</title><path class="brake" d="M{_x(at, end):.1f} {top + 7}l-3.5 -7h7z"/></g>'
        for at, why in panel.marks[:: -(-len(panel.marks) // _MOST_MARKS) or 1]
    ]
    return "".join(parts)


def _seconds(end: float, height: int) -> str:
    step = nice_top(end / _TICKS)
    return "".join(
        f'<text x="{_x(step * count, end):.1f}" y="{height - 10}" text-anchor="middle">{step * count:.4g}</text>'
        for count in range(_TICKS + 1)
        if step * count <= end
    )
