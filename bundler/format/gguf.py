"""Metadata and tensor list of a GGUF file, by reading its beginning alone.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little-endian).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bundler.format.safetensors import HeaderFault, Tensor

Read = Callable[[int, int], bytes]
_CHUNK = 1 << 20
# What no real file reaches: a vocabulary of a million tokens takes some 30 MB.
MAX_HEADER = 256 * 2**20
_MAX_COUNT = 2**17
_KEPT_ARRAY = 4096
_MAX_TEXT = 2**22
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
            11: "<q", 12: "<d"}  # fmt: skip
_STRING, _ARRAY = 8, 9
# ggml type -> name, elements of a block, bytes of a block (ggml/src/ggml.c, type_traits).
TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36),
    10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4),
    27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17),
}  # fmt: skip


@dataclass(frozen=True)
class Gguf:
    """What a file says of itself. Long arrays (vocabularies) are left out of `metadata`."""

    metadata: dict[str, Any]
    tensors: tuple[Tensor, ...]


def read_gguf(read: Read, size: int) -> Gguf:
    """Read the beginning of a file.

    Raises:
        HeaderFault: what is wrong.
    """
    source = _Source(read, size)
    if source.take(4) != b"GGUF":
        raise HeaderFault("is no GGUF")
    version = source.scalar("<I")
    if version not in (2, 3):
        raise HeaderFault(f"GGUF version {version}, or big-endian")
    tensors, keys = source.count("<Q"), source.count("<Q")
    metadata: dict[str, Any] = {}
    for _ in range(keys):
        key = source.text()
        if key in metadata:
            raise HeaderFault(f"states {key[:80]!r} twice")
        metadata[key] = source.value(source.scalar("<I"))
    infos = [_info(source) for _ in range(tensors)]
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not 0 < alignment <= 2**20:
        raise HeaderFault(f"alignment {alignment!r}")
    start = -(-source.at // alignment) * alignment
    return Gguf(metadata, tuple(_sized(infos, max(0, size - start))))


@dataclass
class _Source:
    """Reads forward in chunks; never past the file, never more than a header's worth."""

    read: Read
    size: int
    at: int = 0
    _chunk: bytes = b""
    _chunk_at: int = 0

    def take(self, length: int) -> bytes:
        """The next bytes."""
        end = self.at + length
        if end > min(self.size, MAX_HEADER):
            raise HeaderFault(f"its header goes past byte {min(self.size, MAX_HEADER)}")
        if end > self._chunk_at + len(self._chunk):
            self._chunk = self.read(self.at, min(max(length, _CHUNK), self.size - self.at))
            self._chunk_at = self.at
        piece = self._chunk[self.at - self._chunk_at : end - self._chunk_at]
        if len(piece) < length:
            raise HeaderFault("ends within its header")
        self.at = end
        return piece

    def scalar(self, form: str) -> Any:
        """One number."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def count(self, form: str) -> int:
        """A number of things that follow."""
        number: int = self.scalar(form)
        if number > _MAX_COUNT:
            raise HeaderFault(f"states {number} entries")
        return number

    def text(self) -> str:
        """A text: its length, then UTF-8."""
        length: int = self.scalar("<Q")
        if length > _MAX_TEXT:
            raise HeaderFault(f"states a text of {length} bytes")
        return self.take(length).decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        """A value of a type; None for an array that is too long to be of use here."""
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            return self._array()
        if kind not in _SCALARS:
            raise HeaderFault(f"value type {kind}")
        return self.scalar(_SCALARS[kind])

    def _array(self) -> list[Any] | None:
        kind, length = self.scalar("<I"), self.scalar("<Q")
        if kind in _SCALARS:
            form = _SCALARS[kind]
            width = struct.calcsize(form)
            if length > _KEPT_ARRAY:
                self._skip(width * length)
                return None
            return [item[0] for item in struct.iter_unpack(form, self.take(width * length))]
        if kind != _STRING or length > MAX_HEADER // 8:
            raise HeaderFault(f"an array of {length} of type {kind}")
        for _ in range(length):
            self._skip(self.scalar("<Q"))
        return None

    def _skip(self, length: int) -> None:
        if self.at + length > min(self.size, MAX_HEADER):
            raise HeaderFault("its header goes past the file")
        self.at += length
        if not self._chunk_at <= self.at <= self._chunk_at + len(self._chunk):
            self._chunk = b""
            self._chunk_at = self.at


def _info(source: _Source) -> tuple[str, int, int, int]:
    """Name, elements, type and offset of a tensor."""
    name, count = source.text(), 1
    dimensions = source.scalar("<I")
    if dimensions > 8:
        raise HeaderFault(f"{name[:80]}: {dimensions} dimensions")
    for _ in range(dimensions):
        count *= source.scalar("<Q")
    kind, offset = source.scalar("<I"), source.scalar("<Q")
    return name, count, kind, offset


def _sized(infos: list[tuple[str, int, int, int]], room: int) -> list[Tensor]:
    """Bytes from the type; of a type that is newer than the table, from the next tensor's place."""
    offsets = sorted({offset for *_, offset in infos} | {room})
    following = dict(pairwise(offsets))
    found = []
    for name, count, kind, offset in infos:
        if kind in TYPES:
            label, block, width = TYPES[kind]
            size = -(-count // block) * width
        else:
            label, size = f"type {kind}", following.get(offset, room) - offset
        if offset + size > room:
            raise HeaderFault(
                f"{name[:80]}: ends at {offset + size}, the file has {room} bytes of tensors"
            )
        found.append(Tensor(name, label, size))
    return found
