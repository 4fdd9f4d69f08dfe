"""Observed: what was imported, installed, started and measured on the closed side."""

from pydantic import Field

from bundler.domain.correctness import CorrectnessResult
from bundler.domain.profile import Comparison, Fingerprint
from bundler.domain.record import Record
from bundler.domain.running import Running
from bundler.domain.spec import Acceptance, Service
from bundler.domain.telemetry import Telemetry
from bundler.domain.verdict import Check, Verdict


class ReleaseRecord(Record):
    """Written last by `install`: a release without it is not installed."""

    bundle_id: str
    manifest_sha256: str
    key_id: str | None = Field(description="None when imported under the `unsigned` policy.")
    installed: str = Field(description="UTC time.")
    root: str = Field(description="The installation root: a release does not survive its move.")
    python: str = Field(description="The release's interpreter, relative to the release.")
    engine_name: str
    engine_version: str
    services: tuple[Service, ...]
    environment: dict[str, str] = Field(
        {}, description="SHA-256 of the files that uv made the environment of, before any wheel."
    )


class UpgradeRecord(Record):
    """Written before a change of releases stops what serves, gone when the change has ended."""

    bundle_id: str = Field(description="The release that is to serve.")
    current: str | None = Field(description="The release in use before.")
    previous: str | None = Field(description="The release in use before that.")
    served: bool = Field(description="Whether services ran before.")


class ServiceState(Record):
    """A started engine process."""

    service: str
    bundle_id: str
    pid: int
    start_ticks: int = Field(description="The kernel's start time of the process: detects reuse.")
    boot: str = Field(description="Identity of the boot in which the process was started.")
    health_path: str = "/health"
    port: int
    url: str
    argv: tuple[str, ...]
    env: dict[str, str] = Field(description="What airbundle added to the environment.")
    started: str = Field(description="UTC time.")
    ready_after_s: float | None = Field(None, description="Seconds until a real completion.")
    first_completion: str = Field("", description="The text that made it ready.")
    running: Running | None = Field(None, description="Which kernels it said that it runs.")
    node: int = Field(
        0, description="Of several hosts that serve together: 0 is the one that answers."
    )


class RequestSample(Record):
    """One measured request. Times in milliseconds from sending the request."""

    ok: bool
    error: str = ""
    started_s: float = Field(description="Seconds since the level began.")
    ttft_ms: float | None = Field(None, description="First non-empty token delta.")
    tpot_ms: float | None = Field(
        None, description="(end - first token) / (output tokens - 1); excludes TTFT."
    )
    e2e_ms: float = Field(description="Until the last token.")
    itl_ms: tuple[float, ...] = Field((), description="Gaps between token deltas.")
    input_tokens: int = 0
    output_tokens: int = 0
    finish_reason: str = ""


class Quantiles(Record):
    """p50, p95 and p99 in milliseconds, linear interpolation; None without samples.

    p99 is None also when fewer than 299 requests gave it: they could not bound it (at 95 %).
    """

    p50: float | None
    p95: float | None
    p99: float | None
    most: float | None = Field(None, description="The largest value.")


class Stretch(Record):
    """Some of a level's requests: its first wave, or all after it."""

    requests: int
    succeeded: int
    good: int | None = Field(
        None, description="Requests that met the plan's SLO; None without an SLO."
    )
    ttft: Quantiles


class LevelMetrics(Record):
    """One concurrency level of one service."""

    service: str
    concurrency: int
    requests: int
    succeeded: int
    duration_s: float
    ttft: Quantiles
    tpot: Quantiles
    itl: Quantiles
    e2e: Quantiles
    output_tokens: int
    output_tokens_per_s: float
    success_rate: float
    input_tokens_p50: float | None = None
    achieved_concurrency: float = Field(
        description="Mean requests in flight by Little's law: sum of request times / duration."
    )
    errors: dict[str, int] = Field({}, description="Error text -> how often.")
    burst: Stretch | None = Field(
        None,
        description="The first wave: one request of each user, within two seconds at most. None at one user.",
    )
    steady: Stretch | None = Field(None, description="What came after the first wave.")


class AcceptanceRecord(Record):
    """The receipt: what ran, what was measured, what it means."""

    bundle_id: str
    manifest_sha256: str
    key_id: str | None
    name: str
    description: str = ""
    engine_name: str
    engine_version: str
    models: tuple[str, ...] = Field(description="`name @ revision`.")
    host: dict[str, str] = Field(description="Facts of the machine that it ran on.")
    plan: Acceptance
    services: tuple[ServiceState, ...]
    began: str
    ended: str
    levels: tuple[LevelMetrics, ...]
    samples: dict[str, tuple[RequestSample, ...]] = Field(
        description="`service@concurrency` -> the requests."
    )
    checks: tuple[Check, ...]
    verdict: Verdict
    warnings: tuple[str, ...] = ()
    correctness: tuple[CorrectnessResult, ...] = Field((), description="Every probe's outcome.")
    telemetry: Telemetry = Telemetry()
    fingerprints: dict[str, Fingerprint] = Field(
        {}, description="Service -> what its figures depend on."
    )
    comparisons: tuple[Comparison, ...] = Field(
        (), description="Its figures beside those of profiles."
    )
