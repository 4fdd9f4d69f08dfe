"""What an engine said: the beginning of its log, its last lines, and the one that names a cause."""

from __future__ import annotations

import re
from pathlib import Path

from bundler.errors import disk_errors

LAST_BYTES = 128 * 1024
# A start is over long before this much is said, unless the engine is told to say everything.
FIRST_BYTES = 8 * 2**20
# `RuntimeError: ...`, wherever a logger's prefix lets it begin.
_EXCEPTION = re.compile(r"\b[A-Za-z_.]*(?:Error|Exception): \S")
# A level that a logger wrote; `(run with NCCL_DEBUG=INFO for details)` is an error's own words.
_HARMLESS = re.compile(
    r"(?<!=)\b(?:DEBUG|INFO|WARNING|WARN)\b|\blevel=(?:DEBUG|INFO|WARN)\b|[Ww]arning: "
)


def last_words(path: Path) -> list[str]:
    """The end of a log, line by line, empty lines left out; nothing when there is no log."""
    if not path.is_file():
        return []
    with disk_errors("reading", path), path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LAST_BYTES))
        text = file.read().decode("utf-8", "replace")
    return [line for line in text.splitlines() if line.strip()]


def first_words(path: Path) -> list[str]:
    """The beginning of a log, line by line: what an engine says while it starts."""
    if not path.is_file():
        return []
    with disk_errors("reading", path), path.open("rb") as file:
        return file.read(FIRST_BYTES).decode("utf-8", "replace").splitlines()


def is_harmless(line: str) -> bool:
    """Whether a logger marked the line as less than an error."""
    return _HARMLESS.search(line) is not None


def telling_line(words: list[str]) -> str:
    """The line that most likely names the cause.

    The first exception, since an engine of several processes repeats the news of a dead worker; else
    the last line that speaks of an error; else the last line.
    """
    grave = [line for line in words if not is_harmless(line)]
    first = next((line for line in grave if _EXCEPTION.search(line)), None)
    if first is None:
        first = ([line for line in grave if "error" in line.lower()] or words or [""])[-1]
    return first.strip()[:300]
