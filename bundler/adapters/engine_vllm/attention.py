"""KV-cache type x attention backend x GPU.

Order and support were read in platforms/cuda.py and v1/attention/backends of 0.13 to 0.32:

- FLASH_ATTN needs compute capability 8.0, and takes an FP8 cache on 9.0 only (FlashAttention 3).
- TRITON_ATTN takes an FP8 cache from 8.9: below it "native FP8 (fp8e4nv) requires SM89+".
- FLASHINFER takes most, and compiles itself with nvcc at run time.
- On 10.x FLASHINFER is asked first, elsewhere FLASH_ATTN.
"""

from __future__ import annotations

from collections.abc import Iterator

from bundler.adapters.engine_vllm import history
from bundler.adapters.engine_vllm.case import Case, nearest, release
from bundler.domain.findings import Finding

KV_FLAG = "--kv-cache-dtype"
FLAG = "--attention-backend"
VARIABLE = "VLLM_ATTENTION_BACKEND"
# llama.cpp's name of a KV-cache type -> vLLM's.
_LLAMA_NAMES = {
    "f16": "float16 or auto",
    "f32": "auto",
    "bf16": "bfloat16",
    "q8_0": "fp8",
    "q5_0": "fp8",
    "q5_1": "fp8",
    "q4_0": "fp8 (nvfp4 on Blackwell)",
    "q4_1": "fp8 (nvfp4 on Blackwell)",
    "iq4_nl": "fp8 (nvfp4 on Blackwell)",
}
_NATIVE = ("auto", "bfloat16", "float16")
# Up to 0.29 FlashInfer takes nvfp4 on 10.x only, in 0.32 on 8.x, 9.x and 12.x as well.
_NVFP4_ELSEWHERE = (0, 30, 0)
_DECODERS = ("FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION")
_LOWEST = {"FLASH_ATTN": (8, 0), "FLASHINFER": (7, 5), "FLASHMLA": (9, 0), "CUTLASS_MLA": (10, 0),
           "FLASHINFER_MLA": (10, 0)}  # fmt: skip


def kv_type(case: Case) -> str:
    """The KV-cache type that is in force."""
    stated = case.settings.kv_cache_dtype
    return stated if stated != "auto" else case.given.get(KV_FLAG, "auto")


def named_backend(case: Case) -> str | None:
    """The attention backend that the spec names, by flag, JSON key or variable."""
    for flag in (FLAG, "--attention-config.backend"):
        if case.given.get(flag):
            return case.given[flag].upper()
    by_variable = case.settings.env.get(VARIABLE)
    return by_variable.upper() if by_variable and case.knows_env(VARIABLE) else None


def backends(case: Case) -> tuple[str, ...]:
    """Those that would take the model's KV cache on this GPU, the engine's first choice first.

    Empty when it is not known: another kind of attention, or no facts.
    """
    special = case.model is None or any(group.kind == "mla" for group in case.model.groups)
    if special or case.capability is None or not case.facts.attention_backends:
        return ()
    first = ("FLASHINFER",) if case.blackwell else ("FLASH_ATTN",)
    order = (*first, *(name for name in _DECODERS if name not in first))
    return tuple(name for name in order if _takes(case, name, kv_type(case)))


def judge(case: Case) -> Iterator[Finding]:
    """The KV-cache type and the attention backend, each by itself and together."""
    dtype = kv_type(case)
    if case.facts.kv_cache_dtypes and dtype not in case.facts.kv_cache_dtypes:
        yield _unknown_type(case, dtype)
        return
    if dtype == "fp8_e5m2" and case.block_fp8:
        yield case.finding(
            "kv-dtype-backend",
            f"kv_cache_dtype {dtype}: {case.engine} does not take it with FP8 weights",
            fix="Choose fp8 or auto.",
        )
        return
    name = named_backend(case)
    if name is not None and case.facts.attention_backends:
        yield from _named(case, name, dtype)
    elif not case.on_cpu and case.capability and _judged(case) and not backends(case):
        yield _no_backend(case, dtype)


def _judged(case: Case) -> bool:
    return bool(
        case.model
        and case.model.groups
        and set(_DECODERS) <= set(case.facts.attention_backends)
        and not any(group.kind == "mla" for group in case.model.groups)
        and kv_type(case).startswith(("fp8", "nvfp4", *_NATIVE))
    )


