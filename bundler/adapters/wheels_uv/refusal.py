"""Why uv found no closure, in one line: which packages have no wheel, or what contradicts what.

uv writes an explanation for people; only two things are taken from it: the packages that it says
have no wheels, and those that it says no index knows. The texts are those of uv 0.9 to 0.13.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from bundler.domain.target import Target
from bundler.errors import ResolveError

_NO_WHEEL = re.compile(r"(\S+) ha(?:s|ve) no (?:usable )?wheels( with a matching)?")
_UNKNOWN = re.compile(r"(\S+) was not found in the (?:package registry|provided package locations)")
_MAX_REASON = 600


@dataclass(frozen=True)
class Refusal:
    """uv's answer when there is no closure."""

    text: str

    @property
    def without_wheel(self) -> dict[str, bool]:
        """Requirement without a wheel -> whether uv says that it has wheels, for other targets."""
        found: dict[str, bool] = {}
        for name, for_others in _NO_WHEEL.findall(self.text):
            if canonicalize_name(_name(name)):
                found[name] = found.get(name, False) or bool(for_others)
        return found

    @property
    def unknown(self) -> set[str]:
        """Packages that no index knows, normalized."""
        return {canonicalize_name(name) for name in _UNKNOWN.findall(self.text)}

    def error(self, requirements: Sequence[str]) -> ResolveError:
        """For a failure that is not about wheels."""
        reason = self.text
        if "we can conclude" in reason:
            reason = reason.split("we can conclude")[0].rstrip(" ,")
        return ResolveError(f"cannot resolve {', '.join(requirements)}: {reason[:_MAX_REASON]}")


def read_refusal(stderr: str) -> Refusal:
    """Parse what uv wrote."""
    plain = re.sub(r"\{[^{}]*\}", "", stderr)  # markers: `triton{sys_platform == 'linux'}==3.6.0`
    return Refusal(
        " ".join(re.sub(r"^(error|cause|hint|warning):", " ", plain, flags=re.M).split())
    )


def missing_wheels(
    source_only: Sequence[str], for_others: Sequence[str], target: Target
) -> ResolveError:
    """All packages without a wheel, by name, with the ways out."""
    parts = []
    if source_only:
        parts.append(
            f"{', '.join(source_only)}: the index has no wheel of {_it(source_only)} at all,"
            " only source (sdist)"
        )
    if for_others:
        parts.append(f"{', '.join(for_others)}: the index has no wheel for {describe(target)}")
    hints = []
    if source_only:
        hints.append(
            "Build a wheel of each yourself and add it to engine.wheels, or set `build_sdists: true`"
            " in engine, which runs their build code on this host."
        )
    if for_others:
        hints.append(
            "Choose another version, raise target.glibc or target.python to what the target"
            " really has, or add a wheel of your own to engine.wheels."
        )
    return ResolveError(
        "; ".join(parts), hint=" ".join(hints), without_wheel=(*source_only, *for_others)
    )


def describe(target: Target) -> str:
    """The target in words."""
    return f"{target.os} {target.arch}, CPython {target.python}, glibc {target.glibc}"


def package_of(requirement: str) -> str:
    """The normalized package of a requirement that uv printed."""
    return canonicalize_name(_name(requirement))


def _name(requirement: str) -> str:
    try:
        return Requirement(requirement).name
    except InvalidRequirement:
        return ""


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"
