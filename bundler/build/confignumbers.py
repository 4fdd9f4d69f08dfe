"""Whole numbers out of a config.json that anybody may have written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MOST = 2**40
# Of these the engine needs one number each; others are lists in some models, or "auto".
_PLAIN = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")


def number(config: Mapping[str, Any], *keys: str) -> int:
    """The first of the keys that holds a sensible positive whole number, else 0."""
    for key in keys:
        value = config.get(key)
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is int and 0 < value < _MOST:
            return value
    return 0


def misfits(config: Mapping[str, Any]) -> list[str]:
    """Keys that must hold one number and hold something else, which no engine can take."""
    return [
        key
        for key in _PLAIN
        if config.get(key) is not None
        and not isinstance(config[key], list)
        and not (type(config[key]) in (int, float) and 0 <= config[key] < _MOST)
    ]
