"""The MoE kernel: how each version is told to take it.

Read in the wheels of 0.11 to 0.32 (fused_moe/oracle/fp8.py and, before 0.14, quantization/fp8.py):

- From 0.17 `--moe-backend` decides before every variable.
- Before it, a DeepGEMM variable that is set to 0 takes DeepGEMM out; VLLM_MOE_USE_DEEP_GEMM=1 demands
  it. In 0.15 and 0.16 FlashInfer's kernels come first of all where they can be compiled, unless
  VLLM_USE_FLASHINFER_MOE_FP8 is set to 0.
- With FlashInfer the engine chooses between its CUTLASS and TensorRT-LLM kernels by GPU up to 0.16;
  `--moe-backend` wants one of the two by name.
"""

from __future__ import annotations

from bundler.adapters.engine_vllm.case import release

FLAG = "--moe-backend"
BACKENDS = {
    "triton": "triton",
    "deepgemm": "deep_gemm",
    "cutlass": "cutlass",
    "flashinfer": "flashinfer_cutlass",
}
# First version with a switch for the kernel.
SWITCH_SINCE = {
    "triton": "0.11.0",
    "deepgemm": "0.11.1",
    "cutlass": "0.17.0",
    "flashinfer": "0.11.0",
}
# Written out with 1 they force DeepGEMM, although 1 is the default: the engine asks whether they are set.
FORCING = ("VLLM_USE_DEEP_GEMM", "VLLM_MOE_USE_DEEP_GEMM")
_FLASHINFER = {f"VLLM_USE_FLASHINFER_MOE_{kind}": "1" for kind in ("FP8", "FP16", "FP4")}


def has_switch(kernel: str, version: str) -> bool:
    """Whether this version can be told to take the kernel."""
    return kernel == "auto" or release(version) >= release(SWITCH_SINCE[kernel])


def switches(kernel: str, version: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Flags and variables that choose the kernel; none when there is no switch."""
    if kernel == "auto" or not has_switch(kernel, version):
        return (), {}
    if release(version) >= (0, 17, 0):
        return (FLAG, BACKENDS[kernel]), {}
    if kernel == "flashinfer":
        return (), dict(_FLASHINFER)
    if kernel == "deepgemm":
        return (), {"VLLM_MOE_USE_DEEP_GEMM": "1"}
    if release(version) < (0, 11, 1):
        return (), {"VLLM_USE_DEEP_GEMM": "0"}
    flashinfer = {"VLLM_USE_FLASHINFER_MOE_FP8": "0"} if release(version) >= (0, 15, 0) else {}
    return (), {"VLLM_MOE_USE_DEEP_GEMM": "0", **flashinfer}
