"""Charts as SVG text. Pure: numbers in, markup out; colours and dashes are classes of the style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles

from bundler.adapters.report_html.texts import both, number

WIDTH, HEIGHT = 440, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 34, 46
_TICKS = 4
# So many words fit beside each other below the axis, and figures above bars.
_MOST_LABELS, _MOST_VALUES = 12, 8
# A limit far above the data would press the data flat; then the caption alone tells it.
_LIMIT_ROOM = 2.5


@dataclass(frozen=True)
class Limit:
    """A line that values should stay below."""

    value: float
    label: str


@dataclass(frozen=True)
class _Plane:
    """Where values lie in the picture. `y_most` is the top of the y axis."""

    y_most: float

    def y(self, value: float) -> float:
        """Vertical place."""
        return HEIGHT - _BOTTOM - value / self.y_most * (HEIGHT - _TOP - _BOTTOM)

    @staticmethod
    def x(share: float) -> float:
        """Horizontal place of a share of the axis, 0 to 1."""
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)


def nice_top(most: float) -> float:
    """The least round number not below `most` whose quarters, the ticks, are round as well."""
    if most <= 0 or not math.isfinite(most):
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10):
        if step * power >= most * 0.9999:
            return step * power
    return 10 * power


def lines(
    levels: Sequence[int],
    series: Sequence[tuple[str, Sequence[float | None]]],
    limit: Limit | None = None,
) -> str:
    """Up to three lines over the concurrency levels, each with its own colour, dash and mark."""
    known = [value for _, values in series for value in values if value is not None]
    if not known:
        return _nothing()
    plane = _plane(known, limit)
    parts = [_y_axis(plane), _x_levels(levels), _limit(plane, limit)]
    for place, (name, values) in enumerate(series):
        points = [
            (plane.x(_share(index, len(levels))), plane.y(value), value)
            for index, value in enumerate(values)
            if value is not None
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
        parts.append(f'<polyline class="line s{place}" points="{path}"/>')
        parts += [
            f"<g><title>{name} {number(value)}</title>{_mark(place, x, y)}</g>"
            for x, y, value in points
        ]
        parts.append(_legend(place, name))
    return _svg(parts)


def bars(levels: Sequence[int], values: Sequence[float]) -> str:
    """One bar for each concurrency level, its value above it."""
    if not any(values):
        return _nothing()
    plane = _plane(list(values), None)
    parts = [_y_axis(plane), _x_levels(levels)]
    half = min(30.0, (WIDTH - _LEFT - _RIGHT) / len(levels) * 0.3)
    step = -(-len(levels) // _MOST_VALUES)
    for index, value in enumerate(values):
        x, y = plane.x(_share(index, len(levels))), plane.y(value)
        parts.append(
            f'<rect class="bar" x="{x - half:.1f}" y="{y:.1f}" width="{2 * half:.1f}"'
            f' height="{HEIGHT - _BOTTOM - y:.1f}"/>'
        )
        if index % step == 0:
            parts.append(
                f'<text class="value m" x="{x:.1f}" y="{y - 5:.1f}">{number(value)}</text>'
            )
    return _svg(parts)


def scatter(points: Sequence[tuple[float, float | None]], limit: Limit | None = None) -> str:
    """One dot for each request: seconds since the level began, value. None is a failure, a cross."""
    known = [value for _, value in points if value is not None]
    if not points:
        return _nothing()
    plane = _plane(known or [1.0], limit)
    x_most = nice_top(max(at for at, _ in points))
    parts = [_y_axis(plane), _x_seconds(x_most), _limit(plane, limit)]
    # One path of all dots and one of all crosses: an element for each request would fill the page.
    y = HEIGHT - _BOTTOM - 6
    dots = "".join(
        f"M{plane.x(at / x_most):.1f} {plane.y(value):.1f}h0"
        for at, value in points
        if value is not None
    )
    crosses = "".join(
        f"M{plane.x(at / x_most) - 4:.1f} {y - 4}l8 8m0-8l-8 8"
        for at, value in points
        if value is None
    )
    parts.append(f'<path class="dots" d="{dots}"/>' if dots else "")
    parts.append(f'<path class="cross" d="{crosses}"/>' if crosses else "")
    return _svg(parts)


def boxes(
    levels: Sequence[int], values: Sequence[Sequence[float]], limit: Limit | None = None
) -> str:
    """How each level's values are spread: p5 to p95 as a line, the middle half as a box, p50, the largest."""
    if not any(values):
        return _nothing()
    plane = _plane([max(some) for some in values if some], limit)
    parts = [_y_axis(plane), _x_levels(levels), _limit(plane, limit)]
    half = min(16.0, (WIDTH - _LEFT - _RIGHT) / len(levels) * 0.3)
    for index, some in enumerate(values):
        if not some:
            continue
        x, most = plane.x(_share(index, len(levels))), max(some)
        # Twentieths by linear interpolation, as the percentiles of the record are made.
        cuts = quantiles(some, n=20, method="inclusive") if len(some) > 1 else [most] * 19
        p5, p25, p50, p75, p95 = (plane.y(cuts[at]) for at in (0, 4, 9, 14, 18))
        told = f"p5 {number(cuts[0])}, p50 {number(cuts[9])}, p95 {number(cuts[18])}, max {number(most)}"
        parts.append(
            f'<g><title>{told}</title><path class="whisker" d="M{x:.1f} {p95:.1f}V{p5:.1f}"/>'
            f'<rect class="box-half" x="{x - half:.1f}" y="{p75:.1f}" width="{2 * half:.1f}"'
            f' height="{max(p25 - p75, 1):.1f}"/>'
            f'<path class="middle" d="M{x - half:.1f} {p50:.1f}h{2 * half:.1f}"/>'
            f'<path class="dots" d="M{x:.1f} {plane.y(most):.1f}h0"/></g>'
        )
    return _svg(parts)


