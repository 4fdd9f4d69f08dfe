"""What the wheels themselves say, once they are here: do they admit the target's Python?

uv leaves upper bounds of Requires-Python out of account when it resolves, so a closure can name a wheel
that its own metadata refuses; better found here than by an engine that fails behind the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from bundler.build.fetch import Fetched
from bundler.build.wheelmeta import read_metadata
from bundler.domain.target import Target
from bundler.errors import ResolveError


def check_wheels(fetched: Sequence[Fetched], target: Target) -> None:
    """Refuse wheels that are none, or that do not admit the target's Python.

    Raises:
        IntegrityError: a file is not a wheel, although it has the digest that the lock names.
        ResolveError: wheels refuse the target's Python; all of them are named.
    """
    refusing = []
    for item in fetched:
        if item.kind == "wheel":
            wanted = _requires_python(item.path, item.blob.path)
            if wanted is not None and not _admits(wanted, target.python):
                refusing.append(f"{item.path.rsplit('/', 1)[-1]} ({wanted})")
    if refusing:
        raise ResolveError(
            f"not for CPython {target.python}: {', '.join(refusing)}",
            hint="Choose another version of the package or another target.python.",
        )


def _admits(wanted: SpecifierSet, python: str) -> bool:
    """Whether any patch release of a minor version is admitted (`>=3.10.12` admits 3.10)."""
    return any(wanted.contains(f"{python}.{patch}") for patch in (0, 50))


def _requires_python(name: str, path: Path) -> SpecifierSet | None:
    stated = read_metadata(name, path).get("Requires-Python")
    try:
        return SpecifierSet(stated) if stated else None
    except InvalidSpecifier:
        return None
