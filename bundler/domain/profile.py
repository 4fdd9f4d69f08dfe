"""Known figures to compare a run with: what was measured, on what, by whom, and what nobody knows of it."""

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from bundler.domain.record import Record

Text = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$")]  # fmt: skip
Word = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]  # fmt: skip
Figured = Literal[
    "output_tokens_per_s", "output_tokens_per_s_per_user", "success_rate",
    "ttft_ms_p50", "ttft_ms_p95", "ttft_ms_p99", "tpot_ms_p50", "tpot_ms_p95", "tpot_ms_p99",
    "e2e_ms_p50", "e2e_ms_p95", "users_within_slo", "kv_cache_gib", "context_tokens",
]  # fmt: skip
# What a run's figures can be held against.
MEASURABLE = frozenset(
    {
        "output_tokens_per_s", "output_tokens_per_s_per_user", "success_rate",
        "ttft_ms_p50", "ttft_ms_p95", "ttft_ms_p99", "tpot_ms_p50", "tpot_ms_p95", "tpot_ms_p99",
        "e2e_ms_p50", "e2e_ms_p95",
    }
)  # fmt: skip
_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)b(?![a-z0-9])")


class Fingerprint(Record):
    """What a figure depends on. None: nobody said."""

    model: Word | None = Field(None, description="As its publisher names it, without the owner.")
    size: Word | None = Field(
        None, description="Parameters such as `30B`, where the model itself is not named."
    )
    digest: Word | None = Field(None, description="SHA-256 over the model's files.")
    engine: Word | None = Field(None, description="vllm or llama.cpp.")
    engine_version: Word | None = None
    kernel: Word | None = Field(None, description="MoE kernel: triton, deepgemm ...")
    kv_dtype: Word | None = Field(None, description="KV-cache type.")
    gpu: Word | None = Field(None, description="Name; `none` for a processor alone.")
    gpu_count: int | None = Field(None, ge=0, le=10_000, description="GPUs that serve the model.")
    processor: Word | None = Field(None, description="Only where no GPU serves.")
    tensor_parallel: int | None = Field(None, ge=1, le=10_000)
    context_tokens: int | None = Field(None, ge=1, description="Context length that was set.")
    input_tokens: int | None = Field(None, ge=1, description="Prompt tokens of a request.")
    output_tokens: int | None = Field(None, ge=1, description="Output tokens of a request.")

    @property
    def unstated(self) -> tuple[str, ...]:
        """Names of the fields that nobody said, but those that stand for another."""
        gpu_only = {"processor", "size", "digest", "context_tokens"}
        return tuple(
            name
            for name in type(self).model_fields
            if name not in gpu_only and getattr(self, name) is None
        )


class Figure(Record):
    """One figure at one concurrency: each run's value, or the one value that was told."""

    metric: Figured
    concurrency: int | None = Field(
        None, ge=1, le=1_000_000, description="Requests in flight; None: nobody said."
    )
    runs: tuple[Annotated[float, Field(gt=0)], ...] = Field(
        min_length=1, max_length=10_000, description="A value for each run."
    )
    low: float | None = Field(None, gt=0, description="Lower end, where the source gives a range.")
    high: float | None = Field(None, gt=0, description="Upper end.")
    note: Text | None = None

    @model_validator(mode="after")
    def _in_order(self) -> "Figure":
        if (self.low is None) != (self.high is None):
            raise ValueError("give `low` and `high`, or neither")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low:g} is over high {self.high:g}")
        return self

    @property
    def higher_is_better(self) -> bool:
        """Whether more is better: all but times and memory."""
        return not ("_ms_" in self.metric or self.metric == "kv_cache_gib")


class Profile(Record):
    """Figures of one set-up. `measured`: by airbundle; `published`: read; `field`: told by users."""

    name: Word
    kind: Literal["measured", "published", "field"]
    source: Text = Field(description="Where the figures come from.")
    conditions: Text = Field(description="What is known of how they came about.")
    unknown: tuple[Word, ...] = Field((), max_length=50, description="What nobody said.")
    compare_with: Word | None = Field(
        None, description="Name of the profile that differs in the kernel alone."
    )
    fingerprint: Fingerprint
    figures: tuple[Figure, ...] = Field(min_length=1, max_length=10_000)


class ProfileFile(Record):
    """A file of profiles."""

    profiles: tuple[Profile, ...] = Field(min_length=1, max_length=1000)

    @model_validator(mode="after")
    def _one_of_each_name(self) -> "ProfileFile":
        names = [profile.name for profile in self.profiles]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two profiles are called {twice}")
        return self


class Comparison(Record):
    """A run's figure beside a profile's."""

    service: str
    concurrency: int
    metric: str
    measured: float
    profile: str
    kind: str
    worst: float | None = Field(description="Anything worse is out of range.")
    best: float | None = Field(description="Anything better is suspicious.")
    outcome: Literal["within", "worse", "better", "not judged"]
    basis: str = Field(description="How the range was made.")
    caveats: tuple[str, ...] = ()


def model_words(name: str) -> str:
    """A model's name to compare by: without owner, case and file ending."""
    return name.rpartition("/")[2].casefold().removesuffix(".gguf")


def size_of(name: str) -> str | None:
    """`30B` of `Qwen3-30B-A3B`; None when the name states no size."""
    found = _SIZE.search(model_words(name))
    return f"{found[1]}B" if found else None
