"""Wanted of the acceptance run: how it loads a service, and what the figures must be."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from bundler.domain.correctness import Probe
from bundler.domain.record import Name, Record

Metric = Literal[
    "output_tokens_per_s", "ttft_ms_p50", "ttft_ms_p95", "tpot_ms_p50", "tpot_ms_p95",
    "itl_ms_p95", "e2e_ms_p95", "success_rate",
]  # fmt: skip
Language = Literal["korean", "english", "mixed"]


class Slo(Record):
    """What one request must meet, and how many of a hundred must."""

    ttft_ms: float | None = Field(None, gt=0, description="Time to first token, at most, ms.")
    tpot_ms: float | None = Field(None, gt=0, description="Time per output token, at most, ms.")
    e2e_ms: float | None = Field(None, gt=0, description="Whole request, at most, ms.")
    attainment: float = Field(
        0.95, gt=0, lt=1, description="Share of requests that must meet every limit."
    )


class Expected(Record):
    """A range that a measured figure must lie in."""

    concurrency: int = Field(ge=1, description="Concurrency level that it is for.")
    metric: Metric = Field(description="Which figure.")
    min: float | None = Field(None, description="At least (INCONCLUSIVE is never used for it).")
    max: float | None = Field(None, description="At most.")
    service: Name | None = Field(None, description="Service it is for; every service when absent.")
    source: str = Field("", description="Where the range comes from.")

    @model_validator(mode="after")
    def _some_limit(self) -> "Expected":
        if self.min is None and self.max is None:
            raise ValueError("give `min`, `max` or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} is over max {self.max}")
        return self


class Acceptance(Record):
    """The acceptance run: a sweep over concurrency, and what it must show."""

    concurrency: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = Field(
        (1, 8),
        min_length=1,
        max_length=50,
        description="Requests in flight at once, one level after another.",
    )
    requests: int = Field(
        60,
        ge=1,
        le=1_000_000,
        description="Measured requests at each level, and never fewer than five for each user."
        " 59 is the fewest that can show 95 %.",
    )
    input_tokens: int = Field(64, ge=8, le=10_000_000, description="About this many prompt tokens.")
    output_tokens: int = Field(
        32, ge=2, le=10_000_000, description="Output tokens of each request."
    )
    request_timeout_s: float = Field(
        600, gt=0, le=7 * 86400, description="A request that takes longer failed."
    )
    api: Literal["chat", "completions"] = Field(
        "chat", description="`chat` (through the model's template) or `completions` (plain text)."
    )
    language: Language = Field("mixed", description="Words of the prompts: korean, english, mixed.")
    arrivals: Literal["closed", "poisson"] = Field(
        "closed",
        description="`closed`: each user sends when the last answer ended. `poisson`: requests come at"
        " `rate` whoever waits, `concurrency` is the most in flight, and times count from when a request"
        " was due.",
    )
    rate: float | None = Field(
        None, gt=0, le=100_000, description="Requests a second, for `arrivals: poisson`."
    )
    think_time_s: float = Field(
        0,
        ge=0,
        le=86400,
        description="Mean pause of a user after an answer, for `arrivals: closed`.",
    )
    ramp_s: float | None = Field(
        None,
        ge=0,
        le=86400,
        description="Over so long users start, or the rate rises. Half a request and at most 2 s when"
        " left out, and with `poisson` not at all.",
    )
    slo: Slo | None = Field(None, description="Service-level objective, judged at every level.")
    expected: tuple[Expected, ...] = Field((), max_length=1000, description="Expected ranges.")
    correctness: tuple[Probe, ...] | None = Field(
        None,
        max_length=20,
        description="Probes that answers must stand, idle and under load; docs/correctness.md says what"
        " each proves. When left out, those that hold for any model: golden and nll, where the engine"
        " offers them. An empty list asks nothing.",
    )

    def requests_at(self, concurrency: int) -> int:
        """Measured requests at a level: in fewer waves the level would hardly ever be full."""
        return max(self.requests, 5 * concurrency)

    @model_validator(mode="after")
    def _arrivals_fit(self) -> "Acceptance":
        if self.arrivals == "poisson" and self.rate is None:
            raise ValueError("arrivals: poisson needs a rate (requests a second)")
        if self.arrivals == "closed" and self.rate is not None:
            raise ValueError("a rate is for arrivals: poisson; in closed loop the engine sets it")
        if self.arrivals == "poisson" and self.think_time_s:
            raise ValueError(
                "think_time_s is for arrivals: closed; poisson arrivals wait for nobody"
            )
        return self

    @model_validator(mode="after")
    def _levels_exist(self) -> "Acceptance":
        for item in self.expected:
            if item.concurrency not in self.concurrency:
                raise ValueError(
                    f"expected names concurrency {item.concurrency},"
                    f" which is not in {list(self.concurrency)}"
                )
        return self
