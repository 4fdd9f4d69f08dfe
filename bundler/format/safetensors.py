"""The header of a safetensors file: names, types and exact places of its tensors.

8 bytes little-endian length, a JSON object, then the tensors without gaps
(https://github.com/huggingface/safetensors#format). Nothing that it says is believed unchecked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from bundler.format.untrusted import NotAnObject, parse_object, shown

# The library's own limit (safetensors/src/tensor.rs, MAX_HEADER_SIZE).
MAX_HEADER = 100_000_000
# Headers of large shards have about 100 kB; most are had with one read.
_FIRST_READ = 256 * 1024
# A tensor takes some ten values; no shard of a real model has a tenth of these tensors.
_MAX_VALUES = 3_000_000
# Bits of an element (safetensors/src/tensor.rs, Dtype::bitsize); below 8 they are packed.
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "I16": 16, "U16": 16, "F16": 16,
    "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64, "C64": 64,
}  # fmt: skip
Read = Callable[[int, int], bytes]


@dataclass(frozen=True)
class Tensor:
    """One tensor: its type as the format names it, and its bytes."""

    name: str
    dtype: str
    size: int


class HeaderFault(ValueError):  # noqa: N818 - becomes a finding, not a failure
    """A header that contradicts itself or the file."""


def read_tensors(read: Read, size: int) -> list[Tensor]:
    """Tensors of a file.

    Args:
        read: gives bytes from an offset on, fewer at the end of the file.
        size: of the file, bytes.

    Raises:
        HeaderFault: what is wrong.
    """
    head = read(0, min(size, _FIRST_READ))
    if len(head) < 8:
        raise HeaderFault(f"has {size} bytes, too few for a header")
    length = int.from_bytes(head[:8], "little")
    if length > min(MAX_HEADER, size - 8):
        raise HeaderFault(f"states a header of {length} bytes in a file of {size}")
    text = head[8 : 8 + length]
    if len(text) < length:
        text += read(8 + len(text), length - len(text))
    if len(text) < length:
        raise HeaderFault(f"ends within its header of {length} bytes")
    return _tensors(_object(text), size - 8 - length)


def _object(text: bytes) -> dict[str, Any]:
    if not text.startswith(b"{"):
        raise HeaderFault("has a header that does not begin with {")
    try:
        header = parse_object(text, values=_MAX_VALUES, unique=True)
    except NotAnObject as cause:
        raise HeaderFault(f"its header {cause}") from cause
    notes = header.pop("__metadata__", {})
    if not isinstance(notes, dict) or not all(isinstance(note, str) for note in notes.values()):
        raise HeaderFault("__metadata__ is not made of texts")
    return header


def _tensors(header: dict[str, Any], room: int) -> list[Tensor]:
    found = [_tensor(name, entry, room) for name, entry in header.items()]
    at = 0
    for start, end, tensor in sorted(found, key=lambda item: item[:2]):
        if start != at:
            raise HeaderFault(
                f"{shown(tensor.name)}: begins at {start}, the one before ends at {at}"
            )
        at = end
    if at != room:
        raise HeaderFault(f"its tensors have {at} bytes, {room} follow the header")
    return [tensor for _, _, tensor in found]


def _tensor(name: str, entry: Any, room: int) -> tuple[int, int, Tensor]:
    label = shown(name)
    try:
        dtype, shape = entry["dtype"], entry["shape"]
        start, end = entry["data_offsets"]
    except (TypeError, KeyError, ValueError) as cause:
        raise HeaderFault(f"{label}: no dtype, shape and data_offsets") from cause
    if not all(type(number) is int and 0 <= number < 2**63 for number in (start, end)):
        raise HeaderFault(f"{label}: data_offsets are not two positive numbers")
    if end < start:
        raise HeaderFault(f"{label}: ends at {end}, before it begins at {start}")
    if end > room:
        raise HeaderFault(f"{label}: ends at {end}, after the file's {room} bytes of tensors")
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise HeaderFault(f"{label}: dtype {shown(str(dtype), 40)} is not known")
    if _count(label, shape) * _BITS[dtype] != (end - start) * 8:
        raise HeaderFault(f"{label}: {dtype} {shape} does not have {end - start} bytes")
    return start, end, Tensor(name, dtype, end - start)


def _count(label: str, shape: Any) -> int:
    if not isinstance(shape, list) or len(shape) > 16:
        raise HeaderFault(f"{label}: shape is no short list")
    if not all(type(length) is int and 0 <= length < 2**48 for length in shape):
        raise HeaderFault(f"{label}: shape is not made of lengths")
    return prod(shape)
