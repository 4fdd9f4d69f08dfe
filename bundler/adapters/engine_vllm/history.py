"""Which vLLM version first and last knew a name: advice for messages, never the judgement itself.

The table is read from real wheels by scripts/gen_vllm_history.py, and exact among the versions in it.
Kinds: `architecture`, `env`, `flag`, and `choice` (`--moe-backend=triton`).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Any


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    text = files("bundler.adapters.engine_vllm").joinpath("history.json").read_text("utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def known_versions() -> tuple[str, ...]:
    """The versions that were read, oldest first."""
    return tuple(_table()["versions"])


def first_version(kind: str, name: str) -> str | None:
    """The first version that knows it; None when no version is known to."""
    span = _table()[kind].get(name)
    return known_versions()[span[0]] if span else None


def last_version(kind: str, name: str) -> str | None:
    """The last version that knew it; None when the newest one still does, or none ever did."""
    span = _table()[kind].get(name)
    return known_versions()[span[1]] if span and len(span) == 2 else None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one most likely means."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.8)), None)
