"""Metadata and tensor list of a GGUF file, by reading its beginning alone.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little-endian). What
llama.cpp refuses (ggml/src/gguf.cpp) is refused here, so that it is known before the trip.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Any

from bundler.format.safetensors import HeaderFault, Tensor
from bundler.format.untrusted import shown

Read = Callable[[int, int], bytes]
_CHUNK = 1 << 20
# What no real file reaches: a vocabulary of a million tokens takes some 30 MB.
MAX_HEADER = 256 * 2**20
_MAX_COUNT = 2**17
_MAX_TEXTS = 2**23
_KEPT_ARRAY = 4096
_MAX_TEXT = 2**22
# GGML_MAX_NAME and GGML_MAX_DIMS of ggml/include/ggml.h.
_MAX_NAME, _MAX_DIMENSIONS = 64, 4
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q",
            11: "<q", 12: "<d"}  # fmt: skip
_STRING, _ARRAY = 8, 9
# ggml type -> name, elements of a block, bytes of a block (ggml/src/ggml.c, type_traits, and the blocks
# of ggml-common.h).
TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36),
    10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110), 12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292), 16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136), 24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4),
    27: ("I64", 1, 8), 28: ("F64", 1, 8), 29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66), 39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}  # fmt: skip
# Q4_2, Q4_3 and the forms that were packed for one processor (Q4_0_4_4 and the like).
_REMOVED = {4, 5, 31, 32, 33, 36, 37, 38}


# llama.cpp's llama_ftype (include/llama.h).
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS",
    23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M",
    30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE", 39: "NVFP4",
    40: "Q1_0",
}  # fmt: skip
# LLAMA_FTYPE_GUESSED: not stated by who made the file.
_GUESSED = 1024


@dataclass(frozen=True)
class Gguf:
    """What a file says of itself. Of long arrays (vocabularies) only the length is kept."""

    metadata: dict[str, Any]
    tensors: tuple[Tensor, ...]
    lengths: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Info:
    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


def read_gguf(read: Read, size: int) -> Gguf:
    """Read the beginning of a file.

    Args:
        read: gives bytes from an offset on, fewer at the end of the file.
        size: of the file, bytes.

    Raises:
        HeaderFault: what is wrong.
    """
    source = _Source(read, size)
    _check_version(source)
    tensors, keys = source.count("<Q"), source.count("<Q")
    metadata: dict[str, Any] = {}
    lengths: dict[str, int] = {}
    for _ in range(keys):
        key = source.text()
        if key in metadata:
            raise HeaderFault(f"states {shown(key)} twice")
        metadata[key] = source.value(source.scalar("<I"))
        lengths[key] = source.array
    infos = [_info(source) for _ in range(tensors)]
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not 0 < alignment <= 2**20 or alignment & (alignment - 1):
        raise HeaderFault(f"alignment {shown(str(alignment), 40)}")
    _check_places(infos, alignment)
    start = -(-source.at // alignment) * alignment
    return Gguf(metadata, tuple(_sized(infos, max(0, size - start))), lengths)


def file_type(metadata: Mapping[str, Any]) -> str:
    """How most tensors are quantized, as llama.cpp calls it; empty when it is not stated."""
    stated = metadata.get("general.file_type")
    return _FILE_TYPES.get(stated & ~_GUESSED, "") if type(stated) is int else ""


def _check_version(source: _Source) -> None:
    if source.take(4) != b"GGUF":
        raise HeaderFault("is no GGUF")
    version = source.scalar("<I")
    if version & 0xFFFF == 0 and version:
        raise HeaderFault("a big-endian GGUF; x86_64 and aarch64 read little-endian ones")
    if version not in (2, 3):
        raise HeaderFault(f"GGUF version {version}; 2 and 3 are read")


@dataclass
class _Source:
    """Reads forward in chunks; never past the file, never more than a header's worth.

    `array` is the length of the last value when it was an array, else 0.
    """

    read: Read
    size: int
    at: int = 0
    array: int = 0
    _texts: int = 0
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

    def text(self, limit: int = _MAX_TEXT) -> str:
        """A text: its length, then UTF-8."""
        length: int = self.scalar("<Q")
        if length > limit:
            raise HeaderFault(f"states a text of {length} bytes")
        return self.take(length).decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        """A value of a type; None for an array that is too long to be of use here."""
        self.array = 0
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            return self._array()
        if kind not in _SCALARS:
            raise HeaderFault(f"value type {kind}")
        return self.scalar(_SCALARS[kind])

    def _array(self) -> list[Any] | None:
        kind, length = self.scalar("<I"), self.scalar("<Q")
        self.array = length
        if kind in _SCALARS:
            form = _SCALARS[kind]
            width = struct.calcsize(form)
            if length > _KEPT_ARRAY:
                self._skip(width * length)
                return None
            return [item[0] for item in struct.iter_unpack(form, self.take(width * length))]
        self._texts += length
        if kind != _STRING or self._texts > _MAX_TEXTS:
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


def _info(source: _Source) -> _Info:
    name = source.text(_MAX_NAME)
    dimensions = source.scalar("<I")
    if dimensions > _MAX_DIMENSIONS:
        raise HeaderFault(f"{shown(name)}: {dimensions} dimensions")
    shape = tuple(source.scalar("<Q") for _ in range(dimensions))
    kind, offset = source.scalar("<I"), source.scalar("<Q")
    if kind in _REMOVED:
        raise HeaderFault(f"{shown(name)}: tensor type {kind}, which llama.cpp no longer reads")
    if kind in TYPES and shape and shape[0] % TYPES[kind][1]:
        label, block, _ = TYPES[kind]
        raise HeaderFault(
            f"{shown(name)}: rows of {shape[0]}, {label} has blocks of {block} elements"
        )
    return _Info(name, shape, kind, offset)


def _check_places(infos: list[_Info], alignment: int) -> None:
    """Names once, every tensor on the alignment, none within another."""
    names: set[str] = set()
    end = 0
    for info in sorted(infos, key=lambda info: info.offset):
        if info.name in names:
            raise HeaderFault(f"names {shown(info.name)} twice")
        names.add(info.name)
        if info.offset % alignment:
            raise HeaderFault(f"{shown(info.name)}: at {info.offset}, not on {alignment} bytes")
        if info.offset < end:
            raise HeaderFault(f"{shown(info.name)}: begins at {info.offset}, within another tensor")
        end = max(end, info.offset + _bytes(info))


def _bytes(info: _Info) -> int:
    """0 for a type that is newer than the table."""
    _, block, width = TYPES.get(info.kind, ("", 1, 0))
    return -(-prod(info.shape) // block) * width


def _sized(infos: list[_Info], room: int) -> list[Tensor]:
    """Bytes from the type; of a type that is newer than the table, from the next tensor's place."""
    offsets = sorted({info.offset for info in infos} | {room})
    following = dict(pairwise(offsets))
    found = []
    for info in infos:
        label, size = f"type {info.kind}", _bytes(info)
        if info.kind in TYPES:
            label = TYPES[info.kind][0]
        else:
            size = following.get(info.offset, room) - info.offset
        if size < 0 or info.offset + size > room:
            raise HeaderFault(
                f"{shown(info.name)}: ends at {info.offset + size}, the file has {room} bytes of"
                " tensors"
            )
        found.append(Tensor(info.name, label, size))
    return found
