"""Fakes for the ports that reach outside this machine or depend on time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bundler.domain.lock import LockedWheel
from bundler.format.digests import sha256_hex
from bundler.ports import WheelRequest


class FixedClock:
    """A clock that stands still but for sleeping."""

    def __init__(self, now: str = "2026-01-02T03:04:05Z") -> None:
        self._now = now
        self._elapsed = 0.0

    def now(self) -> str:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        self._elapsed += seconds


class FolderResolver:
    """Resolves to hand-made wheels: those of the requirement's own list."""

    floors = ("2.28",)

    def __init__(self, closures: Callable[[WheelRequest], list[Path]]) -> None:
        self._closures = closures
        self.requests: list[WheelRequest] = []

    def resolve(self, request: WheelRequest) -> tuple[LockedWheel, ...]:
        self.requests.append(request)
        return tuple(
            LockedWheel(
                name=path.name.split("-")[0].replace("_", "-"),
                version=path.name.split("-")[1],
                filename=path.name,
                url=path.as_uri(),
                size=path.stat().st_size,
                sha256=sha256_hex(path.read_bytes()),
            )
            for path in sorted(self._closures(request))
        )


class Count:
    """A task that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[int] = []

    def advance(self, amount: int) -> None:
        self.told.append(amount)

    @property
    def total(self) -> int:
        return sum(self.told)
