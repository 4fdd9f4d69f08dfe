"""A tiny random Qwen3.5-MoE checkpoint, as the Hub holds one, which real vLLM serves.

Three gated-delta-net layers and one of full attention, eight experts, a vision tower that is never used.
Names and shapes are those that transformers 5.19 saves for Qwen3_5MoeForConditionalGeneration.
Files: https://huggingface.co/docs/safetensors (eight bytes of header length, JSON header, data).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bundler.demo import weights
from bundler.demo.tokenizer import (
    CHAT_TEMPLATE,
    Vocabulary,
    tokenizer_config,
    tokenizer_json,
    vocabulary,
)

_WIDTH, _LAYERS, _EXPERTS, _FEED = 64, 4, 8, 64
_HEADS, _HEAD = 2, 64
_KEY_HEADS, _VALUE_HEADS = 2, 4
_CONV = 4
_Tensor = tuple[str, tuple[int, ...], bytes]
_CARD = """\
---
license: apache-2.0
---
A random model for trying airbundle. It answers with meaningless text.
"""


def write_tiny_qwen35_moe(folder: Path, *, linear_head_dim: int = 128) -> None:
    """Write the checkpoint (about 3 MB, two shards). The same bytes every time.

    Args:
        folder: made when absent.
        linear_head_dim: head dimension of the gated delta net. With 32, vLLM's CPU kernel serves
            /health and dies on the first request.
    """
    folder.mkdir(parents=True, exist_ok=True)
    words = vocabulary()
    rows = -(-words.size // 64) * 64
    tensors = [*_text_tensors(words, rows, linear_head_dim), *_vision_tensors()]
    half = len(tensors) // 2
    index: dict[str, str] = {}
    for number, shard in enumerate((tensors[:half], tensors[half:]), 1):
        name = f"model-{number:05d}-of-00002.safetensors"
        _write_safetensors(folder / name, shard)
        index.update({tensor: name for tensor, _, _ in shard})
    total = sum(len(data) for _, _, data in tensors)
    documents = {
        "model.safetensors.index.json": {"metadata": {"total_size": total}, "weight_map": index},
        "config.json": _config(words, rows, linear_head_dim),
        "generation_config.json": {
            "eos_token_id": words.id("<|im_end|>"),
            "pad_token_id": words.id("<|endoftext|>"),
        },
        "preprocessor_config.json": {
            "image_processor_type": "Qwen2VLImageProcessor",
            "processor_class": "Qwen3VLProcessor",
            "patch_size": 16,
            "temporal_patch_size": 2,
            "merge_size": 2,
            "image_mean": [0.5] * 3,
            "image_std": [0.5] * 3,
            "size": {"shortest_edge": 1024, "longest_edge": 65536},
        },
        "tokenizer.json": tokenizer_json(words),
        "tokenizer_config.json": tokenizer_config(),
    }
    for name, content in documents.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    (folder / "README.md").write_text(_CARD, encoding="utf-8")


def _config(words: Vocabulary, rows: int, linear_head_dim: int) -> dict[str, Any]:
    text = {
        "model_type": "qwen3_5_moe_text",
        "vocab_size": rows,
        "hidden_size": _WIDTH,
        "num_hidden_layers": _LAYERS,
        "layer_types": ["linear_attention"] * 3 + ["full_attention"],
        "num_attention_heads": _HEADS,
        "num_key_value_heads": 1,
        "head_dim": _HEAD,
        "linear_conv_kernel_dim": _CONV,
        "linear_key_head_dim": linear_head_dim,
        "linear_value_head_dim": linear_head_dim,
        "linear_num_key_heads": _KEY_HEADS,
        "linear_num_value_heads": _VALUE_HEADS,
        "num_experts": _EXPERTS,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": _FEED,
        "shared_expert_intermediate_size": _FEED,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 4096,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "partial_rotary_factor": 0.25,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": [3, 3, 2],
            "mrope_interleaved": True,
        },
        "bos_token_id": None,
        "eos_token_id": words.id("<|im_end|>"),
        "pad_token_id": words.id("<|endoftext|>"),
        "dtype": "bfloat16",
    }
    vision = {
        "model_type": "qwen3_5_moe_vision",
        "depth": 1,
        "hidden_size": _WIDTH,
        "intermediate_size": 128,
        "num_heads": 2,
        "out_hidden_size": _WIDTH,
        "num_position_embeddings": 64,
        "patch_size": 16,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "in_channels": 3,
        "hidden_act": "gelu_pytorch_tanh",
    }
    return {
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "model_type": "qwen3_5_moe",
        "dtype": "bfloat16",
        "tie_word_embeddings": False,
        "text_config": text,
        "vision_config": vision,
        "image_token_id": words.id("<|image_pad|>"),
        "video_token_id": words.id("<|video_pad|>"),
        "vision_start_token_id": words.id("<|vision_start|>"),
        "vision_end_token_id": words.id("<|vision_end|>"),
        "transformers_version": "5.19.0",
    }


def _text_tensors(words: Vocabulary, rows: int, linear_head_dim: int) -> Iterator[_Tensor]:
    mute = [n for n in range(rows) if n >= words.size or not words.is_plain(n)]
    name, shape, head = _random("lm_head.weight", rows, _WIDTH)
    yield name, shape, weights.muting_head(head, _WIDTH, 2, mute)
    top = "model.language_model."
    name, shape, embedding = _random(top + "embed_tokens.weight", rows, _WIDTH)
    yield name, shape, weights.steady_embedding(embedding, _WIDTH, 2)
    yield _constant(top + "norm.weight", 0.0, _WIDTH)
    for number in range(_LAYERS):
        layer = f"{top}layers.{number}."
        # These norms multiply by one plus the weight.
        yield _constant(layer + "input_layernorm.weight", 0.0, _WIDTH)
        yield _constant(layer + "post_attention_layernorm.weight", 0.0, _WIDTH)
        yield from (
            _attention(layer + "self_attn.")
            if number == _LAYERS - 1
            else _delta_net(layer + "linear_attn.", linear_head_dim)
        )
        yield from _experts(layer + "mlp.")


def _delta_net(at: str, head: int) -> Iterator[_Tensor]:
    keys, values = _KEY_HEADS * head, _VALUE_HEADS * head
    mixed = 2 * keys + values
    yield _random(at + "A_log", _VALUE_HEADS)
    yield _constant(at + "dt_bias", 1.0, _VALUE_HEADS)
    yield _random(at + "conv1d.weight", mixed, 1, _CONV)
    yield _random(at + "in_proj_a.weight", _VALUE_HEADS, _WIDTH)
    yield _random(at + "in_proj_b.weight", _VALUE_HEADS, _WIDTH)
    yield _random(at + "in_proj_qkv.weight", mixed, _WIDTH)
    yield _random(at + "in_proj_z.weight", values, _WIDTH)
    yield _constant(at + "norm.weight", 1.0, head)
    yield _writer(at + "out_proj.weight", values)


def _attention(at: str) -> Iterator[_Tensor]:
    # Twice the heads: the second half gates the output.
    yield _random(at + "q_proj.weight", 2 * _HEADS * _HEAD, _WIDTH)
    yield _random(at + "k_proj.weight", _HEAD, _WIDTH)
    yield _random(at + "v_proj.weight", _HEAD, _WIDTH)
    yield _writer(at + "o_proj.weight", _HEADS * _HEAD)
    yield _constant(at + "q_norm.weight", 0.0, _HEAD)
    yield _constant(at + "k_norm.weight", 0.0, _HEAD)


def _experts(at: str) -> Iterator[_Tensor]:
    yield _random(at + "gate.weight", _EXPERTS, _WIDTH)
    yield _random(at + "shared_expert_gate.weight", 1, _WIDTH)
    names = [f"experts.{number}." for number in range(_EXPERTS)] + ["shared_expert."]
    for name in names:
        yield _random(f"{at}{name}gate_proj.weight", _FEED, _WIDTH)
        yield _random(f"{at}{name}up_proj.weight", _FEED, _WIDTH)
        yield _writer(f"{at}{name}down_proj.weight", _FEED)


def _vision_tensors() -> Iterator[_Tensor]:
    top = "model.visual."
    block = top + "blocks.0."
    merged = 4 * _WIDTH
    yield _random(top + "patch_embed.proj.weight", _WIDTH, 3, 2, 16, 16)
    yield _constant(top + "patch_embed.proj.bias", 0.0, _WIDTH)
    yield _random(top + "pos_embed.weight", 64, _WIDTH)
    for name, outputs, inputs in (
        (block + "attn.qkv", 3 * _WIDTH, _WIDTH),
        (block + "attn.proj", _WIDTH, _WIDTH),
        (block + "mlp.linear_fc1", 128, _WIDTH),
        (block + "mlp.linear_fc2", _WIDTH, 128),
        (top + "merger.linear_fc1", merged, merged),
        (top + "merger.linear_fc2", _WIDTH, merged),
    ):
        yield _random(name + ".weight", outputs, inputs)
        yield _constant(name + ".bias", 0.0, outputs)
    for name in (block + "norm1", block + "norm2", top + "merger.norm"):
        yield _constant(name + ".weight", 1.0, _WIDTH)
        yield _constant(name + ".bias", 0.0, _WIDTH)


def _random(name: str, *shape: int) -> _Tensor:
    return name, shape, weights.bf16(name, _count(shape))


def _writer(name: str, inputs: int) -> _Tensor:
    """A matrix whose result is added to the hidden state."""
    _, shape, data = _random(name, _WIDTH, inputs)
    return name, shape, weights.steady_output(data, inputs, 2)


def _constant(name: str, value: float, *shape: int) -> _Tensor:
    return name, shape, weights.bf16_constant(value, _count(shape))


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _write_safetensors(path: Path, tensors: list[_Tensor]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, shape, data in tensors:
        end = offset + len(data)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors:
            file.write(data)
