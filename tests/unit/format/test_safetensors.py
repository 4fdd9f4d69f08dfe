"""The safetensors header: true ones are read, lying ones are named, none is believed."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.format.safetensors import HeaderFault, read_tensors


def shard(header: dict[str, Any] | bytes, data: int) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"\0" * data


def tensor(dtype: str, shape: list[int], start: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def read(data: bytes) -> list[tuple[str, str, int]]:
    found = read_tensors(lambda at, length: data[at : at + length], len(data))
    return [(item.name, item.dtype, item.size) for item in found]


GOOD = {
    "__metadata__": {"format": "pt"},
    "a": tensor("BF16", [2, 3], 0, 12),
    "b": tensor("F8_E4M3", [5], 12, 17),
    "c": tensor("F4", [2, 3], 17, 20),
    "d": tensor("F32", [], 20, 24),
    "e": tensor("I8", [0, 7], 24, 24),
    "f": tensor("F6_E2M3", [4], 24, 27),
    "g": tensor("F8_E8M0", [1], 27, 28),
}


def test_names_types_and_bytes() -> None:
    assert read(shard(GOOD, 28)) == [
        ("a", "BF16", 12), ("b", "F8_E4M3", 5), ("c", "F4", 3), ("d", "F32", 4), ("e", "I8", 0),
        ("f", "F6_E2M3", 3), ("g", "F8_E8M0", 1),
    ]  # fmt: skip


def test_a_header_longer_than_the_first_read_is_read_whole() -> None:
    header = {f"layer.{n:06d}.weight": tensor("U8", [1], n, n + 1) for n in range(6000)}
    reads: list[tuple[int, int]] = []
    data = shard(header, 6000)

    def counted(at: int, length: int) -> bytes:
        reads.append((at, length))
        return data[at : at + length]

    assert len(read_tensors(counted, len(data))) == 6000
    assert len(reads) == 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "too few"),
        (b"\xff" * 8, "states a header"),
        ((10**9).to_bytes(8, "little") + b"{}", "states a header"),
        (shard(GOOD, 27), "after the file"),
        (shard(GOOD, 29), "29 follow"),
        (shard(b"not json", 0), "begin with {"),
        (shard(b' {"a": 1}', 0), "begin with {"),
        (shard(b'{"a": ', 0), "not JSON"),
        (shard(b'{"a": "\xff"}', 0), "not JSON"),
        (shard('{"a": 1}'.encode("utf-16-le"), 0), "not JSON"),
        (shard(b'{"a": ' + b"[" * 100_000, 0), "not JSON"),
        (shard(b'{"a": [' + b"1," * 3_000_000, 0), "more than 3000000 values"),
        (shard(b'{"__metadata__": {"format": 1}}', 0), "not made of texts"),
        (shard(b'{"a": {}, "a": {}}', 0), "names a twice"),
        (shard({"a": 5}, 0), "no dtype"),
        (shard({"a": tensor("BF16", [1], 2, 0)}, 2), "before it begins"),
        (shard({"a": tensor("BF16", [1], -2, 0)}, 2), "data_offsets"),
        (shard({"a": tensor("BF16", [1], 0, 2**70)}, 2), "data_offsets"),
        (shard({"a": tensor("F4", [3], 0, 2)}, 2), "does not have"),
        (shard({"a": tensor("BF16", [2], 0, 2)}, 2), "does not have"),
        (shard({"a": tensor("Q9", [1], 0, 1)}, 1), "not known"),
        (shard({"a": tensor("U8", [1], 1, 2)}, 2), "begins at 1"),
        (shard({"a": tensor("U8", [2], 0, 2), "b": tensor("U8", [2], 1, 3)}, 3), "begins at 1"),
        (shard({"a": tensor("U8", [-1], 0, 0)}, 0), "shape"),
        (shard({"a": tensor("U8", [2**60, 2**60], 0, 0)}, 0), "shape"),
        (shard({"a": {"dtype": "U8", "shape": 3, "data_offsets": [0, 0]}}, 0), "shape"),
        (shard({"a": {"dtype": ["U8"], "shape": [], "data_offsets": [0, 1]}}, 1), "not known"),
    ],
)  # fmt: skip
def test_a_lie_is_named(data: bytes, words: str) -> None:
    with pytest.raises(HeaderFault, match=words):
        read(data)


def test_a_fault_can_be_printed_whatever_the_tensor_is_called() -> None:
    name = "\x1b[2J\ud800" + "x" * 5_000_000
    with pytest.raises(HeaderFault) as caught:
        read(shard({name: tensor("Q9", [1], 0, 1)}, 1))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 400))
def test_no_bytes_end_in_anything_but_a_fault(noise: bytes, at: int) -> None:
    good = shard(GOOD, 28)
    for data in (noise, good[:at], good[:at] + noise + good[at + len(noise) :]):
        with contextlib.suppress(HeaderFault):
            read(data)
