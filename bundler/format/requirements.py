"""A closure as a hashed requirements file, which uv, pip and pip-sync install with --require-hashes."""

from __future__ import annotations

from collections.abc import Iterable

from bundler.domain.lock import LockedWheel


def requirements_text(wheels: Iterable[LockedWheel]) -> bytes:
    """One pinned, hashed line for each wheel, sorted by name."""
    lines = [
        f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n"
        for wheel in sorted(wheels, key=lambda wheel: wheel.name)
    ]
    return "".join(lines).encode()
