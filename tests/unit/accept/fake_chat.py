"""A ChatClient on a simulated clock: hours of load pass in milliseconds, and to the microsecond."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bundler.errors import EngineError
from bundler.ports import ChatRequest, Delta, Task


class SimulatedTime:
    """A Clock whose time moves only when every task waits."""

    def __init__(self) -> None:
        self.at = 100.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0
        self._mover: asyncio.Task[None] | None = None

    def now(self) -> str:
        return "2026-01-02T03:04:05Z"

    def monotonic(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds

    async def wait(self, seconds: float) -> None:
        self._count += 1
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.at + seconds, self._count, future))
        if self._mover is None or self._mover.done():
            self._mover = asyncio.ensure_future(self._move())
        await future

    async def _move(self) -> None:
        while self._waiting:
            for _ in range(20):  # let every task that can run reach its next wait
                await asyncio.sleep(0)
            at, _, future = heapq.heappop(self._waiting)
            self.at = max(self.at, at)
            if not future.done():
                future.set_result(None)


@dataclass
class Behaviour:
    """How the fake engine answers."""

    ttft_s: float = 0.1
    gap_s: float = 0.01
    tokens_per_word: float = 2.0
    template_tokens: int = 12
    usage: bool = True
    output_tokens: int | None = None
    fails: Callable[[int], str] = lambda number: ""
    fail_after_s: float = 0.05


@dataclass
class FakeChat:
    """Answers requests as its behaviour says; remembers what it was asked and how many at once."""

    time: SimulatedTime
    behaviour: Behaviour = field(default_factory=Behaviour)
    requests: list[ChatRequest] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    def read(self, url: str, path: str) -> str:
        return ""

    async def page(self, path: str) -> str:
        return ""

    def healthy(self, url: str, path: str) -> bool:
        return True

    def complete(self, url: str, request: ChatRequest) -> str:
        return "pong"

    def session(self, url: str) -> FakeChat:
        return self

    async def __aenter__(self) -> FakeChat:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    async def listen(self, request: ChatRequest, take: Callable[[Delta], None]) -> bool:
        async for delta in self.stream(request):
            take(delta)
        return True

    async def stream(self, request: ChatRequest) -> AsyncIterator[Delta]:
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            async for delta in self._deltas(request, len(self.requests)):
                yield delta
        finally:
            self.in_flight -= 1

    async def _deltas(self, request: ChatRequest, number: int) -> AsyncIterator[Delta]:
        how = self.behaviour
        if error := how.fails(number):
            await self.time.wait(how.fail_after_s)
            raise EngineError(error)
        await self.time.wait(how.ttft_s)
        count = how.output_tokens if how.output_tokens is not None else request.max_tokens
        for place in range(count):
            if place:
                await self.time.wait(how.gap_s)
            yield Delta(at=self.time.at, text="a ")
        yield Delta(at=self.time.at, finish_reason="length")
        if how.usage:
            words = len(request.prompt.split()) - 1
            asked = round(how.template_tokens + words * how.tokens_per_word)
            yield Delta(at=self.time.at, input_tokens=asked, output_tokens=count)


class CountingProgress:
    """Counts units and keeps the notes."""

    def __init__(self) -> None:
        self.done = 0
        self.total = 0
        self.units: list[str] = []
        self.notes: list[str] = []

    @contextmanager
    def task(self, label: str, total: int, unit: str = "bytes") -> Iterator[Task]:
        self.total += total
        self.units.append(unit)
        yield self

    def advance(self, amount: int) -> None:
        self.done += amount

    def note(self, line: str) -> None:
        self.notes.append(line)
