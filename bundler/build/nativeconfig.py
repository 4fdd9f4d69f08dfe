"""params.json, Mistral's own form of a model's configuration -> the keys of config.json.

vLLM reads it where there is no config.json (vllm/transformers_utils/configs/mistral.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEYS = {
    "dim": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads", "hidden_dim": "intermediate_size",
    "max_seq_len": "max_position_embeddings", "head_dim": "head_dim", "v_head_dim": "v_head_dim",
    "vocab_size": "vocab_size", "sliding_window": "sliding_window", "kv_lora_rank": "kv_lora_rank",
    "qk_rope_head_dim": "qk_rope_head_dim", "max_position_embeddings": "max_position_embeddings",
}  # fmt: skip
_MOE_KEYS = {
    "num_experts": "num_local_experts", "num_experts_per_tok": "num_experts_per_tok",
    "expert_hidden_dim": "moe_intermediate_size",
}  # fmt: skip


def as_config(params: Mapping[str, Any]) -> dict[str, Any]:
    """The same in config.json's words; empty when there is no params.json."""
    config = {ours: params[theirs] for theirs, ours in _KEYS.items() if theirs in params}
    experts = params.get("moe")
    if isinstance(experts, Mapping):
        config |= {ours: experts[theirs] for theirs, ours in _MOE_KEYS.items() if theirs in experts}
    form = params.get("quantization")
    if isinstance(form, Mapping) and str(form.get("qformat_weight", "")).startswith("fp8"):
        config["quantization_config"] = {"quant_method": "fp8"}
    return config
