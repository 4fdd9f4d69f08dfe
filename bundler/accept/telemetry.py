"""Looks at GPUs, processes and the engine's metrics while a load runs, on threads of their own.

NVML calls and a hanging /metrics may block; on the event loop they would delay the clocks of the requests.
One thread looks at GPUs and processes twice a second, another asks for /metrics once a second, so that an
engine that does not answer hides nothing of the GPUs. Each look costs the client's process a few
milliseconds.

A series (one GPU, one service) never has more than `MOST_POINTS` points: when it is full, neighbours are
merged two by two, and from then on twice as many looks make one point. A merged point is at the time of
the later one and keeps the highest memory, power, cache use and queue, the lowest clock, and every throttle reason.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bundler.accept.exposition import values
from bundler.domain.facts import ServiceState
from bundler.domain.telemetry import (
    EngineObservation,
    GpuObservation,
    ProcessObservation,
    Span,
    Telemetry,
)
from bundler.instruments import DeviceSampler, LoadView, MetricNames, ProcessMeter
from bundler.ports import ChatClient, Clock

MOST_POINTS = 1200
PERIOD_S = 0.5
_METRICS_PERIOD_S = 1.0
_LAST_LOOK_S = 6.0
T = TypeVar("T", GpuObservation, EngineObservation, ProcessObservation)


@dataclass(frozen=True)
class Watch:
    """What to look with. `names` is None for an engine without metrics."""

    devices: DeviceSampler
    meter: ProcessMeter
    chat: ChatClient
    names: MetricNames | None
    period_s: float = PERIOD_S
    metrics_period_s: float = _METRICS_PERIOD_S


@dataclass
class Series(Generic[T]):
    """A bounded run of points; see the module for how it is bounded."""

    merge: Callable[[T, T], T]
    most: int = MOST_POINTS
    points: list[T] = field(default_factory=list)
    _stride: int = 1
    _waiting: list[T] = field(default_factory=list)

    def add(self, point: T) -> None:
        """One more look."""
        self._waiting.append(point)
        if len(self._waiting) < self._stride:
            return
        self.points.append(self._merged(self._waiting))
        self._waiting.clear()
        if len(self.points) >= self.most:
            pairs = zip(self.points[::2], self.points[1::2], strict=False)
            self.points = [self.merge(one, two) for one, two in pairs]
            self._stride *= 2

    def all(self) -> list[T]:
        """Every point, those that wait for others included."""
        waiting = list(self._waiting)
        return self.points + ([self._merged(waiting)] if waiting else [])

    def _merged(self, points: list[T]) -> T:
        merged = points[0]
        for point in points[1:]:
            merged = self.merge(merged, point)
        return merged


class Sampler:
    """`with Sampler(...)` looks until the block ends; then `telemetry()` has it all."""

    def __init__(
        self,
        watch: Watch | None,
        states: Sequence[ServiceState],
        clock: Clock,
        view: LoadView | None = None,
    ) -> None:
        """Without a `watch` only the spans are kept. Zero on the time axis is now.

        `view` is told of each look at an engine.
        """
        self._watch, self._states, self._clock = watch, tuple(states), clock
        self._view = view
        self._began = clock.monotonic()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._gpus: dict[int, Series[GpuObservation]] = {}
        self._processes = {one.service: Series(merge_processes) for one in self._states}
        self._engines = {one.service: Series(merge_engines) for one in self._states}
        self._spans: list[Span] = []
        self._faults: dict[str, None] = {}

    def __enter__(self) -> Sampler:
        """Begin to look."""
        if self._watch is None:
            return self
        for work in (self._watch_host, self._watch_engines):
            thread = threading.Thread(target=self._guarded, args=(work, self._watch), daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop. A look that hangs in a driver is left behind rather than waited for."""
        self._stop.set()
        for thread in self._threads:
            thread.join(_LAST_LOOK_S)

    @contextmanager
    def span(self, service: str, what: str) -> Iterator[None]:
        """Mark what is under way."""
        began = self._now()
        try:
            yield
        finally:
            self._spans.append(Span(service=service, what=what, began_s=began, ended_s=self._now()))

    def telemetry(self) -> Telemetry:
        """Everything seen so far."""
        return Telemetry(
            period_s=self._watch.period_s if self._watch else 0.0,
            gpus=tuple(p for key in sorted(self._gpus) for p in self._gpus[key].all()),
            engines=tuple(p for one in self._engines.values() for p in one.all()),
            processes=tuple(p for one in self._processes.values() for p in one.all()),
            spans=tuple(self._spans),
            faults=tuple(self._faults),
        )

    def _now(self) -> float:
        return round(self._clock.monotonic() - self._began, 3)

    def _guarded(self, work: Callable[[Watch], None], watch: Watch) -> None:
        try:
            work(watch)
        except Exception as cause:  # noqa: BLE001 - telemetry must never cost the measurement
            self._faults[f"sampling ended: {type(cause).__name__}: {cause}"[:300]] = None

    def _watch_host(self, watch: Watch) -> None:
        devices = watch.devices
        fault = devices.open()
        if fault:
            self._faults[fault[:300]] = None
        try:
            while True:
                if not fault:
                    for seen in devices.sample(self._now()):
                        self._gpus.setdefault(seen.gpu, Series(merge_gpus)).add(seen)
                for state in self._states:
                    self._look_at_process(state, watch.meter)
                if self._stop.wait(watch.period_s):
                    return
        finally:
            devices.close()

    def _look_at_process(self, state: ServiceState, meter: ProcessMeter) -> None:
        use = meter.use(state.pid)
        if use is not None:
            self._processes[state.service].add(
                ProcessObservation(
                    t_s=self._now(),
                    service=state.service,
                    rss=use.rss,
                    cpu_s=round(use.cpu_s, 2),
                    processes=use.processes,
                )
            )

    def _watch_engines(self, watch: Watch) -> None:
        names = watch.names
        if names is None:
            self._faults["the engine has no /metrics"] = None
            return
        while True:
            for state in self._states:
                text = watch.chat.read(state.url, "/metrics")
                seen = observation(text, names, self._now(), state.service)
                if seen is not None:
                    self._engines[state.service].add(seen)
                    if self._view is not None:
                        self._view.seen(seen)
                elif not self._engines[state.service].all():
                    self._faults[f"{state.service}: /metrics says nothing"] = None
            if self._stop.wait(watch.metrics_period_s):
                return


