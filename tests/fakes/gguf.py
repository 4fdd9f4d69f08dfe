"""A GGUF file of an exact size: true headers, one tensor of noise."""

from __future__ import annotations

import random
import struct

_I8, _ALIGN = 24, 32
_U32, _STRING = 4, 8


def gguf_bytes(size: int, seed: int = 7) -> bytes:
    """`size` bytes, a multiple of the alignment."""
    texts = {"general.architecture": "llama", "tokenizer.ggml.model": "gpt2",
             "tokenizer.chat_template": "{{ messages }}"}  # fmt: skip
    numbers = {
        "llama.block_count": 2,
        "llama.context_length": 4096,
        "llama.embedding_length": 64,
        "llama.attention.head_count": 2,
        "llama.attention.head_count_kv": 1,
    }
    body = b"".join(_text(key) + struct.pack("<I", _STRING) + _text(v) for key, v in texts.items())
    body += b"".join(_text(key) + struct.pack("<II", _U32, v) for key, v in numbers.items())
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(texts) + len(numbers)) + body
    name = _text("token_embd.weight") + struct.pack("<I", 1)
    start = -(-(len(head) + len(name) + 8 + 4 + 8) // _ALIGN) * _ALIGN
    count = size - start
    info = name + struct.pack("<QIQ", count, _I8, 0)
    data = random.Random(seed).randbytes(count)
    return (head + info).ljust(start, b"\0") + data


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()
