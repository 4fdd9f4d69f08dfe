"""A tiny random llama-architecture model as one GGUF file, which a real llama-server runs.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (version 3).
"""

from __future__ import annotations

import struct
from pathlib import Path

from bundler.demo import weights
from bundler.demo.tokenizer import CHAT_TEMPLATE, SPECIAL, vocabulary

_WIDTH, _LAYERS, _HEADS, _KV_HEADS, _FEED = 64, 2, 2, 1, 128
_HEAD = _WIDTH // _HEADS
_ALIGN = 32
_U32, _F32, _BOOL, _STRING, _ARRAY, _I32 = 4, 6, 7, 8, 9, 5
_NORMAL, _CONTROL = 1, 3


def write_tiny_gguf(path: Path) -> None:
    """Write the model (about 400 KB, context 4096). The same bytes every time.

    It never gives a token that is no ASCII text: llama-server answers 500 to bytes that are not UTF-8.
    """
    words = vocabulary()
    metadata = [
        _text("general.architecture", "llama"),
        _text("general.name", "airbundle tiny random"),
        _text("general.license", "apache-2.0"),
        _number("general.alignment", _ALIGN),
        _number("general.file_type", 0),
        _number("llama.vocab_size", words.size),
        _number("llama.context_length", 4096),
        _number("llama.embedding_length", _WIDTH),
        _number("llama.block_count", _LAYERS),
        _number("llama.feed_forward_length", _FEED),
        _number("llama.attention.head_count", _HEADS),
        _number("llama.attention.head_count_kv", _KV_HEADS),
        _number("llama.rope.dimension_count", _HEAD),
        _key("llama.attention.layer_norm_rms_epsilon", _F32) + struct.pack("<f", 1e-6),
        _key("llama.rope.freq_base", _F32) + struct.pack("<f", 10000.0),
        _text("tokenizer.ggml.model", "gpt2"),
        _text("tokenizer.ggml.pre", "gpt-2"),
        _texts("tokenizer.ggml.tokens", list(words.tokens)),
        _types("tokenizer.ggml.token_type", [t in SPECIAL for t in words.tokens]),
        _texts("tokenizer.ggml.merges", [" ".join(pair) for pair in words.merges]),
        _number("tokenizer.ggml.eos_token_id", words.id("<|im_end|>")),
        _number("tokenizer.ggml.padding_token_id", words.id("<|endoftext|>")),
        _key("tokenizer.ggml.add_bos_token", _BOOL) + b"\0",
        _text("tokenizer.chat_template", CHAT_TEMPLATE),
    ]
    tensors = _tensors([n for n in range(words.size) if not words.is_plain(n)], words.size)
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
        file.write(b"".join(metadata))
        offset = 0
        for name, shape, data in tensors:
            file.write(_string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape))
            file.write(struct.pack("<IQ", 0, offset))
            offset += _padded(len(data))
        file.write(bytes(_padded(file.tell()) - file.tell()))
        for _, _, data in tensors:
            file.write(data + bytes(_padded(len(data)) - len(data)))


def _tensors(mute: list[int], vocab: int) -> list[tuple[str, tuple[int, ...], bytes]]:
    """Name, shape (columns first, as GGUF counts) and float32 data of each tensor."""
    kv = _KV_HEADS * _HEAD
    shapes = {"token_embd": (_WIDTH, vocab), "output": (_WIDTH, vocab), "output_norm": (_WIDTH,)}
    for layer in range(_LAYERS):
        block = f"blk.{layer}."
        shapes |= {
            block + "attn_norm": (_WIDTH,),
            block + "attn_q": (_WIDTH, _WIDTH),
            block + "attn_k": (_WIDTH, kv),
            block + "attn_v": (_WIDTH, kv),
            block + "attn_output": (_WIDTH, _WIDTH),
            block + "ffn_norm": (_WIDTH,),
            block + "ffn_gate": (_WIDTH, _FEED),
            block + "ffn_up": (_WIDTH, _FEED),
            block + "ffn_down": (_FEED, _WIDTH),
        }
    tensors = []
    for name, shape in shapes.items():
        if len(shape) == 1:
            data = struct.pack("<f", 1.0) * shape[0]
        else:
            data = weights.f32(name, shape[0] * shape[1], -5)
        if name == "token_embd":
            data = weights.steady_embedding(data, _WIDTH, 4)
        elif name == "output":
            data = weights.muting_head(data, _WIDTH, 4, mute)
        elif name.endswith(("attn_output", "ffn_down")):
            data = weights.steady_output(data, shape[0], 4)
        tensors.append((name + ".weight", shape, data))
    return tensors


def _padded(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _key(name: str, kind: int) -> bytes:
    return _string(name) + struct.pack("<I", kind)


def _text(name: str, value: str) -> bytes:
    return _key(name, _STRING) + _string(value)


def _number(name: str, value: int) -> bytes:
    return _key(name, _U32) + struct.pack("<I", value)


def _texts(name: str, values: list[str]) -> bytes:
    head = _key(name, _ARRAY) + struct.pack("<IQ", _STRING, len(values))
    return head + b"".join(map(_string, values))


def _types(name: str, special: list[bool]) -> bytes:
    head = _key(name, _ARRAY) + struct.pack("<IQ", _I32, len(special))
    return head + b"".join(struct.pack("<i", _CONTROL if one else _NORMAL) for one in special)