def _plane(known: list[float], limit: Limit | None) -> _Plane:
    most = max(known)
    if limit and limit.value <= _LIMIT_ROOM * most:
        most = max(most, limit.value * 1.05)
    return _Plane(nice_top(most))


def _share(index: int, count: int) -> float:
    return (index + 0.5) / count


def _svg(parts: Sequence[str]) -> str:
    inside = "".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-hidden="true">{inside}</svg>'


def _nothing() -> str:
    return f'<p class="dim">{both("표시할 측정값이 없습니다.", "There is nothing to draw.")}</p>'


def _y_axis(plane: _Plane) -> str:
    rules, ticks = "", ""
    for step in range(_TICKS + 1):
        value = plane.y_most * step / _TICKS
        y = plane.y(value)
        rules += f"M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"
        ticks += f'<text class="e" x="{_LEFT - 8}" y="{y + 4:.1f}">{_tick(value)}</text>'
    return f'<path class="axis" d="{rules}"/>{ticks}'


def _tick(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _x_levels(levels: Sequence[int]) -> str:
    y = HEIGHT - _BOTTOM + 17
    step = -(-len(levels) // _MOST_LABELS)
    marks = "".join(
        f'<text x="{_Plane.x(_share(index, len(levels))):.1f}" y="{y}" class="m">{level}</text>'
        for index, level in enumerate(levels)
        if index % step == 0
    )
    return marks + _x_title("동시 요청 수", "requests in flight")


def _x_seconds(most: float) -> str:
    y = HEIGHT - _BOTTOM + 17
    marks = "".join(
        f'<text x="{_Plane.x(step / _TICKS):.1f}" y="{y}"'
        f' class="{"e" if step == _TICKS else "m"}">{_tick(most * step / _TICKS)}</text>'
        for step in range(_TICKS + 1)
    )
    return marks + _x_title("측정 시작 후 경과 시간 (s)", "seconds since the level began")


def _x_title(ko: str, en: str) -> str:
    place = f'x="{_Plane.x(0.5):.1f}" y="{HEIGHT - 8}"'
    return f'<text class="m ko" {place}>{ko}</text><text class="m en" {place}>{en}</text>'


def _limit(plane: _Plane, limit: Limit | None) -> str:
    if limit is None or limit.value > plane.y_most:
        return ""
    y = plane.y(limit.value)
    return (
        f'<line class="limit" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="limit-text" x="{_LEFT + 4}" y="{y - 5:.1f}">'
        f"{limit.label}</text>"
    )


def _legend(place: int, name: str) -> str:
    x = _LEFT + place * 80
    return (
        f'<polyline class="line s{place}" points="{x},14 {x + 28},14"/>{_mark(place, x + 14, 14)}'
        f'<text class="value" x="{x + 34}" y="18">{name}</text>'
    )


def _mark(place: int, x: float, y: float) -> str:
    """A shape of its own for each line, so that it can be told without colour."""
    if place == 0:
        return f'<circle class="s0" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
    if place == 1:
        return f'<rect class="s1" x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4"/>'
    return f'<path class="s2" d="M{x:.1f} {y - 4.2:.1f}l4.2 7.4h-8.4z"/>'
