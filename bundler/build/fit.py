"""Does a service fit into its GPUs, and how many requests at once: the sum, with its terms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from bundler.build.kvcache import KvCache, element_bytes
from bundler.build.offload import Offload
from bundler.build.overhead import Overhead, llamacpp_overhead, vllm_overhead
from bundler.domain.catalogue import finding
from bundler.domain.findings import Finding
from bundler.domain.fit import Fit, Term
from bundler.domain.gpus import GpuModel, gpu
from bundler.domain.model_facts import ModelFacts
from bundler.domain.sizes import human
from bundler.domain.spec import Acceptance, Service, Settings
from bundler.domain.target import Target

_LENGTHS = (4096, 8192, 32768, 131072, 262144)
_FALLBACK_CONTEXT = 8192
# llama-server leaves this free by itself (`-fitt`, MiB).
_LLAMA_MARGIN = 1024 * 2**20
# What CUDA reports is less than what nvidia-smi prints: 79.22 of 79.65 GiB on an H100
# (https://github.com/vllm-project/vllm/pull/10511).
_USABLE = 0.9945


def fit(
    service: Service,
    model: ModelFacts,
    target: Target,
    engine: str,
    version: str,
    acceptance: Acceptance,
) -> tuple[Fit | None, tuple[Finding, ...]]:
    """Calculate one service.

    Returns:
        The calculation, None when GPU or model are not known well enough, and what it means.
    """
    names = _gpu_names(service, target)
    if not names:
        return None, ()
    models = {name: gpu(name) for name in names}
    unknown = [name for name, found in models.items() if found is None]
    if unknown:
        what = f"{', '.join(unknown)} is not in the table of GPUs"
        return None, (finding("fit-unknown", service.name, what),)
    if not model.weight_bytes or not (model.groups or model.unknown_layers):
        return None, (finding("fit-unknown", service.name, f"{model.name}: {_why(model)}"),)
    smallest = min(
        (found for found in models.values() if found), key=lambda item: item.memory_bytes
    )
    sum_ = _Sum(service, model, smallest, len(names), engine, version)
    if sum_.element is None:
        what = f"the size of kv_cache_dtype {sum_.dtype} is not known"
        return None, (finding("fit-unknown", service.name, what),)
    result = sum_.fit(acceptance)
    return result, tuple(_judge(result, sum_, acceptance))


def _gpu_names(service: Service, target: Target) -> list[str]:
    every = [item.model for item in target.gpus for _ in range(item.count)]
    chosen = service.gpus or range(len(every))
    return [every[at] for at in chosen if at < len(every)]


def _why(model: ModelFacts) -> str:
    if not model.weight_bytes:
        return "no header of its weights could be read"
    return model.unknown_layers or "its layers are not known"


@dataclass(frozen=True)
class _Sum:
    service: Service
    model: ModelFacts
    gpu: GpuModel
    gpus_there: int
    engine: str
    version: str

    @cached_property
    def settings(self) -> Settings:
        return self.service.settings or Settings()

    @property
    def llama(self) -> bool:
        return self.engine == "llama.cpp"

    @cached_property
    def shared(self) -> int:
        """GPUs that share the weights: tensor parallel, or llama.cpp's layers over all of them."""
        if self.llama:
            return self.gpus_there
        words = self.settings.args
        stated = [value for word, value in pairwise(words)
                  if word in ("--tensor-parallel-size", "-tp") and re.fullmatch(r"[1-9]\d{0,2}", value)]  # fmt: skip
        return int(stated[-1]) if stated else self.settings.tensor_parallel

    @cached_property
    def dtype(self) -> str:
        return self.settings.kv_cache_dtype

    @cached_property
    def element(self) -> Fraction | None:
        return element_bytes(self.dtype)

    @cached_property
    def cache(self) -> KvCache:
        # Whether the size of the type is known was asked before.
        element = self.element or Fraction(2)
        # llama.cpp spreads layers, not heads, over GPUs: each has its share of everything.
        return KvCache(self.model, element, 1 if self.llama else self.shared, paged=not self.llama)

    @cached_property
    def offload(self) -> Offload:
        return Offload.of(self.settings.args, self.model) if self.llama else Offload(0, "")

    @cached_property
    def weights(self) -> int:
        return -(-(self.model.weight_bytes - self.offload.bytes) // self.shared)

    @cached_property
    def overhead(self) -> Overhead:
        if self.llama:
            return llamacpp_overhead(self.model)
        return vllm_overhead(self.model, self.gpu.memory_bytes, self.shared)

    @cached_property
    def usable(self) -> int:
        total = int(self.gpu.memory_bytes * _USABLE)
        if self.llama:
            return total - _LLAMA_MARGIN
        return int(total * self.utilization)

    @cached_property
    def utilization(self) -> float:
        """The engine's default: 0.9, and 0.92 from vLLM 0.33 on (config/cache.py)."""
        release = tuple(int(part) for part in re.findall(r"\d+", self.version)[:2])
        return self.settings.gpu_memory_utilization or (0.92 if release >= (0, 33) else 0.9)

    @cached_property
    def budget(self) -> int:
        """Bytes for the KV cache on each GPU."""
        return self.usable - self.weights - self.overhead.total

    @cached_property
    def limit(self) -> int:
        """Longest context that is asked about."""
        return self.model.max_context or self.settings.max_model_len or _FALLBACK_CONTEXT

    @cached_property
    def context(self) -> int:
        """The wanted context: as set, else the model's own, which the engine takes then."""
        return self.settings.max_model_len or self.limit

    def at_once(self, budget: int, context: int) -> int:
        """Requests at once, in the whole group."""
        share = self.shared if self.llama else 1
        found = self.cache.at_once(max(0, budget) * share, context)
        return int(min(found, 10**6))

    def longest(self, budget: int) -> int:
        share = self.shared if self.llama else 1
        return self.cache.longest(max(0, budget) * share, max(self.limit, self.context))

    def fit(self, acceptance: Acceptance) -> Fit:
        wanted = acceptance.input_tokens + acceptance.output_tokens
        lengths = sorted({*(n for n in _LENGTHS if n <= self.limit), wanted})
        whole = KvCache(self.model, self.cache.element, 1, paged=False)
        return Fit(
            service=self.service.name,
            model=self.model.name,
            gpu=self.gpu.name,
            gpus=self.shared,
            gpu_bytes=self.gpu.memory_bytes,
            usable_bytes=self.usable,
            terms=tuple(self._terms()),
            host_terms=(Term(name="experts", bytes=self.offload.bytes, how=self.offload.how),)
            if self.offload.bytes
            else (),
            uncertain_bytes=self.overhead.uncertain,
            kv_bytes=self.budget,
            kv_dtype=self.dtype,
            per_token=Term(
                name="KV cache per token", bytes=round(whole.per_token), how=_token_how(self.model)
            ),
            per_request=Term(
                name="state per request", bytes=whole.state + round(whole.windows(self.context)),
                how=_state_how(self.model),
            ),
            max_context=self.longest(self.budget),
            context=self.context,
            requests=self.at_once(self.budget, self.context),
            at={length: self.at_once(self.budget, length) for length in lengths},
            unknown=tuple(self._unknown()),
        )  # fmt: skip

    def _terms(self) -> Iterator[Term]:
        divided = f" over {self.shared} GPUs" if self.shared > 1 else ""
        left = f", less {human(self.offload.bytes)} kept in RAM" if self.offload.bytes else ""
        yield Term(
            name="weights",
            bytes=self.weights,
            how=f"{human(self.model.weight_bytes)} in {self.model.tensors} tensors{left}{divided}",
        )
        yield Term(
            name="context and NCCL", bytes=self.overhead.context, how="estimated from reports"
        )
        yield Term(
            name="activations, graphs",
            bytes=self.overhead.activations,
            how=f"estimated; may be {human(self.overhead.uncertain)} more",
        )

    def _unknown(self) -> Iterator[str]:
        if self.model.unknown_layers:
            yield self.model.unknown_layers
        if self.model.mtp_layers and "speculative" in " ".join(self.settings.args):
            yield "KV cache of the layers for multi-token prediction"


def _token_how(model: ModelFacts) -> str:
    parts = []
    for group in model.groups:
        if group.kind == "full":
            parts.append(f"2 x {group.layers} layers x {group.kv_heads} heads x {group.head_dim}")
        elif group.kind == "mla":
            parts.append(
                f"{group.layers} layers x ({group.kv_lora_rank} + {group.qk_rope_head_dim})"
            )
    return " + ".join(parts) + " x bytes of the type" if parts else "no layer keeps every token"


def _state_how(model: ModelFacts) -> str:
    parts = []
    for group in model.groups:
        if group.kind == "linear":
            parts.append(
                f"{group.layers} linear layers x {group.v_heads} x {group.k_dim} x {group.v_dim}"
            )
        elif group.kind == "sliding":
            parts.append(f"{group.layers} layers with a window of {group.window}")
    return " + ".join(parts)


def _judge(result: Fit, sum_: _Sum, acceptance: Acceptance) -> Iterator[Finding]:
    service, model = result.service, result.model
    named = f"{result.gpus}x {result.gpu}" if result.gpus > 1 else result.gpu
    terms = ", ".join(f"{term.name} {human(term.bytes)}" for term in result.terms)
    stated = sum_.settings.max_model_len
    if stated and sum_.model.max_context and stated > sum_.model.max_context:
        what = f"max_model_len {stated}, {model} was made for {sum_.model.max_context}"
        yield finding("context-over-model", service, what)
    if result.gpus > sum_.gpus_there:
        return  # The engine's adapter says that so many GPUs are not there.
    if result.kv_bytes <= 0:
        fix = "" if result.gpus >= sum_.gpus_there else (
            f"The target has {sum_.gpus_there} GPUs: set tensor_parallel, or use a smaller quantization."
        )  # fmt: skip
        what = f"{model} on {named}: {terms} of {human(result.usable_bytes)} usable per GPU"
        yield finding("fit-no", service, what, fix=fix)
        return
    if result.requests < 1:
        yield finding(
            "fit-context",
            service,
            f"{human(result.kv_bytes)} are left for the KV cache per GPU, too little for a request of"
            f" {result.context} tokens ({terms})",
            fix=f"Lower max_model_len to {result.max_context} or less, or choose a smaller"
            " kv_cache_dtype.",
        )
        return
    yield from _margin(result, sum_, named, terms)
    yield from _users(result, sum_, acceptance)


def _margin(result: Fit, sum_: _Sum, named: str, terms: str) -> Iterator[Finding]:
    careful = result.kv_bytes - result.uncertain_bytes
    if sum_.at_once(careful, result.context) < 1:
        safe = sum_.longest(careful)
        yield finding(
            "fit-unsafe",
            result.service,
            f"{result.model} on {named}: {human(result.kv_bytes)} are left for the KV cache per GPU of"
            f" {human(result.usable_bytes)} usable ({terms}), and overhead may take"
            f" {human(result.uncertain_bytes)} more",
            fix=f"Lower max_model_len to {safe}, use more GPUs, a smaller quantization or"
            " kv_cache_dtype."
            if safe >= 1024
            else "Use more or larger GPUs, or a smaller quantization.",
        )
    elif result.requests < 2:
        yield finding(
            "fit-tight", result.service, f"one request of {result.context} tokens at once, not two"
        )


def _smaller_cache(result: Fit, sum_: _Sum, wanted: int) -> Iterator[Finding]:
    if result.kv_dtype not in ("auto", "f16", "bf16", "bfloat16", "float16"):
        return
    name = "q8_0" if sum_.llama else "fp8"
    element = element_bytes(name) or Fraction(1)
    smaller = replace(sum_.cache, element=element)
    share = sum_.shared if sum_.llama else 1
    count = int(smaller.at_once(result.kv_bytes * share, wanted))
    yield finding(
        "kv-dtype-default",
        result.service,
        f"kv_cache_dtype {result.kv_dtype} takes {human(result.per_token.bytes)} a token;"
        f" {name} would hold {count} requests of {wanted} tokens",
    )


def _users(result: Fit, sum_: _Sum, acceptance: Acceptance) -> Iterator[Finding]:
    wanted = acceptance.input_tokens + acceptance.output_tokens
    most = max(acceptance.concurrency)
    room = result.at.get(wanted, 0)
    allowed = sum_.settings.max_num_seqs
    if room < most:
        yield finding(
            "fit-users",
            result.service,
            f"{room} requests of {wanted} tokens fit at once, acceptance sends {most}",
        )
        yield from _smaller_cache(result, sum_, wanted)
    elif allowed is not None and allowed < most:
        yield finding(
            "fit-users",
            result.service,
            f"max_num_seqs is {allowed}, acceptance sends {most} at once",
            fix="Raise max_num_seqs, or lower acceptance.concurrency.",
        )
