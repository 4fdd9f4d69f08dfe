"""config.json -> LayerGroups: what each layer keeps for a token or a request.

Keys as transformers' configuration classes name them
(https://github.com/huggingface/transformers/tree/main/src/transformers/models); `text_config` counts
for models that also see or hear. What is not certain is said, never guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from bundler.build.confignumbers import number
from bundler.build.modelstates import state_group
from bundler.domain.model_facts import LayerGroup
from bundler.format.untrusted import shown

_MAX_LAYERS = 10_000
_TEXT_KEYS = ("text_config", "llm_config", "language_config", "thinker_config")
_STATES = {
    "linear_attention": "linear", "linear": "linear", "kda": "linear", "mamba": "mamba",
    "mamba2": "mamba", "M": "mamba", "conv": "conv", "short_conv": "conv",
}  # fmt: skip
_FULL = {"full_attention", "attention", "global_attention", "*", "full", "global"}
_SLIDING = {"sliding_attention", "chunked_attention", "local_attention", "local"}
_NOTHING = {"-", "E", "mlp", "moe", "identity"}
# Every n-th layer sees everything, the others a window: model_type -> n, where no key states it.
_PATTERNS = {"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "cohere2": 4, "gpt_oss": 2}
# What transformers' class fills in; the config.json of Gemma 3 leaves these out
# (src/transformers/models/gemma3/configuration_gemma3.py).
_GEMMA3 = {
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208,
    "max_position_embeddings": 131072, "sliding_window": 4096,
}  # fmt: skip
_DEFAULTS: dict[str, dict[str, Any]] = {"gemma3_text": _GEMMA3}
# Keys that arrange layers in ways that are not calculated here.
_ARRANGED = {
    "hybrid_layer_pattern": "windows with heads of their own (hybrid_layer_pattern)",
    "compress_ratios": "compressed attention (compress_ratios)",
    "index_topk": "the cache of the sparse attention's indexer (index_topk)",
}


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that describes the language model, with the defaults that it relies on."""
    for key in _TEXT_KEYS:
        inner = config.get(key)
        if isinstance(inner, Mapping) and inner:
            return _filled(text_config(inner) if key == "thinker_config" else inner)
    return _filled(config)


def _filled(config: Mapping[str, Any]) -> Mapping[str, Any]:
    defaults = _DEFAULTS.get(str(config.get("model_type")))
    if not defaults:
        return config
    return {**defaults, **{key: value for key, value in config.items() if value is not None}}


def layer_groups(config: Mapping[str, Any]) -> tuple[tuple[LayerGroup, ...], str]:
    """Groups of layers, and what could not be made out.

    Args:
        config: the language model's part of config.json.
    """
    layers = number(config, "num_hidden_layers", "n_layer", "num_layers")
    if not layers or layers > _MAX_LAYERS:
        return (), "config.json states no number of layers"
    kinds, unknown = _kinds(config, layers)
    doubts = [unknown, *(text for key, text in _ARRANGED.items() if config.get(key))]
    counted = Counter(kinds)
    groups = []
    for kind in ("full", "sliding", "mla", "linear", "mamba", "conv"):
        if counted[kind]:
            group = _group(config, kind, counted[kind])
            if group is None:
                doubts.append(f"{counted[kind]} {kind} layers state no sizes")
            else:
                groups.append(group)
    return tuple(groups), "; ".join(filter(None, doubts))


def _kinds(config: Mapping[str, Any], layers: int) -> tuple[list[str], str]:
    """The kind of each state that is kept; a layer may keep two (Falcon-H1), or none."""
    full = "mla" if number(config, "kv_lora_rank") else "full"
    stated = _stated(config)
    if stated:
        return _named(config, stated, layers, full)
    if config.get("model_type") == "falcon_h1":
        return [full, "mamba"] * layers, ""
    return _by_rule(config, layers, full), ""


def _stated(config: Mapping[str, Any]) -> list[str]:
    """The names of the layers' kinds, where config.json lists them."""
    for key in ("layer_types", "layers_block_type"):
        names = config.get(key)
        if isinstance(names, list) and names:
            return [name if isinstance(name, str) else "?" for name in names[:_MAX_LAYERS]]
    # Nemotron-H: one letter for each layer.
    letters = config.get("hybrid_override_pattern")
    if isinstance(letters, str) and letters:
        return list(letters[:_MAX_LAYERS])
    # MiniMax: 1 attends, 0 is lightning attention.
    flags = config.get("attn_type_list")
    if isinstance(flags, list) and flags:
        return ["full" if flag else "linear" for flag in flags[:_MAX_LAYERS]]
    return []


def _named(
    config: Mapping[str, Any], stated: list[str], layers: int, full: str
) -> tuple[list[str], str]:
    # Beyond num_hidden_layers, the layers for multi-token prediction are listed (Step 3.5).
    stated = stated[:layers]
    kinds = [_kind(name, full) for name in stated]
    if not _window(config):
        kinds = [full if kind == "sliding" else kind for kind in kinds]
    other = sorted({name for name, kind in zip(stated, kinds, strict=True) if kind == "?"})
    doubts = [f"layers of type {shown(', '.join(other))}"] if other else []
    if len(kinds) < layers:
        doubts.append(f"{len(kinds)} layers are listed, num_hidden_layers is {layers}")
    # Gemma 3n and 4: the last layers use the cache of earlier ones.
    shared = number(config, "num_kv_shared_layers")
    return kinds[: max(len(kinds) - shared, 0)], "; ".join(doubts)


