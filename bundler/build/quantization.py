"""How a model's weights are quantized, from `quantization_config` of config.json.

Forms: transformers' fp8, awq, gptq, mxfp4 and bitsandbytes; compressed-tensors
(https://github.com/neuralmagic/compressed-tensors); NVIDIA ModelOpt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def quantization(
    config: Mapping[str, Any], text: Mapping[str, Any], beside: Mapping[str, Any]
) -> tuple[str, tuple[int, ...]]:
    """Method (empty when there is none), and the block of block-wise FP8.

    Args:
        config: config.json.
        text: the language model's part of it.
        beside: hf_quant_config.json, where ModelOpt wrote what config.json does not state.
    """
    stated = config.get("quantization_config") or text.get("quantization_config")
    stated = stated or config.get("compression_config")
    if not stated and isinstance(beside.get("quantization"), Mapping):
        stated = {"quant_method": "modelopt", **beside["quantization"]}
    if not isinstance(stated, Mapping):
        return "", ()
    method = _word(stated.get("quant_method"))
    if method in ("compressed-tensors", "compressed_tensors"):
        return _compressed(stated)
    if method.startswith("modelopt"):
        algorithm = _word(stated.get("quant_algo"))
        inner = stated.get("quantization")
        if not algorithm and isinstance(inner, Mapping):
            algorithm = _word(inner.get("quant_algo"))
        return algorithm or method, ()
    return method, _block(stated.get("weight_block_size"))


def _compressed(stated: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    groups = stated.get("config_groups")
    first: Any = next(iter(groups.values()), {}) if isinstance(groups, Mapping) else {}
    weights = first.get("weights") if isinstance(first, Mapping) else None
    if not isinstance(weights, Mapping):
        return _word(stated.get("format")) or "compressed-tensors", ()
    bits, kind = weights.get("num_bits"), weights.get("type")
    if kind == "float":
        name = {8: "fp8", 4: "nvfp4" if "nvfp4" in str(stated.get("format")) else "mxfp4"}
        word = name.get(bits if type(bits) is int else 0, f"float{_word(bits)}")
        return word, _block(weights.get("block_structure"))
    return f"int{_word(bits)}", ()


def _word(value: Any) -> str:
    """A short word in small letters; empty for what is none."""
    text = str(value).lower() if isinstance(value, (str, int)) else ""
    return text if len(text) <= 40 and text.isprintable() else ""


def _block(value: Any) -> tuple[int, ...]:
    if isinstance(value, list) and 0 < len(value) <= 4 and all(type(n) is int for n in value):
        return tuple(value)
    return ()
