"""What is watched beside the requests: the client's own event loop, and the engine's counters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bundler.accept.exposition import values
from bundler.accept.statistics import quantile
from bundler.domain.facts import ServerWindow
from bundler.ports import ChatSession

_TICK_S = 0.01
_POLL_S = 2.0
_METRICS = "/metrics"
# What vLLM and llama.cpp call the same thing (facts read from their sources: vllm/v1/metrics/loggers.py,
# tools/server/server-context.cpp). vLLM's have a series for each engine of a data-parallel group.
_NAMES = {
    "requests": ("vllm:time_to_first_token_seconds_count",),
    "ttft_s": ("vllm:time_to_first_token_seconds_sum",),
    "queries": ("vllm:prefix_cache_queries_total",),
    "hits": ("vllm:prefix_cache_hits_total",),
    "in_flight": (
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "llamacpp:requests_processing",
        "llamacpp:requests_deferred",
    ),
}
_ALL_NAMES = tuple(name for names in _NAMES.values() for name in names)


def figures(text: str) -> dict[str, float]:
    """What we ask of a page in Prometheus' text format; a figure that is not there is left out."""
    read = values(text, _ALL_NAMES)
    found: dict[str, float] = {}
    for figure, names in _NAMES.items():
        sound = [value for name in names for value in read.get(name, ()) if 0 <= value < 2**60]
        if sound:
            found[figure] = sum(sound)
    return found


@dataclass
class Watch:
    """What was seen while a level was measured."""

    lags_s: list[float] = field(default_factory=list)
    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)
    in_flight: list[float] = field(default_factory=list)

    @property
    def lag_ms_p99(self) -> float | None:
        """How late the event loop was, at the 99th percentile; None when it was never asked."""
        lag = quantile(self.lags_s, 0.99)
        return None if lag is None else round(lag * 1000, 4)

    @property
    def server(self) -> ServerWindow | None:
        """What the engine counted in between; None when it shows no counters."""
        if not self.before or not self.after:
            return None
        requests, ttft_s = self._rise("requests"), self._rise("ttft_s")
        mean = 1000 * ttft_s / requests if requests and ttft_s is not None else None
        polls = self.in_flight
        return ServerWindow(
            requests=None if requests is None else int(requests),
            ttft_ms_mean=None if mean is None else round(mean, 4),
            prefix_queries=self._rise("queries"),
            prefix_hits=self._rise("hits"),
            in_flight_mean=round(sum(polls) / len(polls), 4) if polls else None,
            polls=len(polls),
        )

    def _rise(self, figure: str) -> float | None:
        """None also for a counter that fell: the engine was restarted."""
        if figure not in self.before or figure not in self.after:
            return None
        rise = self.after[figure] - self.before[figure]
        return rise if rise >= 0 else None


@asynccontextmanager
async def watching(session: ChatSession) -> AsyncIterator[Watch]:
    """Watch until the end of the `with`."""
    watch = Watch(before=figures(await session.page(_METRICS)))
    tasks = [asyncio.ensure_future(_tick(watch))]
    if "in_flight" in watch.before:
        tasks.append(asyncio.ensure_future(_poll(session, watch)))
    try:
        yield watch
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    watch.after = figures(await session.page(_METRICS))


async def _tick(watch: Watch) -> None:
    """Ask for a wake-up every so often; each delay is one that a token's arrival could have met."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _TICK_S
        await asyncio.sleep(_TICK_S)
        watch.lags_s.append(max(0.0, loop.time() - due))


async def _poll(session: ChatSession, watch: Watch) -> None:
    while True:
        await asyncio.sleep(_POLL_S)
        seen = figures(await session.page(_METRICS)).get("in_flight")
        if seen is not None:
            watch.in_flight.append(seen)
