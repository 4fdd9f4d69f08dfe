"""Bytes of KV cache for a token and of state for a request, by the shape of the model's layers.

Formulas, for each GPU of a tensor-parallel group of `tp`:

- full attention, GQA: 2 x layers x kv heads x head size x bytes for each token; K/V heads are shared out,
  and repeated when there are fewer than GPUs (vLLM, config/model.py `get_num_kv_heads`).
- MLA: layers x (kv_lora_rank + qk_rope_head_dim) x bytes for each token, on every GPU (DeepSeek-V2).
- sliding window: as full, but at most `window` tokens are kept.
- gated delta net and Mamba-2: v_heads x k_dim x v_dim x 4 + (2 x k_heads x k_dim + v_heads x v_dim) x
  (conv - 1) x 2 bytes for each request, whatever its length.

vLLM keeps them in pages of one size (v1/core/kv_cache_utils.py): a linear layer's state fills one page,
so that a page holds ceil(state / attention bytes of a token), rounded up to 16, tokens. This gives the
784 tokens and 33.04 requests of vllm-project/vllm#40691 exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from bundler.domain.model_facts import LayerGroup, ModelFacts

# Bytes of one element: the quantized ggml types hold 32 in a block with its scale (ggml-common.h).
ELEMENT = {
    "auto": Fraction(2), "f16": Fraction(2), "float16": Fraction(2), "bf16": Fraction(2),
    "bfloat16": Fraction(2), "f32": Fraction(4), "float32": Fraction(4), "q8_0": Fraction(34, 32),
    "q5_1": Fraction(24, 32), "q5_0": Fraction(22, 32), "q4_1": Fraction(20, 32),
    "q4_0": Fraction(18, 32), "iq4_nl": Fraction(18, 32), "nvfp4": Fraction(9, 16),
    "nvfp4_4over6": Fraction(9, 16),
}  # fmt: skip
_STATE = {"float32": 4, "bfloat16": 2, "float16": 2}
_CONV_BYTES = 2
_ALIGN = 16


def element_bytes(dtype: str) -> Fraction | None:
    """Bytes of one cached element; None for a type that is not known here."""
    if dtype in ELEMENT:
        return ELEMENT[dtype]
    if dtype.startswith(("fp8", "int8")):
        return Fraction(1)
    return Fraction(1, 2) if dtype.startswith("int4") else None


@dataclass(frozen=True)
class KvCache:
    """The cache of one model on one of `tp` GPUs.

    Args:
        model: its layers.
        element: bytes of one element.
        tp: GPUs that share the model.
        paged: whether state and attention share pages, as in vLLM.
    """

    model: ModelFacts
    element: Fraction
    tp: int = 1
    paged: bool = True

    def _groups(self, *kinds: str) -> Iterator[LayerGroup]:
        return (group for group in self.model.groups if group.kind in kinds)

    def _layer_token(self, group: LayerGroup) -> Fraction:
        """Bytes of a token in one layer that attends."""
        if group.kind == "mla":
            return (group.kv_lora_rank + group.qk_rope_head_dim) * self.element
        heads = -(-group.kv_heads // min(self.tp, group.kv_heads))
        return heads * (group.head_dim + (group.v_head_dim or group.head_dim)) * self.element

    def _layer_state(self, group: LayerGroup) -> int:
        """Bytes of a request's state in one linear layer."""
        v_heads = -(-group.v_heads // self.tp)
        k_heads = -(-group.k_heads // self.tp)
        state = v_heads * group.k_dim * group.v_dim * _STATE.get(self.model.state_dtype, 4)
        conv = (2 * k_heads * group.k_dim + v_heads * group.v_dim) * (group.conv - 1)
        return state + conv * _CONV_BYTES

    @property
    def per_token(self) -> Fraction:
        """Bytes for each token in the layers that keep every token."""
        return sum(
            (group.layers * self._layer_token(group) for group in self._groups("full", "mla")),
            Fraction(0),
        )

    def windows(self, context: int) -> Fraction:
        """Bytes for one request in the layers that keep a window."""
        return sum(
            (
                group.layers * self._layer_token(group) * min(context, group.window or context)
                for group in self._groups("sliding")
            ),
            Fraction(0),
        )

    @property
    def state(self) -> int:
        """Bytes for each request in linear layers."""
        return sum(group.layers * self._layer_state(group) for group in self._groups("linear"))

    def request(self, context: int) -> Fraction:
        """Bytes for one request of `context` tokens, without rounding to pages."""
        return context * self.per_token + self.windows(context) + self.state

    @property
    def page_tokens(self) -> int | None:
        """Tokens in a page where linear layers decide it; None where they do not."""
        attending = [self._layer_token(group) for group in self._groups("full", "mla", "sliding")]
        states = [self._layer_state(group) for group in self._groups("linear")]
        if not (self.paged and attending and states):
            return None
        tokens = -(-max(states) // max(attending))
        return int(-(-tokens // _ALIGN) * _ALIGN)

    def at_once(self, budget: int, context: int) -> float:
        """Requests of `context` tokens that fit into `budget` bytes."""
        page = self.page_tokens
        if page is None:
            each = self.request(context)
            return float(budget / each) if each else float("inf")
        layers = min(group.layers for group in self.model.groups)
        attending = list(self._groups("full", "mla", "sliding"))
        token = max(self._layer_token(group) for group in attending)
        pages = budget // int(page * token * layers)
        needed = sum(
            -(-group.layers // layers) * -(-min(context, group.window or context) // page)
            for group in attending
        )
        needed += sum(-(-group.layers // layers) for group in self._groups("linear"))
        return pages / needed

    def longest(self, budget: int, limit: int) -> int:
        """Tokens of the longest single request that fits, at most `limit`."""
        low, high = 0, limit
        while low < high:
            middle = (low + high + 1) // 2
            if self.at_once(budget, middle) >= 1:
                low = middle
            else:
                high = middle - 1
        return low
