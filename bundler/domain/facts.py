"""Observed: what was imported, installed, started and measured on the closed side."""

from pydantic import Field

from bundler.domain.correctness import CorrectnessResult
from bundler.domain.profile import Comparison, Fingerprint
from bundler.domain.record import Record
from bundler.domain.running import Running
from bundler.domain.spec import Acceptance, Service
from bundler.domain.telemetry import Telemetry
from bundler.domain.variants import Changed, Variant
from bundler.domain.verdict import Check, Gate, Verdict


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
    release: str = Field("", description="Its id where that is not the bundle's.")
    variant: Variant | None = Field(
        None, description="Where its settings are not the bundle's: which, and why."
    )

    @property
    def release_id(self) -> str:
        """The name of its folder: the bundle's id, or that and a digest of other settings."""
        return self.release or self.bundle_id


class UpgradeRecord(Record):
    """Written before a change of releases stops what serves, gone when the change has ended."""

    bundle_id: str = Field(description="Id of the release that is to serve.")
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
    release: str = Field("", description="Id of its release where that is not the bundle's.")

    @property
    def release_id(self) -> str:
        """The release that it was started from."""
        return self.release or self.bundle_id


class RequestSample(Record):
    """One measured request. Times in milliseconds from sending it; in open loop, from when it was due."""

    ok: bool
    error: str = ""
    started_s: float = Field(description="Seconds since the level began.")
    waited_ms: float = Field(
        0.0, description="From when it was due to its sending, in open loop; part of TTFT and E2E."
    )
    ttft_ms: float | None = Field(None, description="First non-empty delta of any kind.")
    ttfa_ms: float | None = Field(
        None, description="First delta of the answer itself: content or a tool call, no reasoning."
    )
    tpot_ms: float | None = Field(
        None,
        description="(last token - first) / (output tokens - those of the first chunk, one when unknown);"
        " excludes TTFT.",
    )
    e2e_ms: float = Field(description="Until the last token.")
    itl_ms: tuple[float, ...] = Field(
        (), description="Gaps between tokens, or between chunks: see `itl_per_token`."
    )
    itl_per_token: bool = Field(
        False,
        description="Whether each gap is one token's; otherwise they are gaps between chunks.",
    )
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int | None = Field(
        None, description="Prompt tokens that came from a prefix cache, where the engine says so."
    )
    finish_reason: str = ""
    done: bool = Field(True, description="Whether the stream ended with `[DONE]`.")


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


_NO_QUANTILES = Quantiles(p50=None, p95=None, p99=None)


class ServerWindow(Record):
    """What the engine's own counters (`/metrics`) say of the measured part of a level."""

    requests: int | None = Field(None, description="First tokens that it counted.")
    ttft_ms_mean: float | None = Field(None, description="Mean of its own time to first token.")
    prefix_queries: float | None = Field(None, description="Prompt tokens looked up in its cache.")
    prefix_hits: float | None = Field(None, description="Prompt tokens found there.")
    in_flight_mean: float | None = Field(
        None, description="Requests running and waiting, mean of the looks in between."
    )
    polls: int = Field(0, description="Looks in between.")


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
    ttfa: Quantiles = Field(_NO_QUANTILES, description="Time to the first token of the answer.")
    itl_per_token: bool = Field(
        False, description="Whether `itl` is per token for every answer; otherwise: chunk gaps."
    )
    longest_gap_ms: float | None = Field(
        None, description="Longest gap in any answer, as `itl` counts them."
    )
    steady_concurrency: float | None = Field(
        None,
        description="Mean requests in flight between the last user's start and the last sending.",
    )
    wanted_concurrency: float | None = Field(
        None, description="What it would be without a flaw: `concurrency` less who is thinking."
    )
    client_lag_ms_p99: float | None = Field(
        None, description="How late the client's event loop was."
    )
    warm_up_ttft_ms: tuple[float, ...] = Field(
        (), description="Median TTFT of each wave of the warm-up."
    )
    template_tokens: float | None = Field(
        None, description="Tokens of a prompt without words: template and nonce, as calibrated."
    )
    server: ServerWindow | None = None


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
    gates: tuple[Gate, ...] = Field((), description="Whether the measurement is sound.")
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
    changed: Changed | None = Field(
        None, description="Where the settings that ran are not the signed bundle's."
    )
