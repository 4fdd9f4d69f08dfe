"""GGUF metadata -> the same facts as config.json gives.

Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and llama.cpp's gguf-py/gguf/constants.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bundler.domain.model_facts import LayerGroup

# llama.cpp's llama_ftype (include/llama.h).
FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M",
    30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE",
}  # fmt: skip
_MAX_LAYERS = 10_000
# Every n-th layer sees everything, where the file does not say (llama.cpp, src/llama-model.cpp).
_PATTERNS = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4}


class GgufShape:
    """The keys of one architecture."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata
        self.architecture = str(metadata.get("general.architecture", ""))

    def number(self, key: str) -> int:
        """A positive whole number, else 0; of one value for each layer, the largest."""
        value = self._metadata.get(f"{self.architecture}.{key}")
        if isinstance(value, list):
            value = max((item for item in value if type(item) is int), default=0)
        return value if type(value) is int and 0 < value < 2**40 else 0

    def _for_each_layer(self, key: str, layers: int) -> list[int]:
        value = self._metadata.get(f"{self.architecture}.{key}")
        if isinstance(value, list):
            return [int(item) if isinstance(item, (int, bool)) else 0 for item in value[:layers]]
        return [value if type(value) is int else 0] * layers

    def groups(self) -> tuple[tuple[LayerGroup, ...], str]:
        """Groups of layers, and what could not be made out."""
        layers = self.number("block_count") - self.number("nextn_predict_layers")
        if not 0 < layers <= _MAX_LAYERS:
            return (), "the file states no block_count"
        if self.number("attention.kv_lora_rank"):
            group = LayerGroup(
                kind="mla",
                layers=layers,
                kv_lora_rank=self.number("attention.kv_lora_rank"),
                qk_rope_head_dim=self.number("rope.dimension_count"),
            )
            return (group,), ""
        kinds, unknown = self._kinds(layers)
        groups = [self._attention(kind, kinds.count(kind)) for kind in ("full", "sliding")]
        groups.append(self._linear(kinds.count("linear")))
        found = tuple(group for group in groups if group)
        named = {group.kind for group in found}
        missing = sorted(set(kinds) - named - {"none"})
        return found, unknown or (f"{', '.join(missing)} layers state no sizes" if missing else "")

    def _kinds(self, layers: int) -> tuple[list[str], str]:
        heads = self._for_each_layer("attention.head_count_kv", layers)
        interval = self.number("full_attention_interval")
        if self.number("ssm.state_size"):
            if interval:
                return ["linear" if (at + 1) % interval else "full" for at in range(layers)], ""
            if len(set(heads)) > 1:
                return ["full" if count else "linear" for count in heads], ""
            if self.architecture in ("qwen3next", "qwen35", "qwen35moe"):
                return ["linear" if (at + 1) % 4 else "full" for at in range(layers)], ""
            return ["linear"] * layers, "" if not any(heads) else "which layers attend"
        if self.number("attention.sliding_window"):
            return self._windows(layers)
        return ["full"] * layers, ""

    def _windows(self, layers: int) -> tuple[list[str], str]:
        key = "attention.sliding_window_pattern"
        stated = self._metadata.get(f"{self.architecture}.{key}")
        if isinstance(stated, list):
            flags = self._for_each_layer(key, layers)
            return ["sliding" if flag else "full" for flag in flags], ""
        pattern = self.number(key) or _PATTERNS.get(self.architecture, 0)
        if pattern:
            return ["sliding" if (at + 1) % pattern else "full" for at in range(layers)], ""
        return ["full"] * layers, "which layers see a window; all are counted as full"

    def _attention(self, kind: str, layers: int) -> LayerGroup | None:
        heads = self.number("attention.head_count")
        kv_heads = self.number("attention.head_count_kv") or heads
        width = self.number("embedding_length") // heads if heads else 0
        key = self.number("attention.key_length") or width
        if not (layers and kv_heads and key):
            return None
        sliding = kind == "sliding"
        return LayerGroup(
            kind="sliding" if sliding else "full",
            layers=layers,
            kv_heads=kv_heads,
            head_dim=key,
            v_head_dim=self.number("attention.value_length") or key,
            window=self.number("attention.sliding_window") if sliding else 0,
        )

    def _linear(self, layers: int) -> LayerGroup | None:
        v_heads = self.number("ssm.time_step_rank")
        inner = self.number("ssm.inner_size")
        sizes = {
            "k_heads": self.number("ssm.group_count"),
            "v_heads": v_heads,
            "k_dim": self.number("ssm.state_size"),
            "v_dim": inner // v_heads if v_heads else 0,
            "conv": self.number("ssm.conv_kernel"),
        }
        if not layers or not all(sizes.values()):
            return None
        return LayerGroup(kind="linear", layers=layers, **sizes)
