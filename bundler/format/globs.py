"""Which files of a model a spec wants: `include` and `exclude`, by the Hub client's rules."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


def wanted(path: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    """Whether the filters leave a file: it is included (or nothing is), and not excluded."""
    return (not include or matches(path, include)) and not matches(path, exclude)


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether any pattern fits: `*` crosses `/`, and `folder/` means all that is in it."""
    plain = (pattern.replace("\\", "/") for pattern in patterns)
    return any(
        fnmatchcase(path, f"{pattern}*" if pattern.endswith("/") else pattern) for pattern in plain
    )
