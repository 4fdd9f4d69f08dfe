"""A value against a JSON schema, as far as our own fixed schemas go: no general validator is needed for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
}


def mismatch(value: object, schema: Mapping[str, Any], where: str = "it") -> str:
    """Why a value does not fit; empty when it does.

    Knows type, enum, required, properties, items, additionalProperties: false, minimum, maximum, minItems,
    maxItems.
    """
    kind = schema["type"]
    if not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
        return f"{where} is no {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is none of the allowed values"
    if isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get(
        "maximum", value
    ):
        return f"{where} is out of range"
    if isinstance(value, list):
        return _items(value, schema, where)
    return _properties(value, schema, where) if isinstance(value, dict) else ""


def _items(value: list[object], schema: Mapping[str, Any], where: str) -> str:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return f"{where} has {len(value)} items"
    found = (mismatch(item, schema["items"], f"{where}[{n}]") for n, item in enumerate(value))
    return next((text for text in found if text), "")


def _properties(value: dict[str, object], schema: Mapping[str, Any], where: str) -> str:
    known = schema.get("properties", {})
    absent = [name for name in schema.get("required", ()) if name not in value]
    if absent:
        return f"{where} lacks {absent[0]}"
    if any(name not in known for name in value) and not schema.get("additionalProperties", True):
        return f"{where} has keys that the schema does not allow"
    found = (mismatch(value[name], known[name], name) for name in known if name in value)
    return next((text for text in found if text), "")


def parsed(text: str) -> tuple[object, str]:
    """A JSON text's value and an empty reason, or None and why it is no JSON.

    The reason is `cut off` when it may be the beginning of one.
    """
    stripped = text.strip()
    try:
        return json.loads(stripped), ""
    except RecursionError:
        return None, "it is nested too deeply"
    except ValueError as cause:
        open_end = getattr(cause, "pos", 0) >= len(stripped) or "Unterminated" in str(cause)
        return None, "cut off" if open_end else "it is no JSON"