def observation(
    text: str, names: MetricNames, t_s: float, service: str
) -> EngineObservation | None:
    """What /metrics says, None when nothing of it is known.

    Series of several engine processes are summed; of cache use the highest counts.
    """
    wanted = {
        key: getattr(names, key) for key in EngineObservation.model_fields.keys() & vars(names)
    }
    found = values(text, [name for one in wanted.values() for name in one])
    seen: dict[str, float] = {}
    for key, variants in wanted.items():
        series = next((found[name] for name in variants if name in found), None)
        if series:
            seen[key] = max(series) if key == "kv_usage" else sum(series)
    if not seen:
        return None
    return EngineObservation.model_validate({"t_s": t_s, "service": service, **seen})


def merge_gpus(one: GpuObservation, two: GpuObservation) -> GpuObservation:
    """Two looks as one: the highest memory and power, the lowest clock, every reason and process."""
    return two.model_copy(
        update={
            "memory_used": _most(one.memory_used, two.memory_used),
            "power_w": _most(one.power_w, two.power_w),
            "sm_clock_mhz": _least(one.sm_clock_mhz, two.sm_clock_mhz),
            "throttle_reasons": tuple(dict.fromkeys(one.throttle_reasons + two.throttle_reasons)),
            "processes": tuple(sorted({*one.processes, *two.processes})),
        }
    )


def merge_engines(one: EngineObservation, two: EngineObservation) -> EngineObservation:
    """Two looks as one: the fuller cache, the longer queue; counters are the later ones."""
    return two.model_copy(
        update={
            name: _most(getattr(one, name), getattr(two, name))
            for name in ("kv_usage", "running", "waiting")
        }
    )


def merge_processes(one: ProcessObservation, two: ProcessObservation) -> ProcessObservation:
    """Two looks as one: the larger memory."""
    return two.model_copy(update={"rss": max(one.rss, two.rss)})


def _most(one: float | None, two: float | None) -> float | None:
    return max((value for value in (one, two) if value is not None), default=None)


def _least(one: float | None, two: float | None) -> float | None:
    return min((value for value in (one, two) if value is not None), default=None)
