"""GGUF metadata -> the same facts as config.json gives.

Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and llama.cpp's gguf-py/gguf/constants.py;
what they mean for the KV cache: src/llama-hparams.cpp and src/llama-model.cpp there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from bundler.build.confignumbers import number
from bundler.domain.model_facts import LayerGroup
from bundler.format.gguf import file_type

_MAX_LAYERS = 10_000
# Every n-th layer sees everything, where the file does not say (llama.cpp, src/llama-model.cpp).
_PATTERNS = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4}
# Every 4th layer attends where full_attention_interval is not stated.
_DELTA_NETS = ("qwen3next", "qwen35", "qwen35moe")
# A layer's kind, and its K/V heads.
_Layer = tuple[str, int]


class GgufShape:
    """The keys of one architecture."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        self._metadata = metadata
        stated = metadata.get("general.architecture")
        self.architecture = stated if isinstance(stated, str) and stated.isprintable() else ""

    @property
    def file_type(self) -> str:
        """How most tensors are quantized, as llama.cpp calls it; empty when it is not stated."""
        return file_type(self._metadata)

    def number(self, key: str) -> int:
        """A positive whole number, else 0; of one value for each layer, the largest."""
        value = self._metadata.get(f"{self.architecture}.{key}")
        if isinstance(value, list):
            value = max((item for item in value if type(item) is int), default=0)
        return number({key: value}, key)

    def groups(self) -> tuple[tuple[LayerGroup, ...], str]:
        """Groups of layers, and what could not be made out."""
        layers = self.number("block_count") - self.number("nextn_predict_layers")
        if not 0 < layers <= _MAX_LAYERS:
            return (), "the file states no block_count"
        found, doubt = self._layers(layers)
        # The last layers use the cache of earlier ones (Gemma 3n and 4).
        found = found[: max(len(found) - self.number("attention.shared_kv_layers"), 0)]
        doubts = [doubt]
        groups = []
        for (kind, kv_heads), count in Counter(found).items():
            group = self._group(kind, kv_heads, count)
            if group is not None:
                groups.append(group)
            elif kind != "none":
                doubts.append(f"{count} {kind} layers state no sizes")
        if not groups and not any(doubts):
            doubts.append("the file states no heads and no states")
        order = ("full", "sliding", "mla", "linear")
        groups.sort(key=lambda group: order.index(group.kind))
        return tuple(groups), "; ".join(filter(None, doubts))

    def _for_each_layer(self, key: str, layers: int) -> list[int]:
        value = self._metadata.get(f"{self.architecture}.{key}")
        if isinstance(value, list):
            value = [int(item) if isinstance(item, (int, bool)) else 0 for item in value[:layers]]
            return value + [0] * (layers - len(value))
        return [number({key: value}, key)] * layers

    def _layers(self, layers: int) -> tuple[list[_Layer], str]:
        """Kind and K/V heads of each layer, and what is in doubt."""
        heads = self._for_each_layer("attention.head_count_kv", layers)
        if not any(heads):
            heads = self._for_each_layer("attention.head_count", layers)
        if self._is_mla():
            return [("mla", 0)] * layers, ""
        if self.architecture == "falcon-h1":
            return [layer for count in heads for layer in (("full", count), ("linear", 0))], ""
        if self.number("ssm.state_size"):
            kinds, doubt = self._mixed(heads)
        else:
            kinds, doubt = self._windows(layers)
        found = [
            (kind if count or kind == "linear" else "none", count if kind != "linear" else 0)
            for kind, count in zip(kinds, heads, strict=True)
        ]
        return found, doubt

    def _is_mla(self) -> bool:
        """Whether K and V are kept compressed; files from before April 2025 keep every head."""
        stated = self.number("attention.kv_lora_rank")
        return bool(stated and self.number("attention.key_length_mla"))

    def _mixed(self, heads: list[int]) -> tuple[list[str], str]:
        """Recurrent layers among those that attend."""
        layers = len(heads)
        flags = self._metadata.get(f"{self.architecture}.attention.recurrent_layers")
        if isinstance(flags, list) and len(flags) >= layers:
            return ["linear" if flag else "full" for flag in flags[:layers]], ""
        if len(set(heads)) > 1:
            return ["full" if count else "linear" for count in heads], ""
        every = self.number("full_attention_interval")
        if every or self.architecture in _DELTA_NETS:
            return ["linear" if (at + 1) % (every or 4) else "full" for at in range(layers)], ""
        return ["linear"] * layers, "" if not any(heads) else "which layers attend"

    def _windows(self, layers: int) -> tuple[list[str], str]:
        if not self.number("attention.sliding_window"):
            return ["full"] * layers, ""
        key = "attention.sliding_window_pattern"
        stated = self._metadata.get(f"{self.architecture}.{key}")
        if isinstance(stated, list):
            flags = self._for_each_layer(key, layers)
            return ["sliding" if flag else "full" for flag in flags], ""
        pattern = self.number(key) or _PATTERNS.get(self.architecture, 0)
        if pattern:
            return ["sliding" if (at + 1) % pattern else "full" for at in range(layers)], ""
        return ["full"] * layers, "which layers see a window; all are counted as full"

    def _group(self, kind: str, kv_heads: int, layers: int) -> LayerGroup | None:
        if kind == "mla":
            rank = self.number("attention.kv_lora_rank")
            rope = self.number("rope.dimension_count")
            sizes = {"kv_lora_rank": rank, "qk_rope_head_dim": rope}
            return LayerGroup(kind="mla", layers=layers, **sizes) if rope else None
        if kind == "linear":
            return self._state(layers)
        return self._attention(kind, kv_heads, layers) if kind in ("full", "sliding") else None

    def _attention(self, kind: str, kv_heads: int, layers: int) -> LayerGroup | None:
        heads = self.number("attention.head_count")
        width = self.number("embedding_length") // heads if heads else 0
        key = self.number("attention.key_length") or width
        value = self.number("attention.value_length") or key
        sliding = kind == "sliding"
        if sliding:
            key = self.number("attention.key_length_swa") or key
            value = self.number("attention.value_length_swa") or value
        if not 0 < kv_heads < 2**40 or not key:
            return None
        return LayerGroup(
            kind="sliding" if sliding else "full",
            layers=layers,
            kv_heads=kv_heads,
            head_dim=key,
            v_head_dim=value,
            window=self.number("attention.sliding_window") if sliding else 0,
        )

    def _state(self, layers: int) -> LayerGroup | None:
        """Gated delta net and Mamba-2; Mamba-1 has a state for each inner channel and no groups."""
        inner, groups = self.number("ssm.inner_size"), self.number("ssm.group_count")
        heads = self.number("ssm.time_step_rank") if groups else inner
        sizes = {
            "v_heads": heads,
            "k_dim": self.number("ssm.state_size"),
            "v_dim": inner // heads if heads else 0,
            "conv": self.number("ssm.conv_kernel"),
        }
        if not all(sizes.values()):
            return None
        return LayerGroup(kind="linear", layers=layers, k_heads=groups, **sizes)
