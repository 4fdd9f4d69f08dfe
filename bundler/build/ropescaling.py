"""How far rotary positions are stretched, as vLLM derives the longest context from it.

vllm/config/model.py, _get_and_verify_max_len: any scaling but llama3 and longrope multiplies the length,
YaRN the original one; Gemma 3's length is stated stretched already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bundler.build.confignumbers import number
from bundler.format.untrusted import shown

_LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
_STATED_ALREADY = ("llama3", "longrope", "su", "default", "mrope", "proportional")
_MOST_FACTOR = 10_000


def stretched(text: Mapping[str, Any]) -> tuple[int, str]:
    """The longest context in tokens (0: not stated), and the scaling in words."""
    length = number(text, *_LENGTHS)
    if "gemma3" in str(text.get("model_type")):
        return length, ""
    for scaling in _scalings(text):
        kind = scaling.get("rope_type", scaling.get("type"))
        factor = scaling.get("factor")
        if not isinstance(kind, str) or kind in _STATED_ALREADY:
            continue
        if isinstance(factor, bool) or not isinstance(factor, (int, float)):
            continue
        if not 1 <= factor <= _MOST_FACTOR:
            continue
        original = number(scaling, "original_max_position_embeddings") if kind == "yarn" else 0
        start = original or length
        return int(start * factor), shown(f"{kind} x{factor:g} of {start}")
    return length, ""


def _scalings(text: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """One, or one for each kind of layer (transformers 5)."""
    for key in ("rope_scaling", "rope_parameters"):
        stated = text.get(key)
        if isinstance(stated, Mapping):
            inner = [value for value in stated.values() if isinstance(value, Mapping)]
            yield from inner or [stated]
