"""What a load does right now, in one line: for the bar on a terminal and for the lines of a log.

It is told of requests by the event loop that measures and of the engine by the sampler's thread, so each
call only appends; figures are made when somebody looks.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from bundler.cli.streams import ERR

if TYPE_CHECKING:
    from bundler.domain.facts import RequestSample
    from bundler.domain.telemetry import EngineObservation

# The newest requests tell how it is now; sorting more would cost the client time.
_MOST_REQUESTS = 1000
# Tokens count over so long, where the engine has no counter of its own.
_WINDOW_S = 10.0


class LoadFigures:
    """Thread-safe. Empty until a level begins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begin("")

    def begin(self, label: str) -> None:
        """A level begins, with its warm-up. Its label is `service x8`."""
        self._service = label.rpartition(" x")[0]
        self._engine: EngineObservation | None = None
        self._engine_rate: float | None = None
        self._reset("warm-up")

    def measuring(self) -> None:
        """The warm-up is over; what it took is forgotten."""
        self._reset("measured")

    def _reset(self, phase: str) -> None:
        with self._lock:
            self._phase = phase
            self._began = time.monotonic()
            self._failed = 0
            self._ttft_ms: deque[float] = deque(maxlen=_MOST_REQUESTS)
            self._ended: deque[tuple[float, int]] = deque(maxlen=_MOST_REQUESTS)

    def answered(self, sample: RequestSample) -> None:
        """A request ended."""
        with self._lock:
            if not sample.ok:
                self._failed += 1
                return
            self._ended.append((time.monotonic(), sample.output_tokens))
            if sample.ttft_ms is not None:
                self._ttft_ms.append(sample.ttft_ms)

    def seen(self, engine: EngineObservation) -> None:
        """The engine's own metrics, as they were just read. Those of other services say nothing here."""
        if engine.service != self._service:
            return
        with self._lock:
            before, self._engine = self._engine, engine
            self._engine_rate = None
            if before is None:
                return
            took = engine.t_s - before.t_s
            if took > 0 and None not in (before.generation_tokens, engine.generation_tokens):
                made = (engine.generation_tokens or 0) - (before.generation_tokens or 0)
                self._engine_rate = made / took if made >= 0 else None

    def words(self) -> str:
        """The line of now; empty while no request has ended and no engine was seen."""
        with self._lock:
            parts = [*self._requests(), *self._server()]
            return f"{ERR.word(self._phase)}: {', '.join(parts)}" if parts else ""

    def _requests(self) -> list[str]:
        parts = []
        if self._ttft_ms:
            order = sorted(self._ttft_ms)
            p50, p95 = (order[int(share * (len(order) - 1))] for share in (0.5, 0.95))
            parts.append(f"TTFT p50/p95 {_ms(p50)}/{_ms(p95)} ms")
        rate = self._engine_rate if self._engine_rate is not None else self._rate()
        if rate is not None:
            parts.append(ERR.spoken(f"{rate:,.0f} tok/s now"))
        if self._failed:
            parts.append(_counted(f"{self._failed}", "failed"))
        return parts

    def _rate(self) -> float | None:
        now = time.monotonic()
        took = min(_WINDOW_S, now - self._began)
        tokens = sum(count for at, count in self._ended if at >= now - took)
        return tokens / took if tokens and took > 0 else None

    def _server(self) -> list[str]:
        if self._engine is None:
            return []
        parts = []
        if self._engine.running is not None:
            parts.append(_counted(f"{self._engine.running:.0f}", "running"))
        if self._engine.waiting is not None:
            parts.append(_counted(f"{self._engine.waiting:.0f}", "waiting"))
        if self._engine.kv_usage is not None:
            parts.append(f"KV {self._engine.kv_usage * 100:.0f} %")
        return [f"{ERR.word('engine')}: {', '.join(parts)}"] if parts else []


def _counted(number: str, state: str) -> str:
    """A number and what it counts, in the order of the reader's language."""
    return f"{ERR.word(state)} {number}" if ERR.korean else f"{number} {state}"


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
