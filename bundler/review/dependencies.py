"""Which wheels of a closure need which: Requires-Dist, judged for the target and the asked extras."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from bundler.domain.target import Target


def dependency_graph(
    stated: Mapping[str, Sequence[str]], target: Target
) -> dict[str, tuple[str, ...]]:
    """Name -> the names that it needs, of those that are in the closure; canonical names, sorted.

    Args:
        stated: canonical name -> its Requires-Dist.
        target: whose markers hold.
    """
    environment = _environment(target)
    parsed = {name: tuple(_parsed(texts)) for name, texts in stated.items()}
    extras: dict[str, set[str]] = {name: {""} for name in stated}
    graph: dict[str, set[str]] = {name: set() for name in stated}
    # Asked extras only ever grow, so that it ends.
    waiting = sorted(stated)
    while waiting:
        name = waiting.pop()
        for requirement in parsed[name]:
            needed = canonicalize_name(requirement.name)
            if needed not in graph or not _holds(requirement, extras[name], environment):
                continue
            if needed != name:
                graph[name].add(needed)
            asked = {canonicalize_name(extra) for extra in requirement.extras}
            if not asked <= extras[needed]:
                extras[needed] |= asked
                waiting.append(needed)
    return {name: tuple(sorted(needed)) for name, needed in graph.items()}


def _parsed(texts: Sequence[str]) -> list[Requirement]:
    found = []
    for text in texts:
        try:
            found.append(Requirement(text))
        except InvalidRequirement:
            continue
    return found


def _holds(requirement: Requirement, extras: set[str], environment: dict[str, str]) -> bool:
    if requirement.marker is None:
        return True
    try:
        return any(
            requirement.marker.evaluate({**environment, "extra": extra}) for extra in sorted(extras)
        )
    except (UndefinedComparison, UndefinedEnvironmentName):
        return False


def _environment(target: Target) -> dict[str, str]:
    """PEP 508 variables of the target."""
    return {
        "os_name": "posix",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": target.arch,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "implementation_version": f"{target.python}.0",
        "python_version": target.python,
        "python_full_version": f"{target.python}.0",
        "platform_release": "",
        "platform_version": "",
    }
