"""What layers keep, from the configurations of public models (typed from their published figures)."""

from __future__ import annotations

from typing import Any

import pytest

from bundler.build.kvcache import Numbers, per_request, per_token
from bundler.build.modelshapes import layer_groups, text_config
from bundler.build.ropescaling import stretched
from bundler.domain.model_facts import LayerGroup, ModelFacts
from tests.unit.connected.test_modelfacts import facts

KIB = 1024


def groups(config: dict[str, Any]) -> tuple[LayerGroup, ...]:
    found, unknown = layer_groups(text_config(config))
    assert not unknown
    return found


def doubt(config: dict[str, Any]) -> str:
    return layer_groups(text_config(config))[1]


def kib_per_token(config: dict[str, Any], kv: str = "f16") -> float:
    model = ModelFacts(name="m", groups=groups(config))
    return per_token(model, Numbers(k=kv, v=kv)).bytes / KIB


def qwen35(layers: int, kv_heads: int, v_heads: int, **more: Any) -> dict[str, Any]:
    return {
        "model_type": "qwen3_5",
        "text_config": {
            "num_hidden_layers": layers, "full_attention_interval": 4, "head_dim": 256,
            "num_attention_heads": 16, "num_key_value_heads": kv_heads, "hidden_size": 4096,
            "linear_num_key_heads": 16, "linear_num_value_heads": v_heads,
            "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
            "mamba_ssm_dtype": "float32", "mtp_num_hidden_layers": 1, **more,
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("config", "f16", "q8_0"),
    [
        (qwen35(40, 2, 32), 20, 10.625),  # 35B-A3B
        (qwen35(64, 4, 48), 64, 34),  # 27B
        (qwen35(32, 4, 32), 32, 17),  # 9B
        (qwen35(48, 2, 64), 24, 12.75),  # 122B-A10B
        # Qwen3-30B-A3B
        ({"model_type": "qwen3_moe", "num_hidden_layers": 48, "num_attention_heads": 32,
          "num_key_value_heads": 4, "head_dim": 128, "hidden_size": 2048, "sliding_window": None,
          "use_sliding_window": False, "max_window_layers": 48}, 96, 51),
        # DeepSeek-V3: (512 + 64) elements in each of 61 layers
        ({"model_type": "deepseek_v3", "num_hidden_layers": 61, "num_attention_heads": 128,
          "num_key_value_heads": 128, "hidden_size": 7168, "kv_lora_rank": 512,
          "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}, 68.625, None),
    ],
)  # fmt: skip
def test_kv_cache_of_a_token(config: dict[str, Any], f16: float, q8_0: float | None) -> None:
    assert kib_per_token(config) == f16
    if q8_0:
        assert kib_per_token(config, "q8_0") == q8_0


def test_the_state_of_a_request_of_35b_a3b() -> None:
    model = ModelFacts(name="m", groups=groups(qwen35(40, 2, 32)))
    # 30 layers of 32 matrices of 128 x 128 in float32, and 8192 channels x 3 in two bytes.
    assert per_request(model, Numbers()).bytes == 30 * (32 * 128 * 128 * 4 + 8192 * 3 * 2)


PLAIN = {
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096,
}  # fmt: skip


def full(layers: int, kv: int = 8, dim: int = 128, v_dim: int = 0) -> LayerGroup:
    return LayerGroup(
        kind="full", layers=layers, kv_heads=kv, head_dim=dim, v_head_dim=v_dim or dim
    )  # fmt: skip


def sliding(layers: int, window: int, kv: int = 8, dim: int = 128) -> LayerGroup:
    return LayerGroup(
        kind="sliding", layers=layers, kv_heads=kv, head_dim=dim, v_head_dim=dim, window=window
    )


def state(layers: int, k: int, v: int, k_dim: int, v_dim: int, conv: int) -> LayerGroup:
    return LayerGroup(
        kind="linear", layers=layers, k_heads=k, v_heads=v, k_dim=k_dim, v_dim=v_dim, conv=conv
    )


WINDOWED = PLAIN | {"sliding_window": 4096}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        # Mistral 7B v0.1; v0.2 and later have none.
        (WINDOWED | {"model_type": "mistral"}, (sliding(32, 4096),)),
        (PLAIN | {"model_type": "mistral", "sliding_window": None}, (full(32),)),
        # Qwen's classes leave the window off unless it is switched on, and then for the last layers.
        (WINDOWED | {"model_type": "qwen2", "max_window_layers": 28}, (full(32),)),
        (WINDOWED | {"model_type": "qwen2", "max_window_layers": 20, "use_sliding_window": True},
         (full(20), sliding(12, 4096))),
        (WINDOWED | {"model_type": "qwen2", "use_sliding_window": True},
         (full(28), sliding(4, 4096))),
        (WINDOWED | {"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 0},
         (sliding(32, 4096),)),
        # A listed window that is switched off is none.
        (PLAIN | {"sliding_window": None, "layer_types": ["sliding_attention"] * 32}, (full(32),)),
        # Gemma 2: the first of two; Command R7B: three of four.
        (WINDOWED | {"model_type": "gemma2"}, (full(16), sliding(16, 4096))),
        (WINDOWED | {"model_type": "cohere2"}, (full(8), sliding(24, 4096))),
        # Gemma 3 4B, whose config.json leaves out what the class fills in.
        ({"model_type": "gemma3", "text_config": {
            "model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
            "sliding_window": 1024}}, (full(5, 4, 256), sliding(29, 1024, 4, 256))),
        # Gemma 4: wider and fewer heads where everything is seen, the last layers share.
        ({"model_type": "gemma4", "text_config": {
            "model_type": "gemma4_text", "hidden_size": 2816, "num_hidden_layers": 12,
            "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 2,
            "num_attention_heads": 16, "num_key_value_heads": 8, "num_global_key_value_heads": 2,
            "head_dim": 256, "global_head_dim": 512, "attention_k_eq_v": True,
            "sliding_window": 1024, "num_kv_shared_layers": 6}},
         (full(1, 2, 512), sliding(5, 1024, 8, 256))),
        # gpt-oss-20b
        ({"model_type": "gpt_oss", "num_hidden_layers": 24, "num_attention_heads": 64,
          "num_key_value_heads": 8, "head_dim": 64, "hidden_size": 2880, "sliding_window": 128,
          "layer_types": ["sliding_attention", "full_attention"] * 12},
         (full(12, 8, 64), sliding(12, 128, 8, 64))),
        (PLAIN | {"model_type": "gpt_oss", "num_hidden_layers": 4, "sliding_window": 128},
         (full(2), sliding(2, 128))),
        # EXAONE 4: local, local, local, global
        (WINDOWED | {"model_type": "exaone4", "sliding_window_pattern": "LLLG"},
         (full(8), sliding(24, 4096))),
        # Llama 4: chunks where positions are rotary
        ({"model_type": "llama4", "text_config": PLAIN | {"attention_chunk_size": 8192}},
         (full(8), sliding(24, 8192))),
        ({"model_type": "llama4", "text_config": PLAIN | {
            "attention_chunk_size": 8192, "no_rope_layers": [1, 0] * 16}},
         (full(16), sliding(16, 8192))),
        # Falcon 7B: one head of K and V
        ({"model_type": "falcon", "num_hidden_layers": 32, "num_attention_heads": 71,
          "hidden_size": 4544, "multi_query": True}, (full(32, 1, 64),)),
        # K and V of their own keep the common count of heads.
        (PLAIN | {"num_hidden_layers": 2, "num_global_key_value_heads": 2}, (full(2),)),
        # The last of each four attends, not the first.
        (qwen35(6, 2, 32), (full(1, 2, 256), state(5, 16, 32, 128, 128, 4))),
        # Jamba: Mamba-1 of 2 x 4096 channels, every eighth layer attends
        (PLAIN | {"model_type": "jamba", "attn_layer_period": 8, "attn_layer_offset": 4,
                  "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2},
         (full(4), state(28, 0, 8192, 16, 1, 4))),
        (PLAIN | {"model_type": "jamba", "attn_layer_period": 8, "attn_layer_offset": 4,
                  "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
                  "num_hidden_layers": 11}, (full(1), state(10, 0, 8192, 16, 1, 4))),
        (PLAIN | {"model_type": "jamba", "attn_layer_period": 8, "attn_layer_offset": 4,
                  "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
                  "num_hidden_layers": 4}, (state(4, 0, 8192, 16, 1, 4),)),
        # Granite 4 hybrid, with a head width left to the class
        (PLAIN | {"model_type": "granitemoehybrid", "num_hidden_layers": 10, "mamba_n_heads": 128,
                  "mamba_d_head": "auto", "mamba_expand": 2, "mamba_n_groups": 1,
                  "mamba_d_state": 128, "mamba_d_conv": 4,
                  "layer_types": ["mamba"] * 9 + ["attention"]},
         (full(1), state(9, 1, 128, 128, 64, 4))),
        # Nemotron-H; its MoE form has E for layers of experts
        (PLAIN | {"model_type": "nemotron_h", "num_hidden_layers": 8, "head_dim": 128,
                  "hybrid_override_pattern": "M-ME*M-E", "n_groups": 8, "mamba_num_heads": 64,
                  "ssm_state_size": 128, "mamba_head_dim": 64, "conv_kernel": 4},
         (full(1), state(3, 8, 64, 128, 64, 4))),
        # Falcon-H1: every layer has both
        (PLAIN | {"model_type": "falcon_h1", "mamba_n_heads": 24, "mamba_d_head": 64,
                  "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_d_conv": 4},
         (full(32), state(32, 1, 24, 256, 64, 4))),
        # Mamba-2 alone (Codestral Mamba), Mamba-1 alone (Falcon Mamba)
        ({"model_type": "mamba2", "num_hidden_layers": 64, "hidden_size": 4096, "num_heads": 128,
          "head_dim": 64, "state_size": 128, "n_groups": 8, "conv_kernel": 4, "expand": 2},
         (state(64, 8, 128, 128, 64, 4),)),
        ({"model_type": "falcon_mamba", "num_hidden_layers": 64, "hidden_size": 4096,
          "intermediate_size": 8192, "state_size": 16, "conv_kernel": 4},
         (state(64, 0, 8192, 16, 1, 4),)),
        # Kimi Linear: MLA, and delta attention of 32 heads of 128
        ({"model_type": "kimi_linear", "num_hidden_layers": 27, "num_attention_heads": 32,
          "hidden_size": 2304, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
          "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "num_heads": 32,
                                 "head_dim": 128, "short_conv_kernel_size": 4}},
         (LayerGroup(kind="mla", layers=7, kv_lora_rank=512, qk_rope_head_dim=64),
          state(20, 32, 32, 128, 128, 4))),
        # MiniMax M1: lightning attention, one square matrix for each head
        (PLAIN | {"model_type": "minimax_m1", "num_hidden_layers": 8, "num_attention_heads": 64,
                  "head_dim": 128, "attn_type_list": [0] * 7 + [1]},
         (full(1), state(7, 64, 64, 128, 128, 1))),
        # LFM2: short convolutions over the hidden state
        (PLAIN | {"model_type": "lfm2", "num_hidden_layers": 16, "hidden_size": 2048,
                  "head_dim": 64, "conv_L_cache": 3,
                  "layer_types": ["conv"] * 10 + ["full_attention"] * 6},
         (full(6, 8, 64), None)),
    ],
)  # fmt: skip
def test_groups(config: dict[str, Any], expected: tuple[LayerGroup | None, ...]) -> None:
    found = groups(config)
    assert len(found) == len(expected)
    assert all(want is None or have == want for have, want in zip(found, expected, strict=True))


def test_a_short_convolution_keeps_its_last_inputs_and_nothing_else() -> None:
    config = {
        "num_hidden_layers": 1,
        "layer_types": ["conv"],
        "hidden_size": 2048,
        "conv_L_cache": 3,
    }
    model = ModelFacts(name="m", groups=groups(config))
    assert per_request(model, Numbers()).bytes == 2048 * 2 * 2


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (PLAIN | {"layer_types": ["retention", "full_attention"] * 16}, "of type retention"),
        (PLAIN | {"layer_types": ["\x1b[2J", 7] * 16}, "of type \N{REPLACEMENT CHARACTER}[2J, ?"),
        (PLAIN | {"layer_types": ["full_attention"] * 30}, "30 layers are listed"),
        (PLAIN | {"layer_types": ["linear_attention"] * 32}, "32 linear layers state no sizes"),
        (PLAIN | {"layer_types": ["mamba"] * 32}, "32 mamba layers state no sizes"),
        # Mamba-2 by its heads: without groups it is not taken for a Mamba.
        (PLAIN | {"layer_types": ["mamba"] * 32, "mamba_n_heads": 8, "mamba_d_state": 16,
                  "mamba_d_conv": 4, "mamba_expand": 2}, "32 mamba layers state no sizes"),
        (PLAIN | {"kv_lora_rank": 512}, "32 mla layers state no sizes"),
        (PLAIN | {"hybrid_layer_pattern": [0, 1] * 16, "sliding_window": 128}, "heads of their own"),
        (PLAIN | {"compress_ratios": [0, 4, 128]}, "compressed attention"),
        (PLAIN | {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_topk": 2048}, "indexer"),
        ({"num_hidden_layers": 2}, "2 full layers state no sizes"),
        ({"num_hidden_layers": 10**9}, "no number of layers"),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_said(config: dict[str, Any], words: str) -> None:
    assert words in doubt(config)


def test_layers_for_multi_token_prediction_that_are_listed_too_do_not_count() -> None:
    assert groups(PLAIN | {"layer_types": ["full_attention"] * 35}) == (full(32),)


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}


@pytest.mark.parametrize(
    ("config", "length", "words"),
    [
        ({"max_position_embeddings": 40960}, 40960, ""),
        ({"n_positions": 1024}, 1024, ""),
        ({"max_position_embeddings": 40960, "rope_scaling": YARN}, 131072, "yarn x4 of 32768"),
        # DeepSeek-V3: stated stretched, and derived the same.
        ({"max_position_embeddings": 163840, "rope_scaling": {
            "type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}},
         163840, "yarn x40 of 4096"),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4}},
         16384, "linear x4 of 4096"),
        ({"max_position_embeddings": 4096, "rope_scaling": {
            "type": "linear", "factor": 4, "original_max_position_embeddings": 2048}},
         16384, "linear x4 of 4096"),
        ({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8}},
         131072, ""),
        ({"model_type": "gemma3_text", "max_position_embeddings": 131072,
          "rope_scaling": {"rope_type": "linear", "factor": 8}}, 131072, ""),
        # One for each kind of layer, as transformers 5 writes it.
        ({"max_position_embeddings": 8192, "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            "full_attention": {"rope_type": "dynamic", "factor": 2.0}}}, 16384, "dynamic x2 of 8192"),
        ({"max_position_embeddings": 8192, "rope_scaling": {"rope_type": "yarn", "factor": 1e300}},
         8192, ""),
        ({"max_position_embeddings": 8192, "rope_scaling": {"rope_type": ["yarn"], "factor": True}},
         8192, ""),
    ],
)  # fmt: skip
def test_the_longest_context(config: dict[str, Any], length: int, words: str) -> None:
    assert stretched(config) == (length, words)


def test_mistrals_own_form_says_the_same() -> None:
    found = facts({
        "params.json": {
            "dim": 5120, "n_layers": 40, "head_dim": 128, "hidden_dim": 32768, "n_heads": 32,
            "n_kv_heads": 8, "vocab_size": 131072, "max_position_embeddings": 131072,
            "moe": {"num_experts": 8, "num_experts_per_tok": 2},
            "quantization": {"qformat_weight": "fp8_e4m3"},
        },
        "tekken.json": b"{}",
    })  # fmt: skip
    assert found.groups == (full(40),)
    assert (found.experts, found.experts_per_token, found.quantization) == (8, 2, "fp8")
    assert (found.vocab_size, found.max_context) == (131072, 131072)
    assert found.has_config
    assert found.has_tokenizer
    assert found.has_chat_template
