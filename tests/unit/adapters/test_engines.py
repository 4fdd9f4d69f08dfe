"""Settings to command lines: golden, per engine and version."""

from pathlib import Path

import pytest

from bundler.adapters.engine_llamacpp.adapter import LlamaCppEngine
from bundler.adapters.engine_vllm.adapter import VllmEngine
from bundler.domain.findings import Level
from bundler.domain.model_facts import LayerGroup, ModelFacts
from bundler.domain.spec import Service, Settings
from bundler.domain.target import Target
from bundler.errors import SpecError
from bundler.ports import Install, Situation


def install(version: str, files: tuple[str, ...] = ()) -> Install:
    return Install(
        python=Path("/r/venv/bin/python"),
        programs=(Path("/r/venv/bin/llama-server-vulkan"), Path("/r/venv/bin/python")),
        model=Path("/r/models/m"),
        model_files=files,
        cache_dir=Path("/r/cache/s"),
        engine_version=version,
        distribution="x",
    )


def service(**settings: object) -> Service:
    return Service(name="s", model="m", port=8000, settings=Settings.model_validate(settings))


@pytest.mark.parametrize(
    ("version", "kernel", "flags", "env"),
    [
        ("0.11.0", "triton", [], {"VLLM_USE_DEEP_GEMM": "0"}),
        ("0.11.1", "triton", [], {"VLLM_MOE_USE_DEEP_GEMM": "0"}),
        ("0.16.0", "triton", [], {"VLLM_MOE_USE_DEEP_GEMM": "0"}),
        ("0.16.0", "deepgemm", [], {"VLLM_MOE_USE_DEEP_GEMM": "1"}),
        ("0.17.0", "triton", ["--moe-backend", "triton"], {}),
        ("0.17.1", "triton", ["--moe-backend", "triton"], {}),
        ("0.33.0", "deepgemm", ["--moe-backend", "deep_gemm"], {}),
        ("0.25.1", "flashinfer", ["--moe-backend", "flashinfer_cutlass"], {}),
        ("0.17.1", "auto", [], {}),
    ],
)
def test_the_kernel_is_chosen_as_each_vllm_version_wants_it(
    version: str, kernel: str, flags: list[str], env: dict[str, str]
) -> None:
    plan = VllmEngine().plan(install(version), service(kernel=kernel))
    found = (
        list(plan.argv[plan.argv.index("--moe-backend") :][:2])
        if "--moe-backend" in plan.argv
        else []
    )
    assert found == flags
    assert {k: v for k, v in plan.env.items() if "DEEP_GEMM" in k and k.startswith("VLLM")} == env


def test_a_kernel_without_a_switch_is_refused() -> None:
    with pytest.raises(SpecError, match=r"0\.16\.0 has no switch"):
        VllmEngine().plan(install("0.16.0"), service(kernel="cutlass"))


@pytest.mark.parametrize("name", ["VLLM_USE_DEEP_GEMM", "VLLM_MOE_USE_DEEP_GEMM"])
def test_the_variable_that_forces_deepgemm_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match="forces DeepGEMM"):
        VllmEngine().check(service(env={name: "1"}), "0.17.1")
    VllmEngine().check(service(env={name: "0"}), "0.17.1")


def test_vllm_command_line() -> None:
    plan = VllmEngine().plan(
        install("0.17.1"),
        service(
            kernel="triton",
            kv_cache_dtype="fp8",
            max_model_len=4096,
            tensor_parallel=2,
            gpu_memory_utilization=0.9,
            env={"X": 1},
            args=["--enforce-eager"],
        ),
    )
    assert plan.argv == (
        "/r/venv/bin/python", "-m", "vllm.entrypoints.openai.api_server", "--model", "/r/models/m",
        "--host", "127.0.0.1", "--port", "8000", "--served-model-name", "s",
        "--max-model-len", "4096", "--gpu-memory-utilization", "0.9",
        "--tensor-parallel-size", "2", "--kv-cache-dtype", "fp8", "--moe-backend", "triton",
        "--enforce-eager",
    )  # fmt: skip
    assert plan.env["HF_HUB_OFFLINE"] == "1"
    assert plan.env["VLLM_NO_USAGE_STATS"] == "1"
    assert plan.env["VLLM_CACHE_ROOT"] == "/r/cache/s/vllm"
    assert plan.env["X"] == "1"
    assert plan.health_path == "/health"


def test_llama_server_command_line() -> None:
    files = ("mmproj-a.gguf", "m-00002-of-00002.gguf", "m-00001-of-00002.gguf", "README.md")
    plan = LlamaCppEngine().plan(
        install("1", files), service(kv_cache_dtype="q8_0", max_model_len=98304, max_num_seqs=2)
    )
    assert plan.argv == (
        "/r/venv/bin/llama-server-vulkan", "-m", "/r/models/m/m-00001-of-00002.gguf",
        "--host", "127.0.0.1", "--port", "8000", "--alias", "s", "-np", "2", "-c", "196608",
        "-ctk", "q8_0", "-ctv", "q8_0", "-fa", "on",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        ({}, ()),
        ({"gpu_layers": 0}, ("--n-gpu-layers", "0")),
        ({"gpu_layers": 99, "cpu_moe_layers": 20}, ("--n-gpu-layers", "99", "--n-cpu-moe", "20")),
        ({"fit": False}, ("--fit", "off")),
        ({"fit": True}, ("--fit", "on")),
    ],
)
def test_what_lies_on_the_gpu_is_a_setting(
    settings: dict[str, object], flags: tuple[str, ...]
) -> None:
    argv = LlamaCppEngine().plan(install("1", ("m.gguf",)), service(**settings)).argv
    assert argv[argv.index("-np") + 2 :] == flags


