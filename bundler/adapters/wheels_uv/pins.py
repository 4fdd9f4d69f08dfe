"""Dependency confusion: a pinned package comes from its index alone, and nothing else from there.

What uv did is read from what uv states: for each package the index (`# from`) and the parents (`# via`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from bundler.adapters.wheels_uv.question import PROJECT
from bundler.errors import ResolveError

_PACKAGE = re.compile(
    r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?(?:==(\S+)| @ \S+)[^#]*(?:# via (.*))?$"
)
_FROM = re.compile(r"^\s+# from (\S+)\s*$")


@dataclass
class Origin:
    """Where a package came from, and who needs it. `version` is empty for one with an address."""

    version: str
    parents: tuple[str, ...]
    index: str = ""


def read_origins(text: str) -> dict[str, Origin]:
    """Parse `--annotation-style line --emit-index-annotation`; normalized package -> origin."""
    found: dict[str, Origin] = {}
    last: Origin | None = None
    for line in text.splitlines():
        package = _PACKAGE.match(line)
        if package:
            name, version, via = package.groups()
            words = [word.split() for word in (via or "").split(",")]
            parents = tuple(word[0].split("[")[0] for word in words if word)
            last = found[canonicalize_name(name)] = Origin(version or "", parents)
        elif (place := _FROM.match(line)) and last is not None:
            last.index = place.group(1)
    return found


def needed(
    origins: Mapping[str, Origin], pins: Iterable[str], requirements: Iterable[str]
) -> tuple[str, ...]:
    """Those of the pinned packages that the requirements lead to."""
    reached: set[str] = {canonicalize_name(name) for name in map(_name, requirements) if name}
    while True:
        more = {
            name
            for name, origin in origins.items()
            if name not in reached
            and any(parent != PROJECT and canonicalize_name(parent) in reached
                    for parent in origin.parents)
        }  # fmt: skip
        if not more:
            return tuple(name for name in pins if name in reached)
        reached |= more


def check_pins(
    origins: Mapping[str, Origin], pins: Mapping[str, str], *, shared: Iterable[str]
) -> None:
    """Prove from uv's own statement that every pin held.

    Args:
        origins: what uv stated.
        pins: package -> index.
        shared: indexes that are asked for every package, even if one is pinned to them.

    Raises:
        ResolveError: a pinned package came from elsewhere, or another one from a pinned index.
    """
    reserved = set(map(_plain, pins.values())) - set(map(_plain, shared))
    for name, origin in sorted(origins.items()):
        wanted = pins.get(name)
        if wanted is not None and _plain(origin.index) != _plain(wanted):
            raise ResolveError(
                f"{name} {origin.version} came from {_plain(origin.index) or 'an unnamed place'},"
                f" but is pinned to {_plain(wanted)}",
                hint="Name in engine.requirements the version that its index has, or take it out of"
                " `packages` if a local wheel of it is meant.",
            )
        if wanted is None and _plain(origin.index) in reserved:
            raise ResolveError(
                f"{name} {origin.version} came from {_plain(origin.index)}, which serves only the"
                " packages that are pinned to it",
                hint="Add it to that index's `packages` if it shall come from there.",
            )


def _name(requirement: str) -> str:
    try:
        return Requirement(requirement).name
    except InvalidRequirement:
        return ""


def _plain(url: str) -> str:
    """Without credentials and a closing slash."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")
