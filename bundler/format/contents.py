"""Runs of bytes of a bundle's files, read where they lie: no byte is given out unproved.

A block is read whole, its SHA-256 is compared with the signed manifest's, and only then are bytes of it
given. So a directory at the end of a 600 MB wheel costs one block, and nothing is unpacked to a disk.
"""

from __future__ import annotations

import io
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from bundler.domain.manifest import Entry, Manifest
from bundler.errors import IntegrityError, MissingVolumeError, disk_errors
from bundler.format.digests import sha256_hex
from bundler.format.places import Place
from bundler.format.sealing import WrongSealError

_KEPT_BYTES = 192 * 2**20


class BlockSource(Protocol):
    """Gives the bytes of a block as they lie there, unproved."""

    def block(self, entry: Entry, start: int, size: int) -> bytes | None:
        """Bytes from `start` on; None when the file is not here."""


class InVolumes:
    """Blocks in the volumes of a bundle's folder."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        self._places = places

    def block(self, entry: Entry, start: int, size: int) -> bytes | None:
        """See `BlockSource`."""
        at = 0
        for part in entry.parts:
            if at <= start and start + size <= at + part.size and part.volume in self._places:
                return self._read(self._places[part.volume], part.offset + start - at, size)
            at += part.size
        return None

    def _read(self, place: Place, at: int, size: int) -> bytes:
        found = bytearray(size)
        view, done = memoryview(found), 0
        try:
            with place.open() as reader:
                while done < size and (count := reader.read_into(view[done:], at + done)):
                    done += count
        except (OSError, WrongSealError) as cause:
            raise IntegrityError(
                f"{place.path}: cannot be read: {cause}", hint="Run: airbundle verify DIR"
            ) from cause
        return bytes(view[:done])


class InStore:
    """Blocks of whole files in a store; `path_of` says where a file would lie."""

    def __init__(self, path_of: Callable[[Entry], Path | None]) -> None:
        self._path_of = path_of

    def block(self, entry: Entry, start: int, size: int) -> bytes | None:
        """See `BlockSource`."""
        path = self._path_of(entry)
        if path is None or not path.is_file():
            return None
        with disk_errors("reading", path):
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.pread(handle, size, start)
            finally:
                os.close(handle)


class Contents:
    """The files of one bundle. Not for several threads at once."""

    def __init__(self, manifest: Manifest, sources: tuple[BlockSource, ...]) -> None:
        self.manifest = manifest
        self._sources = sources
        self._kept: OrderedDict[tuple[str, int], bytes] = OrderedDict()

    def read(self, entry: Entry, at: int, length: int) -> bytes:
        """Bytes of a file; fewer only at its end.

        Raises:
            MissingVolumeError: the file's volume is not here.
            IntegrityError: the bytes are not what the manifest promises.
        """
        size = self.manifest.block_size
        end = min(at + length, entry.size)
        pieces = []
        while at < end:
            index = at // size
            block = self._block(entry, index)
            begin = at - index * size
            pieces.append(block[begin : begin + end - at])
            at += len(pieces[-1])
        return b"".join(pieces)

    def open(self, entry: Entry) -> io.BufferedReader:
        """A file to read and seek in."""
        return io.BufferedReader(_EntryFile(self, entry), 2**16)

    def _block(self, entry: Entry, index: int) -> bytes:
        key = (entry.path, index)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        size = self.manifest.block_size
        start = index * size
        wanted = min(size, entry.size - start)
        data = self._found(entry, start, wanted)
        if len(data) != wanted or sha256_hex(data) != entry.blocks[index].sha256:
            raise IntegrityError(
                f"{entry.path}: bytes {start} to {start + wanted - 1} are not what the manifest"
                " promises",
                hint="Run `airbundle verify DIR`: it names the volume to copy again.",
            )
        self._kept[key] = data
        while len(self._kept) > 1 and len(self._kept) * size > _KEPT_BYTES:
            self._kept.popitem(last=False)
        return data

    def _found(self, entry: Entry, start: int, size: int) -> bytes:
        for source in self._sources:
            data = source.block(entry, start, size)
            if data is not None:
                return data
        where = ", ".join(sorted({part.volume for part in entry.parts})) or "the base bundle"
        raise MissingVolumeError(
            f"{entry.path}: lies in {where}, which is not here",
            hint="Give the folder with all volumes; of a delta, --root ROOT with the base imported.",
        )


class _EntryFile(io.RawIOBase):
    def __init__(self, contents: Contents, entry: Entry) -> None:
        self._contents = contents
        self._entry = entry
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._entry.size}[whence]
        # As a file on a disk does it: zipfile tries a place before the start of a short archive.
        if start + offset < 0:
            raise OSError(22, "seek before the start")
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._contents.read(self._entry, self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
