"""Two settings compared (`accept --ab`): the ratio of each figure with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from bundler.adapters.report_html.texts import both
from bundler.domain.ab import ABRecord, Comparison

_WIDTH, _HEIGHT = 220, 20
# Ratios from a half to the double, on a logarithmic axis, fill the picture.
_LEAST, _MOST = 0.5, 2.0


def compared(records: Sequence[ABRecord]) -> str:
    """The section; nothing when nothing was compared."""
    if not records:
        return ""
    title = both("두 설정의 비교(A/B)", "Two settings compared (A/B)")
    return f"<h2>{title}</h2>{''.join(map(_one, records))}"


def _one(record: ABRecord) -> str:
    a, b = record.arms
    names = (
        ("지표", "Figure"), ("B ÷ A", "B over A"), ("95% 구간", "95 % interval"), ("위치", "Where it lies"),
        ("나은 쪽", "Better"),
    )  # fmt: skip
    head = "".join(f"<th>{both(*name)}</th>" for name in names)
    rows = "".join(map(_row, record.comparisons))
    style = "PASS" if record.decided else "INCONCLUSIVE"
    table = (
        '<div class="scroll" tabindex="0" role="group" aria-label="A/B">'
        f'<table class="data"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )
    return (
        f"<p><strong>A</strong> {escape(a.words)} · <strong>B</strong> {escape(b.words)}</p>"
        f'<p class="{style}"><strong>{escape(record.said)}</strong></p>{table if rows else ""}'
        f'<p class="dim">{escape(record.began)} – {escape(record.ended)}</p>'
    )


def _row(one: Comparison) -> str:
    return (
        f"<tr><td><code class=metric>{escape(one.figure)}</code></td><td class=num>{one.ratio:.2f}</td>"
        f"<td class=num>{one.low:.2f} – {one.high:.2f}</td><td>{interval(one.ratio, one.low, one.high)}</td>"
        f"<td>{escape(one.wins or '–')}</td></tr>"
    )


def interval(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """A ratio on an axis whose middle is 1, with its interval where there is one."""
    band = ""
    if low is not None and high is not None:
        left, right = _x(low), _x(high)
        band = f'<rect class="range" x="{left:.1f}" y="5" width="{max(right - left, 1):.1f}" height="10"/>'
    return (
        f'<svg class="range-bar" viewBox="0 0 {_WIDTH} {_HEIGHT}" aria-hidden="true">'
        f'<rect class="rail" y="9" width="{_WIDTH}" height="2"/>{band}'
        f'<rect class="one" x="{_WIDTH / 2 - 0.5}" width="1" height="{_HEIGHT}"/>'
        f'<circle class="s0" cx="{_x(ratio):.1f}" cy="10" r="4"/></svg>'
    )


def _x(ratio: float) -> float:
    share = math.log(max(ratio, 1e-9) / _LEAST) / math.log(_MOST / _LEAST)
    return min(max(share, 0.0), 1.0) * (_WIDTH - 10) + 5
