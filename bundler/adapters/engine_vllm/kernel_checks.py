"""Whether the MoE kernel can work: carried, right for the GPU and for the model's number format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from bundler.adapters.engine_vllm.case import Case
from bundler.adapters.engine_vllm.kernels import FLAG, FORCING, SWITCH_SINCE, has_switch
from bundler.domain.findings import Finding

# Number format of the weights -> kernels that `--moe-backend` takes for it, and since when the table
# holds: the `map_..._backend` of fused_moe/oracle in 0.17 to 0.32. Others end in a ValueError.
_TAKES: dict[str, tuple[tuple[int, int, int], tuple[str, ...]]] = {
    "": ((0, 17, 0), ("triton", "flashinfer")),
    "fp8": ((0, 17, 0), ("triton", "deepgemm", "cutlass", "flashinfer")),
    "nvfp4": ((0, 17, 0), ("cutlass", "flashinfer")),
    "mxfp4": ((0, 21, 0), ("triton", "deepgemm", "flashinfer")),
}


def deep_gemm(case: Case) -> Literal["carried", "absent", "other-python", "unknown"]:
    """Whether DeepGEMM can be imported: from a package of its own, or vendored in the wheel.

    0.20.0 vendors it for cp312 only: https://github.com/vllm-project/vllm/issues/41487 .
    """
    if case.carries("deep-gemm") or case.carries("deep_gemm"):
        return "carried"
    tags = case.facts.deep_gemm
    if tags:
        ours = "cp" + case.situation.target.python.replace(".", "")
        return "carried" if ours in tags or "abi3" in tags else "other-python"
    return "absent" if case.situation.engine or case.release < (0, 20, 0) else "unknown"


def variant(case: Case) -> str | None:
    """The backend that the GPU wants in place of the rendered one.

    FlashInfer's CUTLASS kernel takes block-wise FP8 on compute capability 9.0 only (its
    `_supports_quant_scheme`); on 10.x TensorRT-LLM's does.
    """
    choices = case.facts.flags.get(FLAG, ())
    own = FLAG in case.given
    wanted = case.settings.kernel == "flashinfer" and case.block_fp8 and case.blackwell and not own
    return "flashinfer_trtllm" if wanted and "flashinfer_trtllm" in choices else None


def judge(case: Case) -> Iterator[Finding]:
    """What cannot work, or does not do what it says."""
    kernel = case.settings.kernel
    if not has_switch(kernel, case.situation.version):
        yield case.finding(
            "kernel-no-switch",
            f"settings.kernel {kernel}: {case.engine} has no switch for it;"
            f" first in {SWITCH_SINCE[kernel]}",
            fix=f"Use vLLM {SWITCH_SINCE[kernel]} or newer, or kernel auto.",
        )
        return
    if kernel != "auto" and case.dense:
        yield case.finding(
            "kernel-idle",
            f"settings.kernel {kernel}: {case.situation.service.model} has no experts",
        )
        return
    if case.on_cpu:
        return
    yield from _deepgemm(case)
    yield from _flashinfer(case)
    yield from _format(case)
    yield from _default(case)
    yield from _untuned(case)


def _deepgemm(case: Case) -> Iterator[Finding]:
    if case.kernel != "deepgemm":
        return
    state = deep_gemm(case)
    if state == "absent":
        yield case.finding(
            "kernel-absent",
            f"kernel deepgemm: neither {case.engine} nor its closure brings DeepGEMM",
        )
    elif state == "other-python":
        tags = ", ".join(case.facts.deep_gemm)
        yield case.finding(
            "kernel-absent",
            f"kernel deepgemm: {case.engine} brings DeepGEMM for {tags}, the target has Python"
            f" {case.situation.target.python}",
            fix="Use that Python, a newer vLLM, or kernel triton.",
        )
    # 12.x came between 0.23 and 0.25 (platforms/cuda.py); nothing is said about those two.
    gpu = case.gpu
    if gpu and not (case.hopper or case.blackwell or gpu.compute_capability.startswith("12.")):
        yield case.finding(
            "kernel-gpu",
            f"kernel deepgemm: {gpu.name} has compute capability {gpu.compute_capability},"
            " DeepGEMM needs 9.0 or 10.x",
        )


def _flashinfer(case: Case) -> Iterator[Finding]:
    if case.kernel != "flashinfer":
        return
    if case.situation.packages and not case.carries("flashinfer-python"):
        yield case.finding(
            "kernel-absent",
            "kernel flashinfer: no flashinfer-python is carried",
            fix="Add flashinfer-python to engine.requirements, or use kernel triton.",
        )
    if case.gpu and case.capability and case.capability < (9, 0):
        yield case.finding(
            "kernel-gpu",
            f"kernel flashinfer: {case.gpu.name} has compute capability"
            f" {case.gpu.compute_capability}, FlashInfer's MoE kernels need 9.0",
        )


def _format(case: Case) -> Iterator[Finding]:
    model = case.model
    since, taken = _TAKES.get(model.quantization if model else "?", ((99, 0, 0), ()))
    if not (model and model.experts) or case.kernel in ("auto", "other") or case.release < since:
        return
    form = model.quantization or "unquantized"
    if case.kernel not in taken:
        yield case.finding(
            "kernel-format",
            f"kernel {case.kernel}: {case.engine} does not take it for {form} experts"
            f" ({model.name})",
            fix=f"Choose {', '.join(taken)} or auto.",
        )
    elif case.kernel == "cutlass" and case.block_fp8 and not case.blackwell:
        yield case.finding(
            "kernel-format",
            f"kernel cutlass: {case.engine} refuses it for block-wise FP8 experts ({model.name}):"
            " 'vLLM CUTLASS FP8 MoE backend is disabled for this configuration'",
        )
    elif case.kernel == "triton" and case.fp8 and case.capability and case.capability < (8, 9):
        yield case.finding(
            "kernel-gpu",
            f"kernel triton: FP8 experts need compute capability 8.9, {case.gpu_names[0]} has less",
            fix="Choose auto: it expands the weights with Marlin.",
        )


def _default(case: Case) -> Iterator[Finding]:
    """DeepGEMM came first by default up to 0.16, but for 8 and more GPUs in 0.12 to 0.14 (PR 29346)."""
    spared = case.tensor_parallel >= 8 and (0, 12, 0) <= case.release < (0, 15, 0)
    switched_off = any(case.settings.env.get(name) == "0" for name in FORCING)
    if (
        case.kernel == "auto"
        and case.block_fp8
        and not case.dense
        and case.hopper
        and case.release < (0, 17, 0)
        and deep_gemm(case) == "carried"
        and not spared
        and not switched_off
    ):
        yield case.finding(
            "kernel-default",
            f"kernel auto: {case.engine} takes DeepGEMM for {case.situation.service.model} on"
            f" {case.gpu_names[0]}",
        )


def _untuned(case: Case) -> Iterator[Finding]:
    """https://github.com/vllm-project/vllm/tree/main/vllm/model_executor/layers/fused_moe/configs ."""
    default_triton = case.block_fp8 and case.hopper and case.release >= (0, 17, 0)
    if not (case.kernel == "triton" or (case.kernel == "auto" and default_triton)):
        return
    name = _table_name(case)
    own = "VLLM_TUNED_CONFIG_FOLDER" in case.settings.env
    if name and case.facts.moe_configs and name not in case.facts.moe_configs and not own:
        yield case.finding("kernel-untuned", f"{case.engine} has no {name}")


def _table_name(case: Case) -> str | None:
    """As vLLM's `get_config_file_name` puts it; None where the shape or the format is not clear."""
    model = case.model
    if not (model and model.experts and model.moe_intermediate_size and case.gpu_names):
        return None
    if "--enable-expert-parallel" in case.given:
        return None
    if case.block_fp8:
        block = ",".join(map(str, model.quantization_block))
        form = f",dtype=fp8_w8a8,block_shape=[{block}]"
    elif not model.quantization:
        form = ""
    else:
        return None
    device = case.gpu_names[0].replace(" ", "_")
    device = "NVIDIA_H200" if "H200" in device.split("_") else device
    width = model.moe_intermediate_size // case.tensor_parallel
    return f"E={model.experts},N={width},device_name={device}{form}.json"
