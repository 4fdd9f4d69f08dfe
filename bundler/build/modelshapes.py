"""config.json -> which state each layer keeps for a token or a request.

Keys as transformers' configuration classes name them
(https://github.com/huggingface/transformers/tree/main/src/transformers/models); `text_config` counts
for models that also see or hear.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from bundler.domain.model_facts import LayerGroup

_MAX_LAYERS = 10_000
_TEXT_KEYS = ("text_config", "llm_config", "language_config", "thinker_config")
_LINEAR = {"linear_attention", "mamba", "mamba2", "M", "linear"}
_FULL = {"full_attention", "attention", "global_attention", "*", "full"}
_SLIDING = {"sliding_attention", "chunked_attention", "local_attention"}
# Every n-th layer sees everything, the others a window: model_type -> n, where no key states it.
_PATTERNS = {"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "cohere2": 4}


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that describes the language model."""
    for key in _TEXT_KEYS:
        inner = config.get(key)
        if isinstance(inner, Mapping) and inner:
            return text_config(inner) if key == "thinker_config" else inner
    return config


def number(config: Mapping[str, Any], *keys: str) -> int:
    """The first of the keys that holds a sensible positive whole number, else 0."""
    for key in keys:
        value = config.get(key)
        if type(value) is int and 0 < value < 2**40:
            return value
    return 0


def layer_groups(config: Mapping[str, Any]) -> tuple[tuple[LayerGroup, ...], str]:
    """Groups of layers, and what could not be made out.

    Args:
        config: the language model's part of config.json.
    """
    layers = number(config, "num_hidden_layers", "n_layer", "num_layers")
    if not layers or layers > _MAX_LAYERS:
        return (), "config.json states no number of layers"
    kinds, unknown = _kinds(config, layers)
    counted = Counter(kinds)
    groups = []
    for kind in ("full", "sliding", "mla", "linear"):
        if counted[kind]:
            group = _group(config, kind, counted[kind])
            if group is None:
                unknown = unknown or f"{counted[kind]} {kind} layers state no sizes"
            else:
                groups.append(group)
    return tuple(groups), unknown


def _kinds(config: Mapping[str, Any], layers: int) -> tuple[list[str], str]:
    """The kind of each state that is kept; a layer may keep two (Falcon-H1), or none."""
    full = "mla" if number(config, "kv_lora_rank") else "full"
    stated = config.get("layer_types") or config.get("layers_block_type")
    if isinstance(config.get("hybrid_override_pattern"), str):
        stated = [letter for letter in config["hybrid_override_pattern"] if letter in "M*-"]
    shared = number(config, "num_kv_shared_layers")
    if isinstance(stated, list) and stated:
        named = [_kind(str(name), full) for name in stated[:_MAX_LAYERS]]
        other = sorted({str(name) for name in stated if _kind(str(name), full) == "?"})
        kept = named[: len(named) - shared] if shared else named
        return kept, f"layers of type {', '.join(other)[:100]}" if other else ""
    if config.get("model_type") == "falcon_h1":
        return [full, "linear"] * layers, ""
    return _by_rule(config, layers, full)


def _kind(name: str, full: str) -> str:
    if name in _FULL:
        return full
    if name in _LINEAR:
        return "linear"
    if name in _SLIDING:
        return "sliding"
    return "none" if name in ("-", "mlp", "moe", "identity") else "?"


def _by_rule(config: Mapping[str, Any], layers: int, full: str) -> tuple[list[str], str]:
    interval = number(config, "full_attention_interval")
    if interval:
        return [full if (at + 1) % interval == 0 else "linear" for at in range(layers)], ""
    kimi = config.get("linear_attn_config")
    if isinstance(kimi, Mapping) and isinstance(kimi.get("full_attn_layers"), list):
        count = min(len(kimi["full_attn_layers"]), layers)
        return [full] * count + ["linear"] * (layers - count), "Kimi delta attention's state"
    period = number(config, "attn_layer_period")
    if period:
        offset = number(config, "attn_layer_offset")
        return [full if at % period == offset else "linear" for at in range(layers)], ""
    if _is_recurrent(config):
        return ["linear"] * layers, ""
    pattern = number(config, "sliding_window_pattern") or _PATTERNS.get(
        str(config.get("model_type")), 0
    )
    if number(config, "sliding_window") and config.get("use_sliding_window", True):
        rest = [full if pattern and (at + 1) % pattern == 0 else "sliding" for at in range(layers)]
        return rest, ""
    return [full] * layers, ""


def _is_recurrent(config: Mapping[str, Any]) -> bool:
    stated = number(config, "state_size", "ssm_state_size", "mamba_d_state")
    return bool(stated and not number(config, "num_attention_heads", "num_key_value_heads"))


def _group(config: Mapping[str, Any], kind: str, layers: int) -> LayerGroup | None:
    if kind == "mla":
        rank, rope = number(config, "kv_lora_rank"), number(config, "qk_rope_head_dim")
        return LayerGroup(kind="mla", layers=layers, kv_lora_rank=rank, qk_rope_head_dim=rope)
    if kind == "linear":
        return _linear(config, layers)
    heads = number(config, "num_attention_heads", "n_head")
    hidden = number(config, "hidden_size", "n_embd", "d_model")
    kv_heads = number(config, "num_key_value_heads", "multi_query_group_num") or heads
    head_dim = number(config, "head_dim", "kv_channels", "attention_head_dim") or (
        hidden // heads if heads else 0
    )
    if kind == "full":
        kv_heads = number(config, "num_global_key_value_heads") or kv_heads
        head_dim = number(config, "global_head_dim") or head_dim
    if not (kv_heads and head_dim):
        return None
    window = number(config, "sliding_window", "attention_chunk_size")
    return LayerGroup(
        kind="sliding" if kind == "sliding" else "full",
        layers=layers,
        kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=number(config, "v_head_dim") or head_dim,
        window=window if kind == "sliding" else 0,
    )


def _linear(config: Mapping[str, Any], layers: int) -> LayerGroup | None:
    """Gated delta net, or Mamba-2, whose groups and state take the places of keys."""
    sizes = {
        "k_heads": number(config, "linear_num_key_heads", "mamba_n_groups", "n_groups"),
        "v_heads": number(config, "linear_num_value_heads", "mamba_n_heads", "mamba_num_heads"),
        "k_dim": number(config, "linear_key_head_dim", "mamba_d_state", "ssm_state_size"),
        "v_dim": number(config, "linear_value_head_dim", "mamba_d_head", "mamba_head_dim"),
        "conv": number(config, "linear_conv_kernel_dim", "mamba_d_conv", "conv_kernel"),
    }
    if not all(sizes.values()):
        return None
    return LayerGroup(kind="linear", layers=layers, **sizes)
