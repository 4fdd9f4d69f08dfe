"""GGUF headers."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.format.gguf import TYPES, Gguf, read_gguf
from bundler.format.safetensors import HeaderFault
from tests.fakes.gguf import gguf_bytes


def read(data: bytes) -> Gguf:
    return read_gguf(lambda at, length: data[at : at + length], len(data))


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def head(tensors: int, keys: int, body: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + body


def test_a_real_file_is_read_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path)
    data = path.read_bytes()
    found = read(data)
    assert found.metadata["general.architecture"] == "llama"
    assert found.metadata["llama.block_count"] == 2
    assert found.metadata["tokenizer.ggml.tokens"] is None
    assert {tensor.dtype for tensor in found.tensors} == {"F32"}
    # All the file but its header is tensors and their padding.
    rest = sum(tensor.size for tensor in found.tensors)
    assert len(data) - 64 * 1024 < rest < len(data)


def info(name: str, count: int, kind: int, offset: int = 0) -> bytes:
    return text(name) + struct.pack("<IQIQ", 1, count, kind, offset)


# Bits of a weight as llama.cpp publishes them (tools/quantize/README.md and the comments of ggml-common.h).
BITS = {
    "F32": 32, "F16": 16, "BF16": 16, "F64": 64, "I8": 8, "I16": 16, "I32": 32, "I64": 64,
    "Q4_0": 4.5, "Q4_1": 5, "Q5_0": 5.5, "Q5_1": 6, "Q8_0": 8.5, "Q8_1": 9, "Q2_K": 2.625,
    "Q3_K": 3.4375, "Q4_K": 4.5, "Q5_K": 5.5, "Q6_K": 6.5625, "Q8_K": 9.125, "IQ1_S": 1.5625,
    "IQ1_M": 1.75, "IQ2_XXS": 2.0625, "IQ2_XS": 2.3125, "IQ2_S": 2.5625, "IQ3_XXS": 3.0625,
    "IQ3_S": 3.4375, "IQ4_NL": 4.5, "IQ4_XS": 4.25, "TQ1_0": 1.6875, "TQ2_0": 2.0625,
    "MXFP4": 4.25, "NVFP4": 4.5, "Q1_0": 1.125,
}  # fmt: skip


def test_every_type_has_its_published_bits() -> None:
    assert {name: width * 8 / block for name, block, width in TYPES.values()} == BITS


def test_of_a_vocabulary_only_the_length_is_kept() -> None:
    words = struct.pack("<IIQ", 9, 8, 3) + text("a") + text("b") + text("c")
    found = read(head(0, 2, text("tokens") + words + text("one") + struct.pack("<IB", 0, 7)))
    assert found.metadata == {"tokens": None, "one": 7}
    assert found.lengths == {"tokens": 3, "one": 0}


def test_a_long_array_of_numbers_is_stepped_over_without_reading_it() -> None:
    scores = text("scores") + struct.pack("<IIQ", 9, 6, 4_000_000) + bytes(16_000_000)
    data = head(0, 2, scores + text("one") + struct.pack("<IB", 0, 7))
    asked = 0

    def counted(at: int, length: int) -> bytes:
        nonlocal asked
        asked += length
        return data[at : at + length]

    assert read_gguf(counted, len(data)).metadata == {"scores": None, "one": 7}
    assert asked < 3 * 2**20


def test_sizes_come_from_the_type() -> None:
    infos = b""
    for at, (name, kind, count, _size) in enumerate(
        [("a", 8, 64, 68), ("b", 12, 256, 144), ("c", 39, 32, 17)]
    ):
        infos += text(name) + struct.pack("<IQIQ", 1, count, kind, at * 256)
    data = head(3, 0, infos).ljust(4096, b"\0")
    assert [(t.dtype, t.size) for t in read(data).tensors] == [
        ("Q8_0", 68), ("Q4_K", 144), ("MXFP4", 17),
    ]  # fmt: skip


def test_a_type_newer_than_the_table_is_measured_by_its_neighbour() -> None:
    infos = text("a") + struct.pack("<IQIQ", 1, 64, 99, 0)
    infos += text("b") + struct.pack("<IQIQ", 1, 4, 0, 320)
    data = head(2, 0, infos).ljust(2048, b"\0")
    assert [(t.dtype, t.size) for t in read(data).tensors] == [("type 99", 320), ("F32", 16)]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "header goes past"),
        (b"PK\x03\x04".ljust(100, b"\0"), "no GGUF"),
        (b"GGUF" + struct.pack(">I", 3).ljust(100, b"\0"), "big-endian"),
        (b"GGUF" + struct.pack(">IQQ", 2, 0, 0), "big-endian"),
        (head(0, 0, version=1), "version 1"),
        (head(0, 0, version=0), "version 0"),
        (head(10**9, 0), "states 1000000000 entries"),
        (head(0, 1, struct.pack("<Q", 2**60)), "text of"),
        (head(0, 1, text("k") + struct.pack("<I", 77)), "value type 77"),
        (head(0, 1, text("k") + struct.pack("<IIQ", 9, 4, 2**50)), "goes past"),
        (head(0, 1, text("k") + struct.pack("<IIQ", 9, 9, 2)), "of type 9"),
        (head(0, 1, text("k") + struct.pack("<IIQ", 9, 8, 2**40)), "array of"),
        (head(0, 2, (text("k") + struct.pack("<II", 4, 1)) * 2), "twice"),
        (head(1, 0, text("t") + struct.pack("<I", 99)), "99 dimensions"),
        (head(1, 0, text("t" * 65)), "text of 65 bytes"),
        (head(1, 0, info("t", 64, 31)), "type 31, which llama.cpp no longer reads"),
        (head(1, 0, info("t", 100, 12)), "rows of 100, Q4_K has blocks of 256"),
        (head(1, 0, info("t", 1, 0, 4)), "not on 32 bytes"),
        (head(2, 0, info("t", 16, 0) + info("t", 16, 0, 64)).ljust(999, b"\0"), "names t twice"),
        (head(2, 0, info("t", 16, 0) + info("u", 16, 0, 32)).ljust(999, b"\0"), "within another"),
        (head(0, 1, text("general.alignment") + struct.pack("<II", 4, 24)), "alignment 24"),
        (head(1, 0, text("t") + struct.pack("<IQIQ", 1, 2**40, 0, 0)), "ends at"),
        (head(0, 1, text("general.alignment") + struct.pack("<II", 4, 0)), "alignment"),
    ],
)
def test_a_lie_is_named(data: bytes, words: str) -> None:
    with pytest.raises(HeaderFault, match=words):
        read(data)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=64), st.integers(0, 700))
def test_no_bytes_end_in_anything_but_a_fault(noise: bytes, at: int) -> None:
    good = gguf_bytes(2048)
    for data in (b"GGUF" + noise, good[:at], good[:at] + noise + good[at + len(noise) :]):
        with contextlib.suppress(HeaderFault):
            read(data)
