"""What of a service's settings and arguments decides its memory, with the engine's own defaults.

vLLM's defaults were read in the wheels: gpu_memory_utilization 0.9, from 0.20 on 0.92; 1024
sequences and 8192 tokens in a batch on GPUs of 70 GiB and more (but A100), otherwise 256 and 2048
(`EngineArgs.get_batch_defaults`); from 0.28 on 16384 tokens on GPUs of 160 GiB and more; hybrid
models keep two states for each request from 0.26 on, where prefix caching is on for them.
llama.cpp's are in https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md , Ollama's in
https://github.com/ollama/ollama/blob/main/docs/faq.mdx .
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from bundler.build.kvcache import Numbers, known, state_size
from bundler.domain.gpus import GpuModel
from bundler.domain.model_facts import ModelFacts
from bundler.domain.spec import Service, Settings

_GIB = 2**30
_LARGE = 70 * _GIB
_HUGE = 160 * _GIB
_NUMBER = re.compile(r"([0-9]{1,12})([kKmM]?)")
_SCALE = {"": 1, "k": 1000, "K": 1024, "m": 10**6, "M": 2**20}
# Settings that change where weights or caches lie, in ways that are not calculated here.
_BEYOND = (
    "--pipeline-parallel-size", "-pp", "--data-parallel-size", "-dp", "--cpu-offload-gb", "--nnodes",
    "--decode-context-parallel-size", "-dcp", "--prefill-context-parallel-size", "-pcp",
    "--offload-backend", "--tensor-split", "-ts", "--kv-cache-dtype-skip-layers",
)  # fmt: skip
# Beginnings of settings that choose which CUDA graphs are captured.
_GRAPHS = (
    "--compilation-config", "-cc", "-O", "--cudagraph-capture-sizes", "--cuda-graph-sizes",
    "--speculative-config", "-sc",
)  # fmt: skip
_GPU_LAYERS = ("-ngl", "--gpu-layers", "--n-gpu-layers")
_CPU_MOE = ("-ncmoe", "--n-cpu-moe")
# Patterns of --override-tensor that mean the routed experts of every layer.
_ALL_EXPERTS = re.compile(
    r"(?:blk\\?\.\.[*+]\\?)?(?:\\?\.)?(?:ffn_\.[*+]_?)?exps(?:\\?\.(?:weight)?)?=CPU"
)


class Beyond(Exception):  # noqa: N818
    """The settings put the calculation beyond what is known; the text says which."""


@dataclass(frozen=True)
class Run:
    """What decides the memory of one service.

    `rigid` engines stop when memory is short; llama-server, left to itself, moves layers to RAM.
    `share` is the part of the KV cache that lies on GPUs, `layers_on_gpu` of the weights;
    `experts_on_cpu` the part of the routed experts that stays in RAM. `captured` sequences are the
    most that vLLM captures a CUDA graph of decoding for; None when it is set in a way not read here.
    """

    context: int
    requests: int
    batch: int
    numbers: Numbers
    utilization: float = 1.0
    kv_bytes: int | None = None
    eager: bool = False
    captured: int | None = None
    states: int = 1
    whole_windows: bool = False
    stretched: bool = False
    rigid: bool = True
    layers_on_gpu: Fraction = Fraction(1)
    share: Fraction = Fraction(1)
    experts_on_cpu: Fraction = Fraction(0)
    notes: tuple[str, ...] = ()


def release(version: str) -> tuple[int, ...]:
    """The first numbers of a version, for comparing."""
    return tuple(int(number) for number in re.findall(r"\d{1,9}", version[:100])[:3])


def tensor_parallel(service: Service) -> int:
    """GPUs that share the model; an argument beats the spec's own key, as it does for vLLM."""
    settings = service.settings or Settings()
    asked = _Args(settings.args).number("--tensor-parallel-size", "-tp")
    return asked or settings.tensor_parallel


