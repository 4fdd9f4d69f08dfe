"""KV cache per token and request, against figures that engines published or that were worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.build.kvblocks import Pool, longest, pool, slots
from bundler.build.kvcache import Numbers, known, per_request, per_token, token_bytes, vector_bytes
from bundler.domain.model_facts import LayerGroup, ModelFacts
from tests.unit.connected.known_models import (
    ALL,
    DEEPSEEK_V3,
    GEMMA3_27B,
    GPT_OSS_120B,
    QWEN3_30B,
    QWEN_9B,
    QWEN_27B,
    QWEN_35B,
    QWEN_122B_FP8,
)

KIB, MIB, GIB = 2**10, 2**20, 2**30
F16 = Numbers("f16", "f16", conv=4)
Q8 = Numbers("q8_0", "q8_0", conv=4)
TYPES = ("f32", "bf16", "q8_0", "fp8_per_token_head", "fp8", "q5_1", "q4_0", "nvfp4")


@pytest.mark.parametrize(
    ("model", "f16", "q8_0"),
    [
        (QWEN_35B, 20, 10.625),
        (QWEN_27B, 64, 34),
        (QWEN_9B, 32, 17),
        (QWEN_122B_FP8, 24, 12.75),
        (QWEN3_30B, 96, 51),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_kv_cache_per_token(model: ModelFacts, f16: float, q8_0: float) -> None:
    assert per_token(model, F16).bytes == f16 * KIB
    assert per_token(model, Q8).bytes == q8_0 * KIB


def test_the_terms_name_their_factors() -> None:
    # 10 layers x 2 heads x (256 + 256) x 2 bytes = 20480.
    assert per_token(QWEN_35B, F16).how == (
        "10 full layers x 2 kv heads x (256 K + 256 V elements) of f16"
    )
    # 30 layers x (32 heads x 128 x 128 x 4 + (2 x 16 x 128 + 32 x 128) x 3 x 2) = 64389120 bytes.
    state = per_request(QWEN_35B, Numbers())
    assert state.bytes == 30 * (32 * 128 * 128 * 4 + (2 * 16 * 128 + 32 * 128) * 3 * 2)
    assert "30 linear layers x (32 heads x 128 x 128 x 4 bytes" in state.how


def test_mla_keeps_one_compressed_vector() -> None:
    # 61 layers x (512 + 64) elements x 2 bytes = 70272 bytes = 68.6 KiB; FlashMLA's FP8: 656 bytes.
    assert per_token(DEEPSEEK_V3, Numbers("bf16", "bf16")).bytes == 70_272
    assert per_token(DEEPSEEK_V3, Numbers("fp8", "fp8")).bytes == 35_136
    assert per_token(DEEPSEEK_V3, Numbers("fp8_ds_mla", "fp8_ds_mla")).bytes == 61 * 656


def test_sliding_windows_are_kept_once() -> None:
    # gpt-oss-120b: 18 full layers x 8 heads x (64 + 64) x 2 bytes = 36 KiB for each token, and the
    # same for each of 128 tokens in the 18 sliding layers: 4.5 MiB for each request.
    assert per_token(GPT_OSS_120B, F16).bytes == 36 * KIB
    assert per_request(GPT_OSS_120B, F16).bytes == 4.5 * MIB
    # Gemma 3 27B: 10 full layers x 16 heads x (128 + 128) x 2 bytes = 80 KiB for each token;
    # 52 sliding layers x 8 KiB x 1024 tokens = 416 MiB for each request.
    assert per_token(GEMMA3_27B, F16).bytes == 80 * KIB
    assert per_request(GEMMA3_27B, F16).bytes == 416 * MIB


def test_field_figures_of_llama_cpp() -> None:
    """KV buffers that llama-server reports, and its 50.25 MiB checkpoint of the 9B's state."""
    assert per_token(QWEN_35B, F16).bytes * 262144 == 5 * GIB
    assert per_token(QWEN_35B, Q8).bytes * 262144 / GIB == pytest.approx(2.66, abs=0.005)
    with_state = slots(QWEN_27B, F16, batch=512, gpus=1).bytes_for(131072)
    assert with_state / GIB == pytest.approx(8.15, abs=0.005)
    assert per_request(QWEN_9B, F16).bytes == 50.25 * MIB


def test_llama_cpp_pads_sliding_windows_by_a_batch() -> None:
    # 18 layers x 2 KiB x 768 tokens (128 + 512, up to 256s), and 36 KiB for each of 4096 tokens.
    assert slots(GPT_OSS_120B, F16, batch=512, gpus=1).bytes_for(4096) == 36 * KIB * (4096 + 768)
    whole = slots(GPT_OSS_120B, F16, batch=512, gpus=1, whole=True)
    assert whole.bytes_for(4096) == 72 * KIB * 4096


