"""config.json -> the constant state that a layer without a KV cache keeps for each request.

All fit one form (`LayerGroup` of kind linear): `v_heads` matrices of `k_dim` x `v_dim`, and the last
inputs of a convolution over 2 x `k_heads` x `k_dim` + `v_heads` x `v_dim` channels. Shapes as in
vllm/model_executor/layers/mamba/mamba_utils.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bundler.build.confignumbers import number
from bundler.domain.model_facts import LayerGroup


def state_group(config: Mapping[str, Any], kind: str, layers: int) -> LayerGroup | None:
    """A group of `linear`, `mamba` or `conv` layers; None when config.json states no sizes."""
    if kind == "conv":
        sizes = _short_convolution(config)
    elif kind == "mamba":
        sizes = _mamba2(config) or _mamba1(config)
    else:
        sizes = _delta_net(config) or _kimi(config) or _lightning(config) or _mamba2(config)
    return LayerGroup(kind="linear", layers=layers, **sizes) if sizes else None


def _delta_net(config: Mapping[str, Any]) -> dict[str, int]:
    """Gated delta net: Qwen3-Next, Qwen3.5."""
    return _whole(
        k_heads=number(config, "linear_num_key_heads"),
        v_heads=number(config, "linear_num_value_heads"),
        k_dim=number(config, "linear_key_head_dim"),
        v_dim=number(config, "linear_value_head_dim"),
        conv=number(config, "linear_conv_kernel_dim"),
    )


def _kimi(config: Mapping[str, Any]) -> dict[str, int]:
    """Kimi delta attention: as many key as value heads, all of one width."""
    inner = config.get("linear_attn_config")
    if not isinstance(inner, Mapping):
        return {}
    heads, width = number(inner, "num_heads"), number(inner, "head_dim")
    conv = number(inner, "short_conv_kernel_size")
    return _whole(k_heads=heads, v_heads=heads, k_dim=width, v_dim=width, conv=conv)


def _lightning(config: Mapping[str, Any]) -> dict[str, int]:
    """MiniMax-Text-01 and M1: a square matrix for each head, no convolution."""
    if not isinstance(config.get("attn_type_list"), list):
        return {}
    heads, width = number(config, "num_attention_heads"), number(config, "head_dim")
    return _whole(k_heads=heads, v_heads=heads, k_dim=width, v_dim=width, conv=1)


def _mamba2(config: Mapping[str, Any]) -> dict[str, int]:
    """Mamba-2: groups and state take the places of key heads and key width."""
    heads = _mamba2_heads(config)
    plain = number(config, "head_dim") if _alone(config) else 0
    inner = number(config, "mamba_d_ssm") or _inner(config)
    # `mamba_d_head` may be "auto".
    width = number(config, "mamba_d_head", "mamba_head_dim") or plain
    return _whole(
        k_heads=number(config, "mamba_n_groups", "n_groups"),
        v_heads=heads,
        k_dim=_state_size(config),
        v_dim=width or (inner // heads if heads else 0),
        conv=_convolution(config),
    )


def _mamba2_heads(config: Mapping[str, Any]) -> int:
    plain = number(config, "num_heads") if _alone(config) else 0
    return number(config, "mamba_n_heads", "mamba_num_heads") or plain


def _mamba1(config: Mapping[str, Any]) -> dict[str, int]:
    """Mamba: a state for each inner channel (Jamba, Falcon-Mamba)."""
    if _mamba2_heads(config):
        return {}
    inner = (number(config, "intermediate_size") if _alone(config) else 0) or _inner(config)
    return _whole(v_heads=inner, k_dim=_state_size(config), v_dim=1, conv=_convolution(config))


def _short_convolution(config: Mapping[str, Any]) -> dict[str, int]:
    """LFM2: the last inputs of a convolution over the hidden state, and nothing else."""
    return _whole(
        v_heads=number(config, "conv_dim", "hidden_size"),
        v_dim=1,
        conv=number(config, "conv_L_cache"),
    )


def _alone(config: Mapping[str, Any]) -> bool:
    """Whether no layer attends, so that plain names are the state's."""
    return not number(config, "num_attention_heads", "num_key_value_heads")


def _inner(config: Mapping[str, Any]) -> int:
    return number(config, "mamba_expand", "expand") * number(config, "hidden_size")


def _state_size(config: Mapping[str, Any]) -> int:
    return number(config, "mamba_d_state", "ssm_state_size", "state_size")


def _convolution(config: Mapping[str, Any]) -> int:
    return number(config, "mamba_d_conv", "conv_kernel")


def _whole(**sizes: int) -> dict[str, int]:
    """The sizes, or nothing when one is missing."""
    return sizes if all(sizes.values()) else {}