def vllm(service: Service, model: ModelFacts, gpu: GpuModel, version: str) -> Run:
    """How vLLM would run the service on GPUs of that kind.

    Raises:
        Beyond: it depends on what is not known.
    """
    settings, args = _read(service)
    now = release(version)
    large = gpu.memory_bytes >= _LARGE and "A100" not in gpu.name
    huge = gpu.memory_bytes >= _HUGE and now >= (0, 28)
    kv = args.text("--kv-cache-dtype") or settings.kv_cache_dtype
    utilization = args.share("--gpu-memory-utilization") or settings.gpu_memory_utilization
    context = args.number("--max-model-len") or settings.max_model_len or model.max_context
    caching = now >= (0, 26) and not args.has("--no-enable-prefix-caching")
    notes: tuple[str, ...] = ()
    if args.has("--speculative-config", "--speculative_config", "-sc", "--speculative-model"):
        notes = ("the draft model or MTP layer of speculative decoding",)
    requests = args.number("--max-num-seqs") or settings.max_num_seqs or (1024 if large else 256)
    batch = args.number("--max-num-batched-tokens") or (16384 if huge else 8192 if large else 2048)
    return Run(
        context=_known_context(context),
        requests=requests,
        batch=batch,
        numbers=_numbers(kv, kv, model, conv=2, tp=tensor_parallel(service)),
        utilization=utilization or (0.92 if now >= (0, 20) else 0.9),
        kv_bytes=args.number("--kv-cache-memory-bytes", "--kv-cache-memory"),
        eager=args.has("--enforce-eager"),
        captured=_captured(args, requests, batch),
        states=2 if caching or args.has("--enable-prefix-caching") else 1,
        stretched=args.has("--rope-scaling", "--hf-overrides")
        or settings.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0") == "1",
        notes=notes,
    )


def _captured(args: _Args, requests: int, batch: int) -> int | None:
    """`_set_cudagraph_sizes` of vllm/config/vllm.py: twice the sequences, at most 512, unless told."""
    if any(args.has_prefix(name) for name in _GRAPHS):
        return None
    most = args.number("--max-cudagraph-capture-size") or min(2 * requests, 512)
    return min(most, requests, batch)


def llamacpp(service: Service, model: ModelFacts) -> Run:
    """How llama-server would run the service.

    Raises:
        Beyond: it depends on what is not known.
    """
    settings, args = _read(service)
    slots = args.number("-np", "--parallel") or settings.max_num_seqs or 1
    context = settings.max_model_len or model.max_context
    together = args.number("-c", "--ctx-size")
    if together:
        context = together // slots
    k = args.text("-ctk", "--cache-type-k") or settings.kv_cache_dtype
    v = args.text("-ctv", "--cache-type-v") or settings.kv_cache_dtype
    layers = max(sum(group.layers for group in model.groups), 1)
    on_gpu = args.number(*_GPU_LAYERS)
    on_gpu = settings.gpu_layers if on_gpu is None else on_gpu
    part = Fraction(1) if on_gpu is None else min(Fraction(on_gpu, layers), Fraction(1))
    return Run(
        context=_known_context(context),
        requests=slots,
        batch=args.number("-ub", "--ubatch-size") or 512,
        numbers=_numbers(k, v, model, conv=4, tp=1),
        whole_windows=args.has("--swa-full"),
        stretched=args.has("--rope-scaling", "--rope-scale", "--yarn-orig-ctx"),
        layers_on_gpu=part,
        share=Fraction(0) if args.has("-nkvo", "--no-kv-offload") else part,
        experts_on_cpu=_experts(settings, args, layers),
        rigid=_rigid(settings, args),
    )