def test_experts_of_a_dense_model_cannot_be_moved() -> None:
    dense = ModelFacts(name="m", format="gguf", groups=(LayerGroup(layers=4, kind="full"),))
    assert "dense" in llama_review(dense, cpu_moe_layers=4)["setting-ignored"][1]
    moe = dense.model_copy(update={"experts": 8})
    assert not llama_review(moe, cpu_moe_layers=4)


def test_vllm_has_no_use_for_what_llama_cpp_places() -> None:
    review = VllmEngine().review(
        Situation(
            service=service(gpu_layers=1, cpu_moe_layers=1, fit=True),
            version="0.17.1",
            target=Target(python="3.12", glibc="2.35"),
            packages={},
            engine=None,
            model=None,
        )
    )
    ignored = [one.what for one in review.findings if one.code == "setting-ignored"]
    assert [what.partition(":")[0] for what in ignored] == [
        "settings.gpu_layers", "settings.cpu_moe_layers", "settings.fit",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"kernel": "triton"}, "kernel"),
        ({"kv_cache_dtype": "fp8"}, "q8_0"),
        ({"tensor_parallel": 2}, "tensor_parallel"),
    ],
)
def test_llama_cpp_refuses_what_it_does_not_know(settings: dict[str, object], what: str) -> None:
    with pytest.raises(SpecError, match=what):
        LlamaCppEngine().plan(install("1", ("m.gguf",)), service(**settings))


def test_a_model_without_gguf_is_refused() -> None:
    with pytest.raises(SpecError, match=r"no \.gguf"):
        LlamaCppEngine().plan(install("1", ("model.safetensors",)), service())


def llama_review(
    model: ModelFacts | None = None, **settings: object
) -> dict[str, tuple[Level, str, str]]:
    """Findings of llama.cpp's review by code: level, what, fix."""
    advice = LlamaCppEngine().review(
        Situation(
            service=service(**settings),
            version="1",
            target=Target(python="3.12", glibc="2.35"),
            packages={},
            engine=None,
            model=model,
        )
    )
    return {item.code: (item.level, item.what, item.fix) for item in advice.findings}


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"kernel": "triton"}, "kernel-no-switch", "kernel triton"),
        ({"kv_cache_dtype": "fp8_e4m3"}, "kv-dtype-unknown", "Write q8_0"),
        ({"kv_cache_dtype": "float16"}, "kv-dtype-unknown", "Write f16"),
        ({"kv_cache_dtype": "q9_9"}, "kv-dtype-unknown", "q8_0"),
        ({"tensor_parallel": 2}, "tensor-parallel", "--split-mode"),
        ({"gpu_memory_utilization": 0.9}, "setting-ignored", "gpu_memory_utilization"),
        ({"args": ["-c", "4096"]}, "flag-clash", "settings.max_model_len"),
        ({"gpu_layers": 9, "args": ["-ngl", "8"]}, "flag-clash", "settings.gpu_layers"),
        ({"cpu_moe_layers": 9, "args": ["-ngl", "8"]}, None, ""),
        ({"args": ["--port=9"]}, "flag-clash", "services[].port"),
        ({"kv_cache_dtype": "q8_0", "args": ["-fa", "off"]}, "kv-dtype-backend", "flash attention"),
        ({"args": ["-fa", "off", "-ngl", "99"], "kv_cache_dtype": "f16"}, None, ""),
        ({"kv_cache_dtype": "q8_0", "args": ["-fa", "on"]}, None, ""),
    ],
)
def test_llama_cpp_is_reviewed(settings: dict[str, object], code: str | None, words: str) -> None:
    findings = llama_review(**settings)
    assert list(findings) == ([code] if code else [])
    if code:
        assert words in " ".join(findings[code][1:])


def test_llama_cpp_reads_gguf_only() -> None:
    assert "format-mismatch" in llama_review(ModelFacts(name="m", format="safetensors"))
    assert not llama_review(ModelFacts(name="m", format="gguf"))


def test_another_port_would_hide_llama_server() -> None:
    assert llama_review(args=["--port", "9"])["flag-clash"][0] is Level.ERROR
    assert llama_review(args=["-c", "9"])["flag-clash"][0] is Level.WARNING


@pytest.mark.parametrize(
    "settings", [{"kernel": "triton"}, {"kv_cache_dtype": "fp8"}, {"tensor_parallel": 2}]
)
def test_the_review_includes_what_the_closed_side_refuses(settings: dict[str, object]) -> None:
    with pytest.raises(SpecError) as refused:
        LlamaCppEngine().check(service(**settings), "1")
    ((level, what, _),) = llama_review(**settings).values()
    assert level is Level.ERROR
    assert what in str(refused.value)
