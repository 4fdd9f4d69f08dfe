"""What a model keeps for each token and each request: the KV cache, to the byte.

Attention layers keep K and V of every kv head for each token; sliding-window layers only for the
last `window` tokens; MLA one compressed vector and one rotary part (DeepSeek-V2,
https://arxiv.org/abs/2405.04434); gated delta net and Mamba a constant state for each request
(https://arxiv.org/abs/2412.06464). Under tensor parallelism kv heads and states are divided among
the GPUs; a kv head is replicated when there are more GPUs than heads, MLA's vector on every GPU
(https://github.com/vllm-project/vllm/blob/main/vllm/v1/kv_cache_interface.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from bundler.domain.fit import Term
from bundler.domain.model_facts import LayerGroup, ModelFacts

_PLAIN = {
    "auto": 2, "f16": 2, "fp16": 2, "float16": 2, "half": 2, "bf16": 2, "bfloat16": 2,
    "f32": 4, "float32": 4,
    "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp8_inc": 1,
}  # fmt: skip
# Bytes of a block of 32 elements: ggml/src/ggml-common.h in https://github.com/ggml-org/llama.cpp
_GGML = {"q8_0": 34, "q5_1": 24, "q5_0": 22, "q4_1": 20, "q4_0": 18, "iq4_nl": 18}
# Halved for 4 bits; one float32 scale for each token, head and side:
# vllm/v1/attention/backends/triton_attn.py, customize_spec.
_PER_TOKEN_HEAD = {"int8_per_token_head": 1, "fp8_per_token_head": 1, "int4_per_token_head": 2}
# 512 FP8 elements, four float32 scales, 64 bfloat16 rotary elements: DeepSeek-V3.2's own layout,
# https://docs.vllm.ai/en/latest/api/vllm/v1/attention/backends/mla/flashmla_sparse/
_DS_MLA_TOKEN = 656
_STATE = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Numbers:
    """The number formats of a cache, and among how many GPUs it is divided.

    `tp` GPUs share each layer, `stages` such groups of GPUs share the layers. `conv` and `state` are bytes of an element of a linear layer's convolution and recurrent state.
    """

    k: str = "auto"
    v: str = "auto"
    state: int = 4
    conv: int = 2
    tp: int = 1
    stages: int = 1

    @property
    def label(self) -> str:
        """For people."""
        return self.k if self.k == self.v else f"K {self.k}, V {self.v}"


def known(kv_dtype: str) -> bool:
    """Whether the size of that KV-cache type is known."""
    kinds = (_PLAIN, _GGML, _PER_TOKEN_HEAD, ("nvfp4", "fp8_ds_mla"))
    return any(kv_dtype in kind for kind in kinds)


def state_size(dtype: str) -> int:
    """Bytes of one element of a recurrent state; 4 for a type that is not known."""
    return _STATE.get(dtype, 4)


def vector_bytes(elements: int, kv_dtype: str) -> int:
    """Bytes of one K or V vector of that many elements, its scales included.

    Raises:
        ValueError: the type is not `known`.
    """
    if kv_dtype in _GGML:
        return -(-elements // 32) * _GGML[kv_dtype]
    if kv_dtype in _PER_TOKEN_HEAD:
        return -(-elements // _PER_TOKEN_HEAD[kv_dtype]) + 4
    if kv_dtype == "nvfp4":  # FP4 and an FP8 scale for 16: vllm/utils/torch_utils.py
        return -(-elements // 2) + -(-elements // 16)
    if kv_dtype in _PLAIN:
        return elements * _PLAIN[kv_dtype]
    raise ValueError(f"KV-cache type {kv_dtype[:40]!r}: its size is not known")


def token_bytes(group: LayerGroup, numbers: Numbers) -> int:
    """Bytes that one token takes in one layer of the group, on one GPU. 0 for linear layers."""
    if group.kind == "linear":
        return 0
    if group.kind == "mla":
        if numbers.k == "fp8_ds_mla":
            return _DS_MLA_TOKEN
        return vector_bytes(group.kv_lora_rank + group.qk_rope_head_dim, numbers.k)
    k = vector_bytes(group.head_dim, numbers.k)
    v = vector_bytes(group.v_head_dim or group.head_dim, numbers.v)
    return -(-group.kv_heads // numbers.tp) * (k + v)


def state_bytes(group: LayerGroup, numbers: Numbers) -> int:
    """Bytes that one request takes in one linear layer, on one GPU. 0 for other layers.

    The recurrent state is one `k_dim` x `v_dim` matrix for each value head; the convolution keeps
    the last `conv` - 1 inputs of every key, query and value channel
    (vllm/model_executor/layers/mamba/mamba_utils.py, gated_delta_net_state_shape).
    """
    if group.kind != "linear":
        return 0
    recurrent = -(-group.v_heads // numbers.tp) * group.k_dim * group.v_dim * numbers.state
    channels = 2 * group.k_heads * group.k_dim + group.v_heads * group.v_dim
    return recurrent + -(-channels // numbers.tp) * max(group.conv - 1, 0) * numbers.conv


def per_token(model: ModelFacts, numbers: Numbers) -> Term:
    """KV cache that grows with each token, of the whole model on one GPU's share."""
    groups = [group for group in model.groups if group.kind in ("full", "mla")]
    return Term(
        name="KV cache per token",
        bytes=sum(group.layers * token_bytes(group, numbers) for group in groups),
        how=" + ".join(_token_words(group, numbers) for group in groups) or "no such layers",
    )


def per_request(model: ModelFacts, numbers: Numbers) -> Term:
    """State that each request keeps whatever its length: full windows, and recurrent states."""
    parts: list[tuple[int, str]] = []
    for group in model.groups:
        if group.kind == "sliding":
            size = group.layers * group.window * token_bytes(group, numbers)
            parts.append((size, f"{_token_words(group, numbers)} x window {group.window}"))
        if group.kind == "linear":
            size = group.layers * state_bytes(group, numbers)
            parts.append((size, _state_words(group, numbers)))
    return Term(
        name="state per request",
        bytes=sum(size for size, _ in parts),
        how=" + ".join(words for _, words in parts) or "no such layers",
    )


def _token_words(group: LayerGroup, numbers: Numbers) -> str:
    layers = f"{group.layers} {group.kind} layers"
    if group.kind == "mla":
        width = f"({group.kv_lora_rank} + {group.qk_rope_head_dim} elements)"
        return f"{layers} x {width} of {numbers.k}" + _copies(numbers)
    shared = f" / {numbers.tp} GPUs" if numbers.tp > 1 else ""
    width = f"({group.head_dim} K + {group.v_head_dim or group.head_dim} V elements)"
    return f"{layers} x {group.kv_heads} kv heads{shared} x {width} of {numbers.label}"


def _copies(numbers: Numbers) -> str:
    return " (a copy on each GPU)" if numbers.tp > 1 else ""


def _state_words(group: LayerGroup, numbers: Numbers) -> str:
    shared = f" / {numbers.tp} GPUs" if numbers.tp > 1 else ""
    return (
        f"{group.layers} linear layers x ({group.v_heads} heads x {group.k_dim} x {group.v_dim}"
        f" x {numbers.state} bytes + (2 x {group.k_heads} x {group.k_dim} + {group.v_heads} x"
        f" {group.v_dim}) x {max(group.conv - 1, 0)} x {numbers.conv} bytes){shared}"
    )
