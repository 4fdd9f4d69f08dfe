"""Observed beside the load: GPUs, the engine's own metrics, and its processes, on one time axis.

`t_s` is always seconds since the acceptance run began. None: the driver or the engine does not say.
"""

from pydantic import Field

from bundler.domain.record import Record


class GpuObservation(Record):
    """One GPU at one time, as NVML tells. The whole device is meant, whoever uses it."""

    t_s: float
    gpu: int = Field(description="NVML index.")
    memory_used: int | None = Field(None, description="Bytes, of all processes.")
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: int | None = None
    throttle_reasons: tuple[str, ...] = Field((), description="Why clocks are held down; no idle.")
    processes: tuple[int, ...] = Field((), description="Process ids that hold its memory.")


class EngineObservation(Record):
    """What a service's /metrics said. Counters count since the engine started."""

    t_s: float
    service: str
    kv_usage: float | None = Field(None, description="Share of the KV cache in use, 0 to 1.")
    running: float | None = Field(None, description="Requests that are being computed.")
    waiting: float | None = Field(None, description="Requests that queue in the engine.")
    preemptions: float | None = Field(None, description="Counter.")
    generation_tokens: float | None = Field(None, description="Counter.")
    prefix_hits: float | None = Field(None, description="Counter, prompt tokens from the cache.")
    prefix_queries: float | None = Field(None, description="Counter, prompt tokens looked up.")


class ProcessObservation(Record):
    """The processes of a service together."""

    t_s: float
    service: str
    rss: int = Field(
        description="Resident bytes, summed; pages that they share count once for each."
    )
    cpu_s: float = Field(description="Processor seconds since they started, of those that live.")
    processes: int = Field(1, description="How many there are.")


class Span(Record):
    """What was under way when: a level, a phase of correctness."""

    service: str
    what: str = Field(description="`x8` for a level of eight requests in flight, or words.")
    began_s: float
    ended_s: float


class Telemetry(Record):
    """All of it. Each series is bounded; see `bundler.accept.telemetry` for how."""

    period_s: float = Field(0.0, description="Seconds between two looks; 0: nothing was sampled.")
    gpus: tuple[GpuObservation, ...] = ()
    engines: tuple[EngineObservation, ...] = ()
    processes: tuple[ProcessObservation, ...] = ()
    spans: tuple[Span, ...] = ()
    faults: tuple[str, ...] = Field((), description="What could not be sampled, and why.")
