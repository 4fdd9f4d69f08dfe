"""`--dry-run`: a command walks its own road, and what would be changed is taken down instead of done.

A second guess at what a command does is wrong sooner or later. So there is none: every place that changes a
disk or a process asks `instead` first, and all decisions before it are those of the real run. It is a state of
the process, as a command line has one command; threads see it too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Act = Literal["write", "replace", "append to", "remove", "point", "make", "start", "stop"]


@dataclass(frozen=True)
class Change:
    """What would be done, to what, how many bytes it takes (or, removed, gives back), and why."""

    act: Act
    what: str
    size: int | None = None
    why: str = ""


_taken_down: list[Change] | None = None


@contextmanager
def rehearsal() -> Iterator[list[Change]]:
    """Take down what the block would change; the list fills as it runs."""
    global _taken_down
    before, _taken_down = _taken_down, []
    try:
        yield _taken_down
    finally:
        _taken_down = before


def rehearsing() -> bool:
    """Whether nothing may be changed now."""
    return _taken_down is not None


@contextmanager
def in_earnest() -> Iterator[None]:
    """What is done all the same: filling the download cache, without which nothing could be foreseen."""
    global _taken_down
    before, _taken_down = _taken_down, None
    try:
        yield
    finally:
        _taken_down = before


def foreseen(act: Act, what: Path | str) -> bool:
    """Whether this was taken down before: what is stopped then is stopped for the rest of the rehearsal."""
    return any(one.act == act and one.what == str(what) for one in _taken_down or ())


def instead(act: Act, what: Path | str, size: int | None = None, why: str = "") -> bool:
    """Take a change down, and say that it is not to be done; False in a real run.

    Writing over a file that is there is said to be `replace`.
    """
    if _taken_down is None:
        return False
    if act == "write" and isinstance(what, Path) and os.path.lexists(what):
        act = "replace"
    _taken_down.append(Change(act, str(what), size, why))
    return True