def _unknown_type(case: Case, dtype: str) -> Finding:
    what = f"settings.kv_cache_dtype {dtype}: {case.engine} does not know it"
    offered = ", ".join(case.facts.kv_cache_dtypes)
    if dtype in _LLAMA_NAMES:
        return case.finding(
            "kv-dtype-unknown",
            f"{what}; that is llama.cpp's name",
            fix=f"Write {_LLAMA_NAMES[dtype]}; it offers {offered}.",
        )
    first = history.first_version("choice", f"{KV_FLAG}={dtype}")
    near = nearest(dtype, case.facts.kv_cache_dtypes)
    if first and release(first) > case.release:
        what += f"; first in {first}"
    elif near:
        what += f"; the nearest is {near}"
    return case.finding("kv-dtype-unknown", what, fix=f"Choose one of {offered}.")


def _named(case: Case, name: str, dtype: str) -> Iterator[Finding]:
    known = case.facts.attention_backends
    if name not in known and name not in ("AUTO", "CUSTOM"):
        near = nearest(name, known)
        hint = f"; the nearest is {near}" if near else ""
        yield case.finding(
            "attention-backend",
            f"attention backend {name}: {case.engine} does not know it{hint}",
            fix=f"Choose one of {', '.join(sorted(known))}.",
        )
        return
    if case.capability is None or case.gpu is None:
        return
    if case.capability < _LOWEST.get(name, (0, 0)):
        lowest = ".".join(map(str, _LOWEST[name]))
        yield case.finding(
            "attention-backend",
            f"attention backend {name}: {case.gpu.name} has compute capability"
            f" {case.gpu.compute_capability}, it needs {lowest}",
        )
    elif name in known and not _takes(case, name, dtype):
        yield case.finding(
            "kv-dtype-backend",
            f"kv_cache_dtype {dtype}: attention backend {name} of {case.engine} does not take it"
            f" on {case.gpu.name} (compute capability {case.gpu.compute_capability})",
            fix=_advice(case, dtype),
        )


def _no_backend(case: Case, dtype: str) -> Finding:
    name = case.gpu.name if case.gpu else "this GPU"
    return case.finding(
        "kv-dtype-backend",
        f"kv_cache_dtype {dtype}: no attention backend of {case.engine} takes it on {name}",
        fix=_advice(case, dtype),
    )


def _advice(case: Case, dtype: str) -> str:
    taking = [name for name in _DECODERS if _takes(case, name, dtype)]
    other = f"Choose {FLAG} {' or '.join(taking)}, or " if taking else "Choose "
    return other + "kv_cache_dtype auto."


def _takes(case: Case, name: str, dtype: str) -> bool:
    """Whether a backend takes that type on that GPU; what is not stated counts as yes."""
    backend = case.facts.attention_backends.get(name)
    capability = case.capability
    if backend is None or capability is None:
        return False
    if capability < _LOWEST.get(name, (0, 0)):
        return False
    if name == "FLASH_ATTN" and not _sinks(case):
        return False
    if dtype in _NATIVE:
        return dtype == "auto" or not backend.kv_cache_dtypes or dtype in backend.kv_cache_dtypes
    if dtype.startswith("fp8") and name in ("FLASH_ATTN", "TRITON_ATTN"):
        return _fp8(name, dtype, capability, backend.kv_cache_dtypes)
    if dtype.startswith("nvfp4"):
        return name == "FLASHINFER" and (case.blackwell or case.release >= _NVFP4_ELSEWHERE)
    return not backend.kv_cache_dtypes or dtype in backend.kv_cache_dtypes


def _fp8(name: str, dtype: str, capability: tuple[int, int], stated: tuple[str, ...]) -> bool:
    """FP8 in FLASH_ATTN and TRITON_ATTN. Old FLASH_ATTN states it in a method, which is not read."""
    if name == "FLASH_ATTN":
        return capability == (9, 0) and (dtype in stated or "fp8" not in stated)
    return capability >= (8, 9) and (not stated or dtype in stated)


def _sinks(case: Case) -> bool:
    """FLASH_ATTN serves gpt-oss's attention sinks with FlashAttention 3 only (compute capability 9.0)."""
    sinks = case.model is not None and "GptOssForCausalLM" in case.model.architectures
    return not sinks or case.hopper
