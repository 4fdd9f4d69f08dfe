"""Prometheus text -> the few numbers that are looked for. The text comes from a server: nothing of it is believed.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ . `name{labels} value [timestamp]` on a line
of its own; what does not look so is passed over, as are values that are no finite numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

# No label set is needed: series of one name are told apart by nothing that matters here.
_SERIES = re.compile(r"([A-Za-z_:][\w:]{0,200})")
_MOST_LINES = 20_000
_LONGEST_LINE = 16_384


def values(text: str, names: Iterable[str]) -> dict[str, list[float]]:
    """Name -> the values of all its series, in order; only of those `names` that are there.

    Args:
        text: what /metrics answered; the first 20,000 lines of up to 16 KiB are read.
        names: exact names, with their `_total`.
    """
    wanted = frozenset(names)
    found: dict[str, list[float]] = {}
    for line in _lines(text):
        name = _SERIES.match(line)
        if name and name[1] in wanted:
            value = _value(line[name.end() :])
            if value is not None:
                found.setdefault(name[1], []).append(value)
    return found


def _lines(text: str) -> Iterator[str]:
    start = 0
    for _ in range(_MOST_LINES):
        if start >= len(text):
            return
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if 0 < end - start <= _LONGEST_LINE:
            yield text[start:end].strip()
        start = end + 1


def _value(rest: str) -> float | None:
    """The number behind the labels, which may themselves hold quoted braces and spaces."""
    if rest.startswith("{"):
        end = _labels_end(rest)
        if end is None:
            return None
        rest = rest[end:]
    words = rest.split()
    if not 1 <= len(words) <= 2 or not rest[:1].isspace():
        return None
    try:
        number = float(words[0])
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _labels_end(rest: str) -> int | None:
    quoted = escaped = False
    for place, letter in enumerate(rest):
        if escaped:
            escaped = False
        elif letter == "\\" and quoted:
            escaped = True
        elif letter == '"':
            quoted = not quoted
        elif letter == "}" and not quoted:
            return place + 1
    return None
