"""Charts as SVG text. Pure: numbers in, markup out; colours and dashes are classes of the style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bundler.adapters.report_html.texts import both, number

WIDTH, HEIGHT = 440, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 34, 46
_TICKS = 4
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
    for index, value in enumerate(values):
        x, y = plane.x(_share(index, len(levels))), plane.y(value)
        parts.append(
            f'<rect class="bar" x="{x - half:.1f}" y="{y:.1f}" width="{2 * half:.1f}"'
            f' height="{HEIGHT - _BOTTOM - y:.1f}"/>'
            f'<text class="value" x="{x:.1f}" y="{y - 5:.1f}" text-anchor="middle">{number(value)}</text>'
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
    for at, value in points:
        x = plane.x(at / x_most)
        if value is None:
            y = HEIGHT - _BOTTOM - 6
            parts.append(f'<path class="cross" d="M{x - 4:.1f} {y - 4}l8 8m0-8l-8 8"/>')
        else:
            parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{plane.y(value):.1f}" r="3.2"/>')
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
    parts = []
    for step in range(_TICKS + 1):
        value = plane.y_most * step / _TICKS
        y = plane.y(value)
        parts.append(
            f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_tick(value)}</text>'
        )
    return "".join(parts)


def _tick(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _x_levels(levels: Sequence[int]) -> str:
    y = HEIGHT - _BOTTOM + 17
    marks = "".join(
        f'<text x="{_Plane.x(_share(index, len(levels))):.1f}" y="{y}" text-anchor="middle">{level}</text>'
        for index, level in enumerate(levels)
    )
    return marks + _x_title("동시 요청 수", "requests in flight")


def _x_seconds(most: float) -> str:
    y = HEIGHT - _BOTTOM + 17
    marks = "".join(
        f'<text x="{_Plane.x(step / _TICKS):.1f}" y="{y}"'
        f' text-anchor="{"end" if step == _TICKS else "middle"}">{_tick(most * step / _TICKS)}</text>'
        for step in range(_TICKS + 1)
    )
    return marks + _x_title("측정 시작 후 경과 시간 (s)", "seconds since the level began")


def _x_title(ko: str, en: str) -> str:
    place = f'x="{_Plane.x(0.5):.1f}" y="{HEIGHT - 8}" text-anchor="middle"'
    return f'<text class="ko" {place}>{ko}</text><text class="en" {place}>{en}</text>'


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
