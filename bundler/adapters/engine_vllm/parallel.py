"""How many GPUs share the model: divisibility, GPUs that are there, number formats."""

from __future__ import annotations

from collections.abc import Iterator

from bundler.adapters.engine_vllm import history
from bundler.adapters.engine_vllm.case import Case
from bundler.adapters.engine_vllm.nodes import NATIVE
from bundler.domain.catalogue import finding
from bundler.domain.findings import Finding
from bundler.domain.gpus import gpu

# Compute capability with hardware for the format.
_HARDWARE = {"fp8": (8, 9), "nvfp4": (10, 0)}
# Up to here a shard that cuts FP8 blocks is refused; later versions refine the scales
# (fused_moe/oracle/fp8.py: not in 0.25, in 0.29).
_REFUSES_CUT_BLOCKS = (0, 26, 0)


def judge(case: Case) -> Iterator[Finding]:
    """What cannot be shared like that, or not on those GPUs."""
    yield from _there(case)
    yield from _stages(case)
    yield from _nodes(case)
    if case.model is not None:
        yield from _divides(case)
        yield from _format(case)


def _there(case: Case) -> Iterator[Finding]:
    service, target = case.situation.service, case.situation.target
    if case.on_cpu:
        return
    if not target.gpus:
        yield finding("gpu-unstated", "target.gpus", "no GPU is stated")
        return
    for name in dict.fromkeys(case.gpu_names):
        if gpu(name) is None:
            yield finding("gpu-unknown", "target.gpus", f"{name} is not in the table")
    total = sum(item.count for item in target.gpus)
    beyond = [at for at in service.gpus if at >= total]
    if beyond:
        yield case.finding(
            "tensor-parallel",
            f"services[].gpus {beyond[0]}: the target has {total}, counted from 0",
        )
        return
    hosts = service.nodes if service.nodes > 1 else case.number("--nnodes") or 1
    wanted, there = case.tensor_parallel * case.stages, len(service.gpus) or total
    if wanted > there * hosts:
        yield case.finding(
            "tensor-parallel",
            f"tensor_parallel {case.tensor_parallel}"
            + (f" x pipeline stages {case.stages}" if case.stages > 1 else "")
            + f": {wanted} GPUs are needed, the service has {there}"
            + (f" on each of {hosts} nodes" if hosts > 1 else ""),
        )


def _stages(case: Case) -> Iterator[Finding]:
    """A stage without a layer is refused at the start (vllm/distributed/utils.py, `get_pp_indices`)."""
    layers = sum(group.layers for group in case.model.groups) if case.model else 0
    if layers and case.stages > layers:
        yield case.finding(
            "tensor-parallel",
            f"pipeline_parallel {case.stages}: more stages than the model has layers ({layers})",
            fix="Choose a smaller pipeline_parallel.",
        )


def _nodes(case: Case) -> Iterator[Finding]:
    """Over which of vLLM's two ways its nodes can meet; neither is a refusal."""
    nodes = case.situation.service.nodes
    if nodes == 1:
        return
    native, ray = all(map(case.takes_flag, NATIVE)), case.carries("ray")
    ways = [word for word, there in (("--nnodes", native), ("Ray", ray)) if there]
    if not ways:
        first = history.first_version("flag", NATIVE[0])
        yield case.finding(
            "nodes-apart",
            f"nodes {nodes}: {case.engine} does not know {NATIVE[0]} (first in {first}), and Ray is"
            " not carried",
        )
        return
    yield case.finding(
        "nodes-ways",
        f"nodes {nodes}, {case.tensor_parallel * case.stages // nodes} GPUs on each:"
        f" {case.engine} can spread over them by {' and by '.join(ways)}",
        fix="" if ray else "To have Ray too, carry it: engine.requirements: ['ray[cgraph]'].",
    )


def _divides(case: Case) -> Iterator[Finding]:
    degree, model = case.tensor_parallel, case.model
    if model is None or degree == 1:
        return
    if model.attention_heads and model.attention_heads % degree:
        yield case.finding(
            "tensor-parallel",
            f"tensor_parallel {degree}: {model.name} has {model.attention_heads} attention heads,"
            " which do not divide",
        )
        return
    for heads in {group.kv_heads for group in model.groups if group.kind in ("full", "sliding")}:
        if heads and heads % degree and degree % heads:
            yield case.finding(
                "tensor-parallel",
                f"tensor_parallel {degree}: {model.name} has {heads} KV heads, which do not divide",
            )
    yield from _blocks(case)


def _blocks(case: Case) -> Iterator[Finding]:
    """https://github.com/vllm-project/vllm/blob/v0.17.1/vllm/model_executor/layers/quantization/fp8.py ."""
    model = case.model
    if not (model and case.block_fp8 and model.moe_intermediate_size):
        return
    if "--enable-expert-parallel" in case.given or case.release >= _REFUSES_CUT_BLOCKS:
        return
    width, block = model.moe_intermediate_size // case.tensor_parallel, model.quantization_block[0]
    if width % block:
        yield case.finding(
            "tensor-parallel",
            f"tensor_parallel {case.tensor_parallel}: {model.name}'s experts are"
            f" {model.moe_intermediate_size} wide, {width} on each GPU, which cuts FP8 blocks of"
            f" {block}; {case.engine} stops",
            fix="Choose a smaller tensor_parallel, or --enable-expert-parallel.",
        )


def _format(case: Case) -> Iterator[Finding]:
    model = case.model
    needed = _HARDWARE.get(model.quantization) if model else None
    if model and needed and case.gpu and case.capability and case.capability < needed:
        yield case.finding(
            "quantization-gpu",
            f"{model.name} is {model.quantization}, {case.gpu.name} has compute capability"
            f" {case.gpu.compute_capability}; hardware for it begins at {needed[0]}.{needed[1]}",
        )