def ollama(service: Service, model: ModelFacts) -> Run:
    """How Ollama would run the service: it gives its llama-server the context times the requests.

    Raises:
        Beyond: it depends on what is not known.
    """
    settings = service.settings or Settings()
    if not settings.max_model_len:
        raise Beyond("max_model_len is not set, and Ollama chooses a context by the GPU's memory")
    kind = settings.kv_cache_dtype
    return Run(
        context=settings.max_model_len,
        requests=settings.max_num_seqs or 1,
        batch=512,
        numbers=_numbers(kind, kind, model, conv=4, tp=1),
        rigid=False,
    )


def _rigid(settings: Settings, args: _Args) -> bool:
    """Whether llama-server keeps to what was placed by hand (common/fit.cpp), or fit is off."""
    by_hand = None if settings.gpu_layers is None else str(settings.gpu_layers)
    layers = args.text(*_GPU_LAYERS) or by_hand or "auto"
    placed = args.has("-cmoe", "--cpu-moe", *_CPU_MOE, "-ot", "--override-tensor")
    placed = placed or settings.cpu_moe_layers is not None
    fit = args.text("-fit", "--fit") or ("off" if settings.fit is False else "on")
    return fit == "off" or placed or layers not in ("auto", "-1")


def _experts(settings: Settings, args: _Args, layers: int) -> Fraction:
    """Part of the routed experts that llama.cpp keeps in RAM."""
    if args.has("-cmoe", "--cpu-moe"):
        return Fraction(1)
    count = args.number(*_CPU_MOE)
    count = settings.cpu_moe_layers if count is None else count
    if count is not None:
        return min(Fraction(count, layers), Fraction(1))
    pattern = args.text("-ot", "--override-tensor")
    if pattern is None:
        return Fraction(0)
    if len(pattern) > 100 or not _ALL_EXPERTS.fullmatch(pattern):
        raise Beyond(f"the placement -ot {pattern[:60]} is not calculated")
    return Fraction(1)


def _numbers(k: str, v: str, model: ModelFacts, conv: int, tp: int) -> Numbers:
    for kind in (k, v):
        if not known(kind):
            raise Beyond(f"the size of KV-cache type {kind[:40]} is not known")
    state = state_size(model.state_dtype) if conv == 2 else 4
    return Numbers(k=k, v=v, state=state, conv=conv, tp=max(tp, 1))


def _known_context(context: int | None) -> int:
    if not context:
        raise Beyond("neither max_model_len nor the model's own context length is known")
    return context


def _read(service: Service) -> tuple[Settings, _Args]:
    settings = service.settings or Settings()
    args = _Args(settings.args)
    if beyond := [name for name in _BEYOND if args.has(name)]:
        raise Beyond(f"{', '.join(beyond)} in settings.args is not calculated")
    return settings, args


class _Args:
    """Arguments as engines read them: `--flag value` or `--flag=value`, the last one counts."""

    def __init__(self, args: tuple[str, ...]) -> None:
        self._values: dict[str, str | None] = {}
        for at, word in enumerate(args):
            name, sign, value = word.partition("=")
            if not name.startswith("-"):
                continue
            follows = args[at + 1] if at + 1 < len(args) else None
            spelled = name.replace("_", "-") if name.startswith("--") else name
            self._values[spelled] = value if sign else follows

    def has(self, *names: str) -> bool:
        return any(name in self._values for name in names)

    def has_prefix(self, prefix: str) -> bool:
        return any(name.startswith(prefix) for name in self._values)

    def text(self, *names: str) -> str | None:
        values = [self._values[name] for name in names if self._values.get(name)]
        return values[-1] if values else None

    def number(self, *names: str) -> int | None:
        """Also `32k` and `32K`; None when it is no number (`auto`, `all`, -1)."""
        match = _NUMBER.fullmatch(self.text(*names) or "")
        return int(match[1]) * _SCALE[match[2]] if match else None

    def share(self, *names: str) -> float | None:
        text = self.text(*names) or ""
        value = float(text) if re.fullmatch(r"0?\.[0-9]{1,17}|1(\.0{1,17})?", text) else None
        return value or None
