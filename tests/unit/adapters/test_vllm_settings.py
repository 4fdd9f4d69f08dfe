"""Architecture, variables and flags, judged."""

import pytest

from bundler.domain.engine_facts import EngineFacts
from bundler.domain.findings import Level
from bundler.domain.model_facts import ModelFacts
from tests.unit.adapters.vllm_cases import MOE, codes, facts, found, review


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
        (["--num-lookahead-slots", "4"], "flag-unknown", "last in 0.11.2"),
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
