"""JSON and texts from strangers: bounded before they are parsed, harmless before they are shown."""

from __future__ import annotations

import json
from typing import Any

_SHOWN = 120


class NotAnObject(ValueError):  # noqa: N818 - becomes a finding, not a failure
    """Bytes that are no JSON object of a sensible size. The message fits behind a file's name."""


def shown(text: str, limit: int = _SHOWN) -> str:
    """A text as it may be printed: no control characters, no lone surrogates, not endless."""
    plain = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[:limit]
    )
    return plain if len(text) <= limit else f"{plain}..."


def parse_object(data: bytes, *, values: int, unique: bool = False) -> dict[str, Any]:
    """Parse a JSON object in UTF-8.

    Args:
        data: the bytes.
        values: most values that it may hold. A megabyte of brackets would take 30 MB of memory.
        unique: refuse a key that occurs twice in one object.

    Raises:
        NotAnObject: what is wrong.
    """
    if data.count(b"[") + data.count(b"{") + data.count(b",") > values:
        raise NotAnObject(f"has more than {values} values")
    try:
        value = json.loads(data.decode(), object_pairs_hook=_once if unique else dict)
    except NotAnObject:
        raise
    except (ValueError, RecursionError) as cause:
        raise NotAnObject(f"is not JSON: {shown(str(cause))}") from cause
    if not isinstance(value, dict):
        raise NotAnObject("is no JSON object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise NotAnObject(f"names {shown(key)} twice")
        found[key] = value
    return found
