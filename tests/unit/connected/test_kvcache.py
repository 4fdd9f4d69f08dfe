"""KV cache and state, against figures worked by hand and published ones."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.build.kvcache import ELEMENT, KvCache, element_bytes
from bundler.domain.model_facts import LayerGroup, ModelFacts

KIB, GIB = 2**10, 2**30


def model(*groups: LayerGroup, state: str = "float32") -> ModelFacts:
    return ModelFacts(name="m", groups=groups, state_dtype=state)


def full(layers: int, heads: int, dim: int) -> LayerGroup:
    return LayerGroup(kind="full", layers=layers, kv_heads=heads, head_dim=dim)


def qwen35(attending: int, linear: int, kv_heads: int, v_heads: int) -> ModelFacts:
    net = LayerGroup(
        kind="linear", layers=linear, k_heads=16, v_heads=v_heads, k_dim=128, v_dim=128, conv=4
    )
    return model(full(attending, kv_heads, 256), net)


A3B, B27, B9 = qwen35(10, 30, 2, 32), qwen35(16, 48, 4, 48), qwen35(8, 24, 4, 32)
B122 = qwen35(12, 36, 2, 64)


@pytest.mark.parametrize(
    ("facts", "f16", "q8"),
    [
        (A3B, 20, 10.625),
        (B27, 64, 34),
        (B9, 32, 17),
        (B122, 24, 12.75),
        (model(full(48, 4, 128)), 96, 51),  # Qwen3-30B-A3B
    ],
)
def test_per_token_in_kib(facts: ModelFacts, f16: float, q8: float) -> None:
    assert KvCache(facts, ELEMENT["f16"]).per_token == f16 * KIB
    assert KvCache(facts, ELEMENT["q8_0"]).per_token == Fraction(q8) * KIB


def test_mla_keeps_one_vector_on_every_gpu() -> None:
    # DeepSeek-V3: 61 layers x (512 + 64) x 2 bytes = 70,272 bytes = 68.625 KiB, also with TP 8.
    v3 = model(LayerGroup(kind="mla", layers=61, kv_lora_rank=512, qk_rope_head_dim=64))
    for tp in (1, 8):
        assert KvCache(v3, Fraction(2), tp).per_token == 70_272


def test_a_window_bounds_what_half_of_the_layers_keep() -> None:
    # GPT-OSS-120B: 36 layers, 18 full and 18 with 128 tokens, 8 kv heads of 64, bf16.
    # Full: 18 x 2 x 8 x 64 x 2 = 36,864 bytes a token. Windows: 36,864 x 128 = 4.5 MiB a request.
    window = LayerGroup(kind="sliding", layers=18, kv_heads=8, head_dim=64, window=128)
    oss = KvCache(model(full(18, 8, 64), window), Fraction(2))
    assert oss.per_token == 36_864
    assert oss.windows(100_000) == 36_864 * 128
    assert oss.windows(100) == 36_864 * 100
    assert oss.request(32_768) == 36_864 * (32_768 + 128)


def test_state_of_a_gated_delta_net() -> None:
    # 9B: one layer 32 x 128 x 128 x 4 = 2 MiB, convolution (2 x 16 x 128 + 32 x 128) x 3 x 2 = 48 KiB.
    assert KvCache(B9, Fraction(2)).state == 24 * (2 * 2**20 + 48 * KIB)
    assert KvCache(B9, Fraction(2), 2).state == 12 * (2 * 2**20 + 48 * KIB)
    half = B9.model_copy(update={"state_dtype": "bfloat16"})
    assert KvCache(half, Fraction(2)).state == 24 * (2**20 + 48 * KIB)


def test_the_field_table() -> None:
    def gib(facts: ModelFacts, dtype: str, tokens: int) -> float:
        return float(KvCache(facts, ELEMENT[dtype], paged=False).request(tokens)) / GIB

    assert gib(A3B, "f16", 262_144) == pytest.approx(5.06, abs=0.01)  # 5.00 without the state
    assert gib(A3B, "q8_0", 262_144) == pytest.approx(2.72, abs=0.01)
    assert gib(B27, "f16", 131_072) == pytest.approx(8.14, abs=0.01)
    assert gib(B27, "q8_0", 98_304) == pytest.approx(3.33, abs=0.01)


def test_pages_of_hybrids_as_vllm_makes_them() -> None:
    # vllm-project/vllm#40691: 27B bf16, pages of 784 tokens, 1487 of them, 33.04 requests of 32K.
    cache = KvCache(B27, Fraction(2))
    assert cache.page_tokens == 784
    budget = 1487 * 784 * 4096 * 16
    assert cache.at_once(budget, 32_768) == pytest.approx(33.04, abs=0.005)
    # The same in fp8 over two GPUs: 1568 tokens (a published log line).
    assert KvCache(B27, Fraction(1), 2).page_tokens == 1568
    assert KvCache(model(full(8, 2, 64)), Fraction(2)).page_tokens is None
    assert KvCache(B27, Fraction(2), paged=False).page_tokens is None


def test_heads_are_shared_out_and_repeated_when_they_are_too_few() -> None:
    eight = model(full(10, 8, 128))
    assert KvCache(eight, Fraction(2), 4).per_token * 4 == KvCache(eight, Fraction(2)).per_token
    two = model(full(10, 2, 128))
    assert KvCache(two, Fraction(2), 8).per_token * 2 == KvCache(two, Fraction(2)).per_token


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("auto", 2), ("fp8", 1), ("fp8_e4m3", 1), ("int8_per_token_head", 1), ("q4_0", 0.5625),
     ("int4_per_token_head", 0.5), ("bfloat16", 2), ("f32", 4), ("nvfp4", 0.5625), ("zfp", None)],
)  # fmt: skip
def test_bytes_of_an_element(dtype: str, size: float | None) -> None:
    assert element_bytes(dtype) == size


@given(st.integers(0, 2**45), st.integers(1, 10**6), st.sampled_from([A3B, B27, B9, B122]),
       st.sampled_from(["f16", "q8_0", "q4_0"]), st.sampled_from([1, 2, 4, 8]))  # fmt: skip
def test_more_memory_never_holds_less(
    budget: int, context: int, facts: ModelFacts, dtype: str, tp: int
) -> None:
    cache = KvCache(facts, ELEMENT[dtype], tp)
    assert cache.at_once(budget, context) >= 0
    assert cache.at_once(budget + 2**30, context) >= cache.at_once(budget, context)
    assert cache.at_once(budget, context) >= cache.at_once(budget, context + 5000)
    longest = cache.longest(budget, 10**6)
    assert 0 <= longest <= 10**6
    if longest:
        assert cache.at_once(budget, longest) >= 1
