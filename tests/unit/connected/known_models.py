"""Shapes of public models, as their config.json states them, and the sizes of their checkpoints."""

from bundler.domain.model_facts import LayerGroup, ModelFacts


def qwen35(
    name: str,
    *,
    layers: int,
    kv_heads: int,
    v_heads: int,
    hidden: int,
    weight_bytes: int,
    experts: int = 0,
    expert_bytes: int = 0,
    moe: int | None = None,
) -> ModelFacts:
    """Qwen3.5: every fourth layer is full attention (head_dim 256), the others gated delta nets."""
    return ModelFacts(
        name=name,
        format="safetensors",
        model_type="qwen3_5_moe" if experts else "qwen3_5",
        groups=(
            LayerGroup(kind="full", layers=layers // 4, kv_heads=kv_heads, head_dim=256, v_head_dim=256),
            LayerGroup(
                kind="linear", layers=layers - layers // 4, k_heads=16, v_heads=v_heads,
                k_dim=128, v_dim=128, conv=4,
            ),
        ),
        hidden_size=hidden,
        vocab_size=248320,
        max_context=262144,
        experts=experts,
        experts_per_token=8 if experts else 0,
        moe_intermediate_size=moe,
        weight_bytes=weight_bytes,
        expert_bytes=expert_bytes,
    )  # fmt: skip


# Bytes of the FP8 checkpoints, by their shapes: experts 40 x 256 x 3 x 2048 x 512 = 32.2e9 at one
# byte, embeddings and output 2 x 248320 x 2048 at two, 30 delta nets and 10 attentions 1.3e9, vision
# tower 0.9e9, MTP layer 0.9e9: 37.5e9. The BF16 one is about twice as large.
QWEN_35B_FP8 = qwen35("Qwen3.5-35B-A3B-FP8", layers=40, kv_heads=2, v_heads=32, hidden=2048,
                      weight_bytes=37_500_000_000, experts=256, expert_bytes=32_200_000_000, moe=512)  # fmt: skip
QWEN_35B = QWEN_35B_FP8.model_copy(
    update={"name": "Qwen3.5-35B-A3B", "weight_bytes": 71_900_000_000}
)
# 48 x 256 x 3 x 3072 x 1024 = 116.0e9 of experts at one byte, embeddings and output 2 x 248320 x 3072
# at two = 3.05e9, 36 delta nets 3.2e9, 12 attentions 0.94e9, shared experts 0.45e9, router, norms and
# vision 1.0e9, MTP layer 2.5e9: 127.1e9 bytes.
QWEN_122B_FP8 = qwen35("Qwen3.5-122B-A10B-FP8", layers=48, kv_heads=2, v_heads=64, hidden=3072,
                       weight_bytes=127_100_000_000, experts=256, expert_bytes=116_000_000_000, moe=1024)  # fmt: skip
QWEN_27B = qwen35("Qwen3.5-27B", layers=64, kv_heads=4, v_heads=48, hidden=5120,
                  weight_bytes=54_900_000_000)  # fmt: skip
QWEN_27B_FP8 = QWEN_27B.model_copy(
    update={"name": "Qwen3.5-27B-FP8", "weight_bytes": 30_600_000_000}
)
QWEN_9B = qwen35("Qwen3.5-9B", layers=32, kv_heads=4, v_heads=32, hidden=4096,
                 weight_bytes=19_000_000_000)  # fmt: skip
QWEN3_30B = ModelFacts(
    name="Qwen3-30B-A3B",
    groups=(LayerGroup(kind="full", layers=48, kv_heads=4, head_dim=128, v_head_dim=128),),
    hidden_size=2048, vocab_size=151936, max_context=40960, experts=128, experts_per_token=8,
    moe_intermediate_size=768, weight_bytes=61_100_000_000, expert_bytes=57_000_000_000,
)  # fmt: skip
DEEPSEEK_V3 = ModelFacts(
    name="DeepSeek-V3",
    groups=(LayerGroup(kind="mla", layers=61, kv_lora_rank=512, qk_rope_head_dim=64),),
    hidden_size=7168, vocab_size=129280, max_context=163840, experts=256, experts_per_token=8,
    moe_intermediate_size=2048, weight_bytes=688_000_000_000,
)  # fmt: skip
GPT_OSS_120B = ModelFacts(
    name="gpt-oss-120b",
    groups=(
        LayerGroup(kind="full", layers=18, kv_heads=8, head_dim=64, v_head_dim=64),
        LayerGroup(kind="sliding", layers=18, kv_heads=8, head_dim=64, v_head_dim=64, window=128),
    ),
    hidden_size=2880, vocab_size=201088, max_context=131072, experts=128, experts_per_token=4,
    moe_intermediate_size=2880, weight_bytes=65_000_000_000,
)  # fmt: skip
GEMMA3_27B = ModelFacts(
    name="gemma-3-27b",
    groups=(
        LayerGroup(kind="full", layers=10, kv_heads=16, head_dim=128, v_head_dim=128),
        LayerGroup(kind="sliding", layers=52, kv_heads=16, head_dim=128, v_head_dim=128, window=1024),
    ),
    hidden_size=5376, vocab_size=262208, max_context=131072, weight_bytes=54_900_000_000,
)  # fmt: skip
ALL = (
    QWEN_35B_FP8, QWEN_35B, QWEN_122B_FP8, QWEN_27B, QWEN_27B_FP8, QWEN_9B, QWEN3_30B, DEEPSEEK_V3,
    GPT_OSS_120B, GEMMA3_27B,
)  # fmt: skip
