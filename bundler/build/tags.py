"""Which of a package's wheels a target installs: by tag rank, as pip and uv choose.

Tags: https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeVar

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import BuildTag, NormalizedName, parse_wheel_filename
from packaging.version import Version

from bundler.domain.target import Target

_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
# glibc 2.5 is manylinux1's; manylinux for aarch64 begins with 2.17 (PEP 599).
_OLDEST = {"x86_64": 5, "aarch64": 17}
# Longer names cannot be written to a disk, and their tags (`a.b-c.d-e.f`) multiply out.
_MAX_NAME = 255
_LEVELS = {f"manylinux_2_{minor}": minor for minor in range(5, 100)} | {
    name: minor for (_, minor), name in _LEGACY.items()
}
T = TypeVar("T")


def target_tags(target: Target) -> dict[Tag, int]:
    """Every tag that the target accepts -> its rank; a lower rank is preferred."""
    return _tags(target.python, target.glibc, target.arch)


@lru_cache(maxsize=8)
def _tags(python: str, glibc: str, arch: str) -> dict[Tag, int]:
    version = tuple(int(part) for part in python.split("."))
    platforms = list(_platforms(int(glibc.split(".")[1]), arch))
    tags = [
        *cpython_tags(version, platforms=platforms),
        *compatible_tags(version, interpreter=f"cp{version[0]}{version[1]}", platforms=platforms),
    ]
    return {tag: rank for rank, tag in enumerate(tags)}


def _platforms(minor: int, arch: str) -> Iterator[str]:
    for level in range(minor, _OLDEST[arch] - 1, -1):
        yield f"manylinux_2_{level}_{arch}"
        if (2, level) in _LEGACY:
            yield f"{_LEGACY[2, level]}_{arch}"
    yield f"linux_{arch}"


def parse_wheel(
    filename: str,
) -> tuple[NormalizedName, Version, BuildTag, frozenset[Tag]] | None:
    """Package, version, build and tags of a wheel's file name; None when it is none."""
    if len(filename) > _MAX_NAME:
        return None
    try:
        return parse_wheel_filename(filename)
    except ValueError:  # InvalidWheelFilename is one, as are the faults that packaging overlooks
        return None


def best_wheel(wheels: Iterable[tuple[str, T]], target: Target) -> T | None:
    """The wheel that the target prefers.

    Args:
        wheels: file name and whatever goes with it.
        target: the closed machine.

    Returns:
        What went with the best file name; None when the target accepts none. A higher build tag
        wins among equal tags (PEP 427).
    """
    ranks = target_tags(target)
    best: tuple[int, tuple[int, str], T] | None = None
    for filename, item in wheels:
        parsed = parse_wheel(filename)
        if parsed is None:
            continue
        _, _, build, tags = parsed
        fitting = [ranks[tag] for tag in tags if tag in ranks]
        if not fitting:
            continue
        key = (-min(fitting), build or (-1, ""))
        if best is None or key > best[:2]:
            best = (*key, item)
    return None if best is None else best[2]


def glibc_of(filenames: Iterable[str], target: Target) -> str:
    """The oldest glibc that still admits all these wheels, by their tags; `2.0` when any does."""
    return f"2.{max((_minor_of(name, target) for name in filenames), default=0)}"


def _minor_of(filename: str, target: Target) -> int:
    parsed = parse_wheel(filename)
    fitting = [tag for tag in parsed[3] if tag in target_tags(target)] if parsed else []
    levels = (_LEVELS.get(tag.platform.removesuffix(f"_{target.arch}"), 0) for tag in fitting)
    return min(levels, default=0)
