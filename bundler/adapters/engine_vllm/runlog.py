"""vLLM's log -> the kernels that run. Read in the sources of 0.11 to 0.33.

| what | versions | where in vllm/ |
|---|---|---|
| attention | 0.11: `Using X backend on V1 engine.`; from 0.17: `Using X attention backend out of ...` | platforms/cuda.py |
| FP8 MoE | 0.11: `Using DeepGemm kernels for`; 0.11.2 to 0.14: `Using X backend for FP8 MoE`; from 0.15: `Using X Fp8 MoE backend out of` | quantization/fp8.py, fused_moe/oracle/fp8.py |
| other MoE | `Using 'X' NvFp4 MoE backend`, `Using 'X' Mxfp4 MoE backend`, `Using X backend for Unquantized MoE`, `Using X Unquantized MoE backend` | fused_moe/oracle/*.py, quantization/mxfp4.py |
| linear | `Selected X for Y`, from 0.15 | kernels/linear/__init__.py |
| GDN | `Using X GDN prefill kernel` | models/qwen3_next.py, layers/mamba/gdn |
| KV cache | two lines up to 0.27, one from 0.28 on | v1/core/kv_cache_utils.py |

`DEEPGEMM` in the MoE line stands for experts that choose between DeepGEMM and Triton by shape. What no line says
is unknown: on CPU the attention is not logged, and block-wise FP8 linear layers are silent before 0.20.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from bundler.domain.running import Running

_LONGEST = 2000
_SHOWN = 300
# Each with the field that its first group belongs to. A file's name decides where the words alone do not.
_TEXTS = tuple(
    (field, re.compile(form))
    for field, form in (
        ("attention", r"Using (\w+) attention backend out of potential backends"),
        ("attention", r"Using (Flash Attention|FlashInfer|Triton|FlexAttention|[\w ]+?) backend on V1 engine"),
        ("attention", r"\[(?:cuda|rocm|cpu|xpu)\.py:\d+\] Using (\w+) backend\.?\s*$"),
        ("moe", r"Using (DeepGemm) kernels for Fp8MoEMethod"),
        ("moe", r"Using ([\w ]+?) backend for FP8 MoE"),
        ("moe", r"Using '?(\w+)'? (?:Fp8|NvFp4|Mxfp4|MXFP4|MxFp8|WNA16|Unquantized|Int8) MoE backend"),
        ("moe", r"Using (\w+) backend for Unquantized MoE"),
        ("moe", r"\[mxfp4\.py:\d+\] Using (FlashInfer|Marlin|Triton)\b.* backend"),
        ("linear", r"Selected (\w+) for \w+LinearMethod"),
        ("gdn", r"Using ([\w/]+?) GDN prefill kernel"),
        ("sampler", r"Using (FlashInfer|Triton) for top-p & top-k sampling"),
        ("kv_dtype", r"Using (\S+) data type to store kv cache"),
        ("graphs", r"cudagraph_mode'?\"?[=:] ?<?(?:CUDAGraphMode\.)?(\w+)"),
    )
)  # fmt: skip
_PHASES = tuple(
    (name, re.compile(form))
    for name, form in (
        ("loading weights", r"Loading weights took ([\d.]+) seconds"),
        ("loading", r"Model loading took .* and ([\d.]+) seconds"),
        ("compiling", r"torch\.compile (?:takes|took) ([\d.]+) s in total"),
        ("capturing graphs", r"Graph capturing finished in ([\d.]+) secs"),
        ("starting the engine", r"init engine \(profile, create kv cache, warmup model\) took ([\d.]+) s"),
    )
)  # fmt: skip
_TOKENS = re.compile(r"KV cache size: ([\d,]+) tokens")
_CONCURRENCY = re.compile(r"Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x")
_TUNED = re.compile(r"Using configuration from \S+ for MoE layer")
_UNTUNED = re.compile(r"Using default MoE config\. Performance might be sub-optimal")
_EAGER = re.compile(r"enforce_eager=True|Cudagraph is disabled under eager mode")
_ATTENTION = {"flash attention": "FLASH_ATTN", "flashinfer": "FLASHINFER", "triton": "TRITON_ATTN",
              "flexattention": "FLEX_ATTENTION"}  # fmt: skip


def read_log(lines: Iterable[str]) -> Running:
    """What the lines say; where layers, models or processes differ, all of it."""
    reader = _Reader()
    for line in lines:
        reader.take(line[:_LONGEST])
    return reader.record()


class _Reader:
    def __init__(self) -> None:
        self._texts: dict[str, dict[str, None]] = {}
        self._evidence: dict[str, str] = {}
        self._values: dict[str, Any] = {}
        self._phases: dict[str, float] = {}

    def take(self, line: str) -> None:
        for field, form in _TEXTS:
            if match := form.search(line):
                self._texts.setdefault(field, {})[_name(field, match[1])] = None
                self._evidence.setdefault(field, line.strip()[:_SHOWN])
                break
        for name, form in _PHASES:
            if match := form.search(line):
                self._phases[name] = float(match[1])
        self._sizes(line)
        self._flags(line)

    def _sizes(self, line: str) -> None:
        if match := _TOKENS.search(line):
            self._set("kv_tokens", int(match[1].replace(",", "")), line)
        if match := _CONCURRENCY.search(line):
            self._set("concurrency_tokens", int(match[1].replace(",", "")), line)
            self._set("max_concurrency", float(match[2]), line)

    def _flags(self, line: str) -> None:
        if _UNTUNED.search(line):
            # One layer without is enough to be slow.
            self._set("moe_tuned", False, line)
        elif _TUNED.search(line) and "moe_tuned" not in self._values:
            self._set("moe_tuned", True, line)
        if _EAGER.search(line):
            self._texts["graphs"] = {"none": None}
            self._evidence["graphs"] = line.strip()[:_SHOWN]

    def _set(self, field: str, value: Any, line: str) -> None:
        self._values[field] = value
        self._evidence[field] = line.strip()[:_SHOWN]

    def record(self) -> Running:
        texts = {field: tuple(values) for field, values in self._texts.items()}
        return Running(phases=self._phases, evidence=self._evidence, **self._values, **texts)


def _name(field: str, said: str) -> str:
    if field == "attention":
        return _ATTENTION.get(said.lower(), said.upper().replace(" ", "_"))
    if field == "moe":
        return _moe(said)
    if field == "graphs":
        return said.lower()
    return said


def _moe(said: str) -> str:
    """One name for the many spellings of a MoE backend."""
    plain = re.sub(r"[^a-z0-9]", "", said.lower()).removeprefix("batched")
    if plain.startswith("flashinfer"):
        kind = plain.removeprefix("flashinfer")
        return f"flashinfer_{kind}" if kind else "flashinfer"
    if "deepgemm" in plain:
        return "deepgemm"
    if "cutlass" in plain:
        return "cutlass"
    return "triton" if plain.startswith("triton") else plain