def _kind(name: str, full: str) -> str:
    if name in _FULL:
        return full
    if name in _SLIDING:
        return "sliding"
    return "none" if name in _NOTHING else _STATES.get(name, "?")


def _by_rule(config: Mapping[str, Any], layers: int, full: str) -> list[str]:
    interval = number(config, "full_attention_interval")
    if interval:
        return [full if (at + 1) % interval == 0 else "linear" for at in range(layers)]
    kimi = config.get("linear_attn_config")
    if isinstance(kimi, Mapping) and isinstance(kimi.get("full_attn_layers"), list):
        count = min(len(kimi["full_attn_layers"]), layers)
        return [full] * count + ["linear"] * (layers - count)
    period = number(config, "attn_layer_period")
    if period:
        offset = number(config, "attn_layer_offset")
        return [full if at % period == offset else "mamba" for at in range(layers)]
    if _is_recurrent(config):
        return ["mamba"] * layers
    return _windows(config, layers, full)


def _is_recurrent(config: Mapping[str, Any]) -> bool:
    stated = number(config, "state_size", "ssm_state_size", "mamba_d_state")
    return bool(stated and not number(config, "num_attention_heads", "num_key_value_heads"))


def _windows(config: Mapping[str, Any], layers: int, full: str) -> list[str]:
    """Layers that see a window only, where nothing lists them."""
    if not _window(config):
        return [full] * layers
    if config.get("hybrid_layer_pattern"):
        return [full] * layers
    model = str(config.get("model_type"))
    if model.startswith("qwen"):
        first = number(config, "max_window_layers") if "max_window_layers" in config else 28
        return [full if at < first else "sliding" for at in range(layers)]
    if number(config, "attention_chunk_size") and not number(config, "sliding_window"):
        return _chunks(config, layers, full)
    pattern = config.get("sliding_window_pattern") or config.get("_sliding_window_pattern")
    if isinstance(pattern, str) and pattern:
        # EXAONE 4: `LLLG`, local and global.
        return ["sliding" if pattern[at % len(pattern)] == "L" else full for at in range(layers)]
    every = number({"pattern": pattern}, "pattern") or _PATTERNS.get(model, 0)
    return [full if every and (at + 1) % every == 0 else "sliding" for at in range(layers)]


def _chunks(config: Mapping[str, Any], layers: int, full: str) -> list[str]:
    """Llama 4: layers with rotary positions see a chunk, those without see everything."""
    flags = config.get("no_rope_layers")
    if isinstance(flags, list) and len(flags) == layers:
        return ["sliding" if flag else full for flag in flags]
    every = number(config, "no_rope_layer_interval") or 4
    return [full if (at + 1) % every == 0 else "sliding" for at in range(layers)]


def _window(config: Mapping[str, Any]) -> int:
    """Tokens that a sliding layer sees; 0 when there is no window, or it is switched off."""
    # Qwen's classes leave it off unless it is switched on, others know no switch.
    off = str(config.get("model_type")).startswith("qwen")
    if not config.get("use_sliding_window", not off):
        return number(config, "attention_chunk_size")
    return number(config, "sliding_window", "attention_chunk_size")


def _group(config: Mapping[str, Any], kind: str, layers: int) -> LayerGroup | None:
    if kind == "mla":
        rank, rope = number(config, "kv_lora_rank"), number(config, "qk_rope_head_dim")
        sizes = {"kv_lora_rank": rank, "qk_rope_head_dim": rope}
        return LayerGroup(kind="mla", layers=layers, **sizes) if rank and rope else None
    if kind in ("linear", "mamba", "conv"):
        return state_group(config, kind, layers)
    kv_heads, head_dim = _heads(config, kind)
    if not (kv_heads and head_dim):
        return None
    return LayerGroup(
        kind="sliding" if kind == "sliding" else "full",
        layers=layers,
        kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=number(config, "v_head_dim") or head_dim,
        window=_window(config) if kind == "sliding" else 0,
    )


def _heads(config: Mapping[str, Any], kind: str) -> tuple[int, int]:
    """Heads of K and V, and elements of one."""
    heads = number(config, "num_attention_heads", "n_head")
    hidden = number(config, "hidden_size", "n_embd", "d_model")
    stated = number(config, "num_key_value_heads", "num_kv_heads", "multi_query_group_num")
    one = config.get("multi_query") is True and not config.get("new_decoder_architecture")
    kv_heads = 1 if one else stated or heads
    head_dim = number(config, "head_dim", "kv_channels", "attention_head_dim") or (
        hidden // heads if heads else 0
    )
    if kind == "full":
        # Gemma 4: layers that see everything have wider heads, and fewer where K serves as V.
        head_dim = number(config, "global_head_dim") or head_dim
        if config.get("attention_k_eq_v"):
            kv_heads = number(config, "num_global_key_value_heads") or kv_heads
    return kv_heads, head_dim
