"""Observed: which kernels an engine says that it runs, and what it was asked for."""

from collections.abc import Iterator

from pydantic import Field

from bundler.domain.record import Record
from bundler.domain.spec import Settings

# What may stand behind a kernel that was asked for, as `Running.moe` names it.
_MEANT = {
    "triton": {"triton"},
    "deepgemm": {"deepgemm"},
    "cutlass": {"cutlass"},
    "flashinfer": {"flashinfer_cutlass", "flashinfer_trtllm", "flashinfer"},
}
# KV-cache types that are one and the same under two names.
_SAME_KV = {"fp8": "fp8_e4m3"}


class Running(Record):
    """What the log says. Empty or None: it says nothing of it, so it is unknown.

    Several values: several layers, models or processes that differ.
    """

    attention: tuple[str, ...] = ()
    moe: tuple[str, ...] = Field(
        (), description="triton, deepgemm, cutlass, flashinfer_cutlass ..."
    )
    moe_tuned: bool | None = Field(None, description="Whether a tuned configuration was found.")
    linear: tuple[str, ...] = Field((), description="Kernel classes of quantized linear layers.")
    gdn: tuple[str, ...] = Field((), description="Prefill kernel of gated delta nets.")
    sampler: tuple[str, ...] = ()
    kv_dtype: tuple[str, ...] = ()
    kv_tokens: int | None = Field(None, description="Tokens that the KV cache holds.")
    max_concurrency: float | None = Field(
        None, description="Requests of `concurrency_tokens` tokens that fit at once."
    )
    concurrency_tokens: int | None = None
    graphs: tuple[str, ...] = Field((), description="CUDA graph mode; `none` in eager mode.")
    offloaded: str = Field("", description="Layers on the GPU, such as 33/33 (llama.cpp).")
    phases: dict[str, float] = Field(
        {}, description="loading, compiling, capturing, ... -> seconds."
    )
    evidence: dict[str, str] = Field({}, description="Field -> the line of the log that said it.")

    def words(self) -> str:
        """For people, one line; what is unknown is left out."""
        named = [
            ("attention", "/".join(self.attention)),
            ("MoE", "/".join(self.moe) + (" (untuned)" if self.moe_tuned is False else "")),
            ("linear", "/".join(self.linear)),
            ("GDN", "/".join(self.gdn)),
            ("KV cache", "/".join(self.kv_dtype)),
            ("KV tokens", f"{self.kv_tokens:,}" if self.kv_tokens else ""),
            ("graphs", "/".join(self.graphs)),
            ("GPU layers", self.offloaded),
        ]
        return (
            ", ".join(f"{name} {value}" for name, value in named if value) or "the log says nothing"
        )


class Mismatch(Record):
    """What runs is not what was asked for."""

    what: str
    asked: str
    runs: str
    line: str = Field("", description="What the log says.")

    def words(self) -> str:
        """One line."""
        return f"{self.what}: asked {self.asked}, runs {self.runs}"


def mismatches(settings: Settings, running: Running) -> Iterator[Mismatch]:
    """Compare. Silence is no mismatch: it is unknown."""
    meant = _MEANT.get(settings.kernel)
    others = [name for name in running.moe if meant is not None and name not in meant]
    if others:
        yield Mismatch(what="MoE kernel", asked=settings.kernel, runs="/".join(others),
                       line=running.evidence.get("moe", ""))  # fmt: skip
    asked = _SAME_KV.get(settings.kv_cache_dtype, settings.kv_cache_dtype)
    kept = [name for name in running.kv_dtype if _SAME_KV.get(name, name) != asked]
    if asked != "auto" and kept:
        yield Mismatch(what="KV-cache type", asked=settings.kv_cache_dtype, runs="/".join(kept),
                       line=running.evidence.get("kv_dtype", ""))  # fmt: skip