def test_vllm_blocks_of_hybrids_reproduce_published_logs() -> None:
    """`Maximum concurrency`, block sizes and block counts from the logs of real starts."""
    # https://github.com/vllm-project/vllm/issues/40691: 27B BF16, 0.19.0, 1487 blocks at 32768 tokens.
    blocks = pool(QWEN_27B, Numbers(), in_flight=16384, states=1)
    assert blocks.tables[0].tokens == 784
    assert blocks.blocks_for(32768) == 45
    assert 1487 / blocks.blocks_for(32768) == pytest.approx(33.04, abs=0.005)
    # 27B in FP8 KV on two GPUs: "Setting attention block size to 1568 tokens".
    two = pool(QWEN_27B, Numbers("fp8", "fp8", tp=2), in_flight=8192, states=1)
    assert two.tables[0].tokens == 1568
    # https://github.com/mitchross/talos-argocd-proxmox/pull/1995: 4.99 GiB each, 2.31x at 131072.
    caching = pool(QWEN_27B, Numbers("fp8", "fp8", tp=2), in_flight=8192, states=2)
    ratio = caching.blocks(int(4.99 * GIB)) / caching.blocks_for(131072)
    assert ratio == pytest.approx(2.31, abs=0.005)
    # https://github.com/vllm-project/vllm/pull/35289: blocks of 32 tokens, 133.75 GiB, 8.27x at 262144.
    hopper = pool(QWEN_27B, Numbers(), in_flight=8192, states=1, step=32)
    count = hopper.blocks(int(133.75 * GIB))
    assert hopper.tables[0].tokens == 800
    assert count / hopper.blocks_for(262144) == pytest.approx(8.27, abs=0.005)
    # 27B BF16, 0.29.0, prefix caching on: 31.24 GiB, 652 blocks, 38.35x at 8192.
    cached = pool(QWEN_27B, Numbers(), in_flight=8192, states=2)
    assert cached.blocks(int(31.24 * GIB)) == 652
    assert 652 / cached.blocks_for(8192) == pytest.approx(38.35, abs=0.005)
    # https://github.com/noonghunna/club-3090/issues/612 and 652: 35B, FP8 KV, prefix caching on,
    # 5.98 and 6.01 GiB, 4.33x and 4.35x at 131072.
    small = pool(QWEN_35B, Numbers("fp8", "fp8"), in_flight=8192, states=2)
    for size, concurrency in ((5.98, 4.33), (6.01, 4.35)):
        ratio = small.blocks(int(size * GIB)) / small.blocks_for(131072)
        assert ratio == pytest.approx(concurrency, abs=0.005)


def test_vllm_keeps_batch_and_window_of_sliding_layers() -> None:
    # Two groups of 18 layers; 8192 / 16 = 512 blocks for the full one, for the other
    # (128 - 1 + 2048) / 16 = 135.9, so 136, and one more as a window may begin inside a block.
    blocks = pool(GPT_OSS_120B, Numbers(), in_flight=2048, states=1)
    assert blocks.block_bytes == 16 * 18 * 2048
    assert blocks.blocks_for(8192) == 512 + 137
    # Gemma 3: groups of 10 layers, so 6 groups for 52 sliding layers.
    assert [table.tables for table in pool(GEMMA3_27B, Numbers(), 2048, 1).tables] == [1, 6]


def test_a_group_is_widened_when_kinds_are_nearly_as_many() -> None:
    # 12 sliding and 13 full layers: two groups of 13 (vllm/v1/core/kv_cache_utils.py), not three of 12.
    full, sliding = (
        group.model_copy(update={"layers": count})
        for group, count in zip(GPT_OSS_120B.groups, (13, 12), strict=True)
    )
    blocks = pool(ModelFacts(name="x", groups=(full, sliding)), Numbers(), 2048, 1)
    assert [table.tables for table in blocks.tables] == [1, 1]
    assert blocks.block_bytes == 13 * 16 * 2048


def test_blocks_of_mla_hybrids_are_multiples_of_128() -> None:
    # Kimi Linear: a state of 32 x 128 x 128 x 4 bytes and 12288 x 3 x 2 of convolution is 1884.4
    # tokens of 576 x 2 bytes: 1920, the next multiple of 128.
    linear = LayerGroup(
        kind="linear", layers=20, k_heads=32, v_heads=32, k_dim=128, v_dim=128, conv=4
    )
    mla = LayerGroup(kind="mla", layers=7, kv_lora_rank=512, qk_rope_head_dim=64)
    blocks = pool(ModelFacts(name="x", groups=(mla, linear)), Numbers(), 8192, 2)
    assert blocks.tables[0].tokens == 1920
    assert [table.tables for table in blocks.tables] == [1, 3]


