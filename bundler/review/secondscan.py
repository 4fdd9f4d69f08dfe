"""A second opinion on pickles: picklescan (https://github.com/mmaitre314/picklescan), where it is installed.

It reads opcodes as we do, by another list of what is dangerous. Its name, version and result are shown; without it
the pack says "not scanned". Bytes and opcodes are bounded by us, as it bounds neither.
"""

from __future__ import annotations

import importlib.util
import io
import logging
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from bundler.format.untrusted import shown

_PACKAGE = "picklescan"
_MAX_OPCODES = 1_000_000
# For each STACK_GLOBAL it walks back over what fills the memo.
_MAX_STEPS = 10_000_000
_SHOWN = 8


@dataclass(frozen=True)
class Opinion:
    """What it names dangerous and suspicious, as `module.name`; `fault` says what it did not read."""

    dangerous: tuple[str, ...] = ()
    suspicious: tuple[str, ...] = ()
    fault: str = ""


def scanner() -> str:
    """Name and version; empty when it is not installed."""
    try:
        return f"{_PACKAGE} {version(_PACKAGE)}" if importlib.util.find_spec(_PACKAGE) else ""
    except PackageNotFoundError:
        return ""


def second_opinion(data: bytes, opcodes: int, fetches: int, memos: int) -> Opinion:
    """Of the pickles in some bytes, one behind the other.

    Args:
        data: the bytes.
        opcodes: how many they have, as our own reader counted them.
        fetches: how many of these are STACK_GLOBAL.
        memos: how many of these fill the memo.
    """
    from picklescan.scanner import SafetyLevel, scan_pickle_bytes

    if opcodes > _MAX_OPCODES or fetches * memos > _MAX_STEPS:
        return Opinion(fault=f"too long for it ({opcodes} opcodes)")
    # It complains on the standard error of what it cannot read, which is said in the pack.
    logging.getLogger(_PACKAGE).setLevel(logging.CRITICAL + 1)
    try:
        found = scan_pickle_bytes(io.BytesIO(data), "pickle")
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, MemoryError, OSError,
            RecursionError) as cause:  # fmt: skip
        return Opinion(fault=f"it failed: {shown(str(cause))}")
    named: dict[object, list[str]] = {level: [] for level in SafetyLevel}
    for one in found.globals:
        named[one.safety].append(shown(f"{one.module}.{one.name}"))
    return Opinion(
        tuple(sorted(named[SafetyLevel.Dangerous])), tuple(sorted(named[SafetyLevel.Suspicious]))
    )


def together(several: list[Opinion]) -> Opinion:
    """Of the pickles in one archive."""
    return Opinion(
        tuple(dict.fromkeys(name for one in several for name in one.dangerous))[:_SHOWN],
        tuple(dict.fromkeys(name for one in several for name in one.suspicious))[:_SHOWN],
        next((one.fault for one in several if one.fault), ""),
    )
