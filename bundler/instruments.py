"""More of what lies outside this process, as Protocols: what an acceptance run looks and asks with.

As in `ports`, `wiring.py` chooses who serves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from bundler.domain.compared import RunsCompared
    from bundler.domain.facts import RequestSample
    from bundler.domain.telemetry import EngineObservation, GpuObservation


class DeviceSampler(Protocol):
    """Reads the GPUs again and again while a load runs. Never raises; to be used from one thread."""

    def open(self) -> str:
        """Begin; gives why nothing can be read, empty when all is well."""

    def sample(self, t_s: float) -> tuple[GpuObservation, ...]:
        """Every GPU now, marked with a time; one that has gone is left out."""

    def close(self) -> None:
        """End. Fine when it was never opened."""


@dataclass(frozen=True)
class ProcessUse:
    """What the processes of one session use: resident bytes, processor seconds, how many they are."""

    rss: int
    cpu_s: float
    processes: int


class ProcessMeter(Protocol):
    """Reads what an engine's processes use. Never raises."""

    def use(self, leader: int) -> ProcessUse | None:
        """Of the session that a process leads; None when nothing of it lives."""


@dataclass(frozen=True)
class MetricNames:
    """How an engine calls its metrics; several names of one thing are those of several versions."""

    kv_usage: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    preemptions: tuple[str, ...] = ()
    generation_tokens: tuple[str, ...] = ()
    prefix_hits: tuple[str, ...] = ()
    prefix_queries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answered:
    """What an engine's API answered: its HTTP status, and the JSON object (empty when there is none)."""

    status: int
    body: Mapping[str, object] = field(default_factory=dict)
    message: str = ""
    """The server's own words when the status is not 200: one line, no control characters."""


class ApiSession(Protocol):
    """Posts JSON to one engine."""

    async def post(self, path: str, body: Mapping[str, object], timeout_s: float) -> Answered:
        """One request, its whole answer. Raises `EngineError` when there is none, or it is no JSON object."""


class AbstractApiSession(Protocol):
    """`async with` gives an `ApiSession`."""

    async def __aenter__(self) -> ApiSession:
        """Open."""

    async def __aexit__(self, *exc: object) -> None:
        """Close."""


class ApiClient(Protocol):
    """Speaks JSON to engines: what chat alone cannot ask."""

    def session(self, url: str) -> AbstractApiSession:
        """A session with the engine at an address."""


@runtime_checkable
class LoadView(Protocol):
    """A `Progress` that also shows what a load does. Thread-safe, and cheap: a measurement waits for it."""

    def measuring(self) -> None:
        """A level's warm-up is over."""

    def answered(self, sample: RequestSample) -> None:
        """One of its requests ended."""

    def seen(self, engine: EngineObservation) -> None:
        """What the engine's metrics say now."""


class ComparisonWriter(Protocol):
    """Writes two acceptance runs, compared, for a kind of reader."""

    filename: str

    def render(self, compared: RunsCompared) -> str:
        """The whole document."""