def test_kv_heads_are_replicated_and_mla_is_copied() -> None:
    group = QWEN_35B.groups[0]
    sizes = [token_bytes(group, Numbers(tp=tp)) for tp in (1, 2, 4, 8)]
    assert sizes == [2048, 1024, 1024, 1024]
    mla = DEEPSEEK_V3.groups[0]
    assert token_bytes(mla, Numbers(tp=8)) == token_bytes(mla, Numbers(tp=1))


@pytest.mark.parametrize(
    ("kv_dtype", "size"),
    [
        ("auto", 512), ("f16", 512), ("f32", 1024), ("fp8_e5m2", 256), ("q8_0", 272), ("q5_1", 192),
        ("q5_0", 176), ("q4_1", 160), ("q4_0", 144), ("iq4_nl", 144), ("int8_per_token_head", 260),
        ("fp8_per_token_head", 260), ("int4_per_token_head", 132), ("nvfp4", 144),
    ],
)  # fmt: skip
def test_bytes_of_256_elements(kv_dtype: str, size: int) -> None:
    assert vector_bytes(256, kv_dtype) == size


def test_an_unknown_type_is_named() -> None:
    assert not known("turboquant_k8v4")
    with pytest.raises(ValueError, match="turboquant_k8v4"):
        vector_bytes(128, "turboquant_k8v4")


def test_a_model_that_keeps_nothing_is_refused() -> None:
    empty = ModelFacts(name="x", groups=(LayerGroup(kind="full", layers=4),))
    with pytest.raises(ValueError, match="no layers that keep a cache"):
        pool(empty, Numbers(), 2048, 1)


NUMBER = st.one_of(st.integers(0, 64), st.integers(0, 10**12))
GROUP = st.builds(
    LayerGroup,
    kind=st.sampled_from(["full", "sliding", "mla", "linear"]),
    layers=st.integers(1, 10**9),
    kv_heads=NUMBER, head_dim=NUMBER, v_head_dim=NUMBER, window=NUMBER, kv_lora_rank=NUMBER,
    qk_rope_head_dim=NUMBER, k_heads=NUMBER, v_heads=NUMBER, k_dim=NUMBER, v_dim=NUMBER, conv=NUMBER,
)  # fmt: skip
MODEL = st.builds(
    ModelFacts, name=st.just("x"), groups=st.lists(GROUP, min_size=1, max_size=4).map(tuple)
)
TYPE = st.sampled_from(TYPES)


@given(MODEL, TYPE, st.integers(1, 64), st.integers(0, 2**62), st.integers(0, 10**7))
def test_any_shape_gives_sizes_that_are_never_negative(
    model: ModelFacts, kv_dtype: str, tp: int, memory: int, batch: int
) -> None:
    numbers = Numbers(kv_dtype, kv_dtype, tp=tp)
    assert per_token(model, numbers).bytes >= 0
    assert per_request(model, numbers).bytes >= 0
    try:
        blocks = pool(model, numbers, batch, 2)
    except ValueError:
        return
    counts = [blocks.requests(memory, context) for context in (1, 1000, 10**6, 10**18)]
    assert counts == sorted(counts, reverse=True)
    most = longest(blocks, memory)
    assert most == 0 or blocks.requests(memory, most) >= 1


@given(st.sampled_from(ALL), st.integers(1, 10**7), st.integers(0, 10**6), st.integers(0, 10**7))
def test_a_longer_context_never_takes_less(
    model: ModelFacts, a: int, more: int, batch: int
) -> None:
    for room in (pool(model, Numbers(), batch, 1), slots(model, F16, 512, 1)):
        need = room.blocks_for if isinstance(room, Pool) else room.bytes_for
        assert need(a + more) >= need(a)
        assert room.requests(2**40, a + more) <= room.requests(2**40, a)


@given(st.sampled_from(ALL), st.integers(1, 6))
def test_more_gpus_never_take_more_each(model: ModelFacts, power: int) -> None:
    more, fewer = Numbers(tp=2**power), Numbers(tp=2 ** (power - 1))
    assert per_token(model, more).bytes <= per_token(model, fewer).bytes
    assert per_request(model, more).bytes <= per_request(model, fewer).bytes


@given(st.integers(1, 10**6))
def test_smaller_types_never_take_more(blocks: int) -> None:
    sizes = [
        vector_bytes(32 * blocks, kind) for kind in ("f32", "f16", "q8_0", "q5_1", "q5_0", "q4_0")
    ]
    assert sizes == sorted(sizes, reverse=True)


@given(st.integers(0, 2**45), st.integers(1, 200), st.sampled_from(ALL))
def test_the_longest_is_the_longest(memory: int, requests: int, model: ModelFacts) -> None:
    room = pool(model, Numbers(), 2048, 1)
    most = longest(room, memory, requests, limit=10**6)
    assert most == 0 or room.requests(memory, most) >= requests
    assert most == 10**6 or room.requests(memory, most + 1) < requests
