"""Which vLLM version first and last knew a name. A stand-in for the measured table."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_KNOWN: dict[tuple[str, str], tuple[str, str | None]] = {
    ("architecture", "Qwen3_5ForConditionalGeneration"): ("0.17.0", None),
    ("architecture", "Qwen3_5MoeForConditionalGeneration"): ("0.17.0", None),
    ("choice", "--kv-cache-dtype=nvfp4"): ("0.20.0", None),
    ("choice", "--moe-backend=triton_unfused"): ("0.21.0", None),
    ("env", "VLLM_ATTENTION_BACKEND"): ("0.11.0", "0.14.1"),
    ("env", "VLLM_MOE_USE_DEEP_GEMM"): ("0.11.1", None),
    ("env", "VLLM_SLEEP_WHEN_IDLE"): ("0.11.0", "0.17.1"),
    ("flag", "--gdn-prefill-backend"): ("0.18.0", None),
    ("flag", "--num-lookahead-slots"): ("0.11.0", "0.12.0"),
}


def first_version(kind: str, name: str) -> str | None:
    """The first version that knows it; None when no version is known to."""
    return _KNOWN.get((kind, name), (None, None))[0]


def last_version(kind: str, name: str) -> str | None:
    """The last version that knew it; None when it is not known to be gone."""
    return _KNOWN.get((kind, name), (None, None))[1]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one most likely means."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.8)), None)
