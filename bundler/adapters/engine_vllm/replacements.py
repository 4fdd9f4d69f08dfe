"""Environment variables: whether this version reads them, and what took their place.

Names and their end were read in vllm/envs.py of 0.11 to 0.32; replacements in its `deprecated_env`
entries of 0.22 and 0.23 and in vllm/config/attention.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from bundler.adapters.engine_vllm import history
from bundler.adapters.engine_vllm.case import Case, nearest, release
from bundler.adapters.engine_vllm.kernels import FORCING
from bundler.domain.findings import Finding

_MOE = "--moe-backend flashinfer_cutlass or flashinfer_trtllm"
# Variable -> what does it now.
REPLACEMENTS = {
    "VLLM_ATTENTION_BACKEND": "--attention-backend",
    "VLLM_FLASH_ATTN_VERSION": "--attention-config.flash_attn_version",
    "VLLM_FLASH_ATTN_MAX_NUM_SPLITS_FOR_CUDA_GRAPH": "--attention-config.flash_attn_max_num_splits_for_cuda_graph",
    "VLLM_USE_TRTLLM_ATTENTION": "--attention-config.use_trtllm_attention",
    "VLLM_USE_CUDNN_PREFILL": "--attention-config.use_cudnn_prefill",
    "VLLM_DISABLE_FLASHINFER_PREFILL": "--attention-config.disable_flashinfer_prefill",
    "VLLM_FLASHINFER_DISABLE_Q_QUANTIZATION": "--attention-config.disable_flashinfer_q_quantization",
    "VLLM_USE_TRTLLM_RAGGED_DEEPSEEK_PREFILL": "--attention-config.use_trtllm_ragged_deepseek_prefill",
    "VLLM_V1_USE_PREFILL_DECODE_ATTENTION": "--attention-config.use_prefill_decode_attention",
    "VLLM_ALL2ALL_BACKEND": "--all2all-backend",
    "VLLM_USE_FLASHINFER_MOE_FP8": _MOE,
    "VLLM_USE_FLASHINFER_MOE_FP16": _MOE,
    "VLLM_USE_FLASHINFER_MOE_FP4": _MOE,
    "VLLM_USE_FLASHINFER_MOE_MXFP4_BF16": _MOE,
    "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8": _MOE,
    "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS": _MOE,
    "VLLM_FLASHINFER_MOE_BACKEND": _MOE,
    "VLLM_MXFP4_USE_MARLIN": "--moe-backend marlin or --linear-backend marlin",
    "VLLM_TEST_FORCE_FP8_MARLIN": "--moe-backend marlin or --linear-backend marlin",
    "VLLM_USE_FBGEMM": "--linear-backend fbgemm",
    "VLLM_NVFP4_GEMM_BACKEND": "--linear-backend",
    "VLLM_USE_NVFP4_CT_EMULATIONS": "--linear-backend emulation",
    "VLLM_SKIP_DEEP_GEMM_WARMUP": "VLLM_DEEP_GEMM_WARMUP=skip",
    "VLLM_USE_DEEP_GEMM_E8M0_HOPPER": "VLLM_USE_DEEP_GEMM_E8M0",
}
# What VLLM becomes under a slip of the finger. LLM is left out: other programs' names begin with it.
_NEAR_PREFIXES = ("VLM", "VLL", "VLLMS", "VVLLM", "VLLLM", "VLLMM", "VLMM", "VLLN", "BLLM", "CLLM")


def judge(case: Case) -> Iterator[Finding]:
    """Each variable of the spec that does not do what its writer counts on."""
    for name, value in case.settings.env.items():
        if name in FORCING and forces(value):
            yield case.finding(
                "env-forces-deepgemm",
                f"settings.env.{name}={value}: written out, it forces DeepGEMM although 1 is the"
                " default",
                fix=f"Leave {name} out, or set kernel: deepgemm if that is what you want.",
            )
        if case.facts.env:
            yield from _known(case, name)


def forces(value: str) -> bool:
    """Whether a DeepGEMM variable with that value demands DeepGEMM."""
    return value.strip().lower() not in ("0", "false", "")


def _known(case: Case, name: str) -> Iterator[Finding]:
    meant = _meant(name)
    if meant is None:
        return
    if name == meant and case.knows_env(name):
        if name in case.facts.deprecated_env:
            words = case.facts.deprecated_env[name]
            instead = REPLACEMENTS.get(name, "")
            yield case.finding(
                "env-deprecated",
                f"settings.env.{name}: {words}",
                fix=f"Use {instead}." if instead else "",
            )
        return
    yield from _unknown(case, name, meant)


def _unknown(case: Case, name: str, meant: str) -> Iterator[Finding]:
    not_read = f"settings.env.{name}: {case.engine} does not read it"
    first, last = history.first_version("env", name), history.last_version("env", name)
    if first and release(first) > case.release:
        yield case.finding(
            "env-unknown", f"{not_read}; first in {first}", fix=f"Use vLLM {first} or newer."
        )
    elif name in REPLACEMENTS or (last and release(last) < case.release):
        instead = REPLACEMENTS.get(name, "")
        end = f"; last in {last}" if last else ""
        fix = f"Use {instead} instead." if instead else "Leave it out."
        yield case.finding("env-replaced", f"{not_read}{end}", fix=fix)
    else:
        near = meant if case.knows_env(meant) else nearest(meant, case.facts.env)
        if near:
            yield case.finding(
                "env-unknown", f"{not_read}; the nearest is {near}", fix=f"Write {near}."
            )
        elif name == meant:
            yield case.finding("env-unknown", not_read)


def _meant(name: str) -> str | None:
    """The VLLM_ name that was meant; None for a variable that is none of vLLM's."""
    head, underscore, tail = name.partition("_")
    if head == "VLLM":
        return name
    if underscore and (head.upper() == "VLLM" or head.upper() in _NEAR_PREFIXES):
        return f"VLLM_{tail.upper()}"
    return None
