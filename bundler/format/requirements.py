"""A closure as a hashed requirements file, which uv, pip and pip-sync install with --require-hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bundler.domain.lock import LockedWheel


def requirements_text(wheels: Iterable[LockedWheel]) -> bytes:
    """One pinned, hashed line for each wheel, sorted by name: to install from a folder of wheels."""
    return _text(wheels, _by_version)


def addressed_requirements_text(wheels: Sequence[LockedWheel]) -> bytes:
    """The same to install on the connected side, where the indexes are.

    A wheel that an ordinary index cannot have is named with its address: a file, or one with a local
    version such as `2.10.0+cu129`, which PyPI refuses
    (https://packaging.python.org/en/latest/specifications/version-specifiers/#local-version-identifiers).
    One that is made from the engine's archive is in no index: whoever has that name there is someone else.
    """
    made = [wheel for wheel in wheels if wheel.url == "archive"]
    notes = [f"# {_by_version(wheel)} is made from the engine's archive\n" for wheel in made]
    others = [wheel for wheel in wheels if wheel.url != "archive"]
    return "".join(notes).encode() + _text(others, _by_address)


def _text(wheels: Iterable[LockedWheel], named: Callable[[LockedWheel], str]) -> bytes:
    lines = [
        f"{named(wheel)} --hash=sha256:{wheel.sha256}\n"
        for wheel in sorted(wheels, key=lambda wheel: wheel.name)
    ]
    return "".join(lines).encode()


def _by_version(wheel: LockedWheel) -> str:
    return f"{wheel.name}=={wheel.version}"


def _by_address(wheel: LockedWheel) -> str:
    if wheel.url.startswith("file:") or "+" in wheel.version:
        return f"{wheel.name} @ {wheel.url}"
    return _by_version(wheel)
