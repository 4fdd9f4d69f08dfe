"""Does it fit: the answers that the field gave, and the terms behind them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.build.fit import fit
from bundler.build.offload import Offload
from bundler.domain.findings import Finding
from bundler.domain.fit import Fit
from bundler.domain.model_facts import LayerGroup, ModelFacts
from bundler.domain.spec import Acceptance, Service
from bundler.domain.target import Target
from tests.unit.connected.test_kvcache import A3B, B27, B122

GIB = 2**30
# Exact bytes come from the headers; these are the published parameter counts at their types.
A3B_FP8 = A3B.model_copy(
    update={"weight_bytes": 37_500_000_000, "experts": 256, "max_context": 262_144}
)
B122_FP8 = B122.model_copy(
    update={"weight_bytes": 127_000_000_000, "experts": 256, "max_context": 262_144}
)
B27_Q4 = B27.model_copy(
    update={"weight_bytes": 16_500_000_000, "max_context": 262_144, "format": "gguf"}
)


def calculate(
    model: ModelFacts, gpu: str = "NVIDIA H200", count: int = 1, engine: str = "vllm",
    version: str = "0.18.0", acceptance: dict[str, Any] | None = None, gpus: tuple[int, ...] = (),
    **settings: Any,
) -> tuple[Fit | None, dict[str, Finding]]:  # fmt: skip
    service = Service.model_validate(
        {"name": "s", "model": "m", "settings": settings, "gpus": gpus}
    )
    target = Target.model_validate(
        {"python": "3.12", "glibc": "2.31",
         "gpus": [{"model": gpu, "count": count}] if count else []}
    )  # fmt: skip
    result, found = fit(
        service, model, target, engine, version, Acceptance.model_validate(acceptance or {})
    )
    return result, {item.code: item for item in found}


@pytest.mark.parametrize(("gpu", "count"), [("NVIDIA H200", 1), ("H100", 1), ("H100", 2)])
def test_qwen35_35b_a3b_fits(gpu: str, count: int) -> None:
    result, found = calculate(
        A3B_FP8, gpu, count, tensor_parallel=count, max_model_len=131_072,
        acceptance={"concurrency": [1, 25, 50], "input_tokens": 1024, "output_tokens": 256},
    )  # fmt: skip
    assert result is not None
    assert result.fits
    assert not found
    assert result.max_context == 262_144
    assert result.requests >= 4


def test_122b_at_fp8_does_not_safely_fit_two_h100_and_the_terms_say_why() -> None:
    result, found = calculate(B122_FP8, "NVIDIA H100 80GB HBM3", 2, tensor_parallel=2)
    assert result is not None
    assert set(found) == {"fit-unsafe"}
    what = found["fit-unsafe"].what
    assert "weights 59.1 GiB" in what
    assert "of 71.3 GiB usable" in what
    assert "overhead may take 4.0 GiB more" in what
    # The same on two H200, and the 35B on these: yes.
    assert not calculate(B122_FP8, "NVIDIA H200", 2, tensor_parallel=2)[1]
    assert not calculate(A3B_FP8, "NVIDIA H100 80GB HBM3", 2, tensor_parallel=2)[1]


def test_on_one_gpu_of_two_it_says_what_to_set() -> None:
    result, found = calculate(B122_FP8, "NVIDIA H100 80GB HBM3", 2)
    assert result is not None
    assert result.kv_bytes < 0
    assert "set tensor_parallel" in found["fit-no"].fix
    assert "118.3 GiB in" in result.terms[0].how


def test_the_largest_context_is_named() -> None:
    tight = A3B_FP8.model_copy(update={"weight_bytes": 68 * 10**9})
    result, found = calculate(tight, "NVIDIA H100 80GB HBM3", 1, max_model_len=262_144)
    assert result is not None
    assert "fit-context" in found
    limit = result.max_context
    assert f"max_model_len to {limit}" in found["fit-context"].fix
    again, _ = calculate(tight, "NVIDIA H100 80GB HBM3", 1, max_model_len=limit)
    assert again is not None
    assert again.requests == 1


def test_kv_type_and_context_decide_on_a_small_gpu() -> None:
    small = {"gpu": "RTX 3090 Ti", "engine": "llama.cpp", "max_num_seqs": 1}
    ok, _ = calculate(B27_Q4, kv_cache_dtype="q8_0", max_model_len=98_304, **small)
    no, found = calculate(B27_Q4, kv_cache_dtype="f16", max_model_len=131_072, **small)
    assert ok is not None
    assert ok.fits
    assert no is not None
    assert not no.fits
    assert "fit-context" in found
    assert 98_304 <= ok.max_context < 262_144


def test_a_quantized_cache_is_offered_when_memory_is_short() -> None:
    sent = {"concurrency": [200], "input_tokens": 30_000, "output_tokens": 1000}
    _, found = calculate(A3B_FP8, acceptance=sent)
    assert "fit-users" in found
    assert "fp8 would hold" in found["kv-dtype-default"].what
    _, found = calculate(A3B_FP8, acceptance=sent, kv_cache_dtype="fp8")
    assert "kv-dtype-default" not in found


def test_fewer_sequences_than_users_is_said() -> None:
    _, found = calculate(A3B_FP8, acceptance={"concurrency": [50]}, max_num_seqs=16)
    assert "max_num_seqs is 16" in found["fit-users"].what


def test_two_at_once_or_it_is_tight() -> None:
    lean = A3B_FP8.model_copy(update={"weight_bytes": 119 * 10**9})
    result, found = calculate(lean, max_model_len=262_144)
    assert result is not None
    assert result.requests == 1
    assert set(found) & {"fit-tight", "fit-unsafe"}


def test_a_context_beyond_the_model() -> None:
    assert "context-over-model" in calculate(A3B_FP8, max_model_len=300_000)[1]


def test_what_cannot_be_calculated_is_said() -> None:
    assert calculate(A3B_FP8, count=0) == (None, {})
    for model in (ModelFacts(name="m"), A3B_FP8.model_copy(update={"groups": ()})):
        result, found = calculate(model)
        assert result is None
        assert set(found) == {"fit-unknown"}
    assert "GTX 1080" in calculate(A3B_FP8, "GTX 1080")[1]["fit-unknown"].what
    assert "zfp" in calculate(A3B_FP8, kv_cache_dtype="zfp")[1]["fit-unknown"].what


def test_a_service_is_calculated_on_its_own_gpus() -> None:
    service = Service.model_validate({"name": "s", "model": "m", "gpus": [1]})
    target = Target.model_validate(
        {"python": "3.12", "glibc": "2.31", "gpus": [{"model": "H200"}, {"model": "RTX 3090"}]}
    )
    result, _ = fit(service, A3B_FP8, target, "vllm", "0.18.0", Acceptance())
    assert result is not None
    assert result.gpu == "NVIDIA GeForce RTX 3090"


def test_gpu_memory_utilization_has_the_version_s_default() -> None:
    old, _ = calculate(A3B_FP8, version="0.32.0")
    new, _ = calculate(A3B_FP8, version="0.33.0")
    own, _ = calculate(A3B_FP8, version="0.33.0", gpu_memory_utilization=0.5)
    assert old is not None
    assert new is not None
    assert own is not None
    assert own.usable_bytes < old.usable_bytes < new.usable_bytes


MOE = ModelFacts(
    name="m", format="gguf", weight_bytes=20 * 10**9, expert_bytes=16 * 10**9, experts=128,
    groups=(LayerGroup(kind="full", layers=40, kv_heads=2, head_dim=128),), max_context=32_768,
)  # fmt: skip


@pytest.mark.parametrize(
    ("args", "kept"),
    [
        ((), 0),
        (("-cmoe",), 16),
        (("--cpu-moe",), 16),
        (("-ncmoe", "10"), 4),
        (("--n-cpu-moe=20",), 8),
        (("-ncmoe", "99"), 16),
        (("-ot", r".ffn_.*_exps.=CPU"), 16),
        (("-ngl", "30"), 5),
        (("-ngl", "99"), 0),
        (("-ncmoe", "many"), 0),
    ],
)
def test_experts_stay_in_ram(args: tuple[str, ...], kept: int) -> None:
    assert Offload.of(args, MOE).bytes == kept * 10**9
    result, _ = calculate(MOE, "RTX 3090", engine="llama.cpp", args=args)
    assert result is not None
    assert result.terms[0].bytes == (20 - kept) * 10**9
    assert [term.bytes for term in result.host_terms] == ([kept * 10**9] if kept else [])


@given(st.integers(1, 2**48), st.integers(1, 2**40), st.sampled_from(["auto", "fp8"]),
       st.sampled_from([1, 2, 4, 8, 64]))  # fmt: skip
def test_no_size_ends_in_anything_but_an_answer(
    weights: int, context: int, dtype: str, tp: int
) -> None:
    model = A3B_FP8.model_copy(update={"weight_bytes": weights})
    result, _ = calculate(
        model, count=8, max_model_len=context, kv_cache_dtype=dtype, tensor_parallel=tp
    )
    assert result is not None
    assert result.max_context <= max(context, 262_144)
    assert all(count >= 0 for count in result.at.values())
