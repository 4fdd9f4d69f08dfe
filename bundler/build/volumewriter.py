"""A planned volume -> its bytes on the disk, in one pass: read, compare, write, hash.

The volume's SHA-256 runs on another core, a buffer behind the writing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import xxhash
from cryptography.hazmat.primitives import hashes
from zlib_ng import zlib_ng

from bundler.build.fetch import Fetched
from bundler.build.storedamage import damaged_copy
from bundler.errors import IntegrityError, disk_errors
from bundler.format.digests import sha256_file, sha256_hex
from bundler.format.diskfile import CHUNK, DiskFile, aligned_buffer
from bundler.format.ingest import BlockDigests
from bundler.format.shards import Slice
from bundler.ports import Member, Region, Task

_BUFFERS = 4


@dataclass(frozen=True)
class Draft:
    """A planned volume: its name, members and their data. `blocks` are those of each slice."""

    name: str
    slices: tuple[Slice, ...]
    members: tuple[Member, ...]
    blocks: tuple[tuple[BlockDigests, ...], ...]
    regions: tuple[Region, ...]
    open: bool = False

    @property
    def size(self) -> int:
        """Bytes."""
        return self.regions[-1].offset + self.regions[-1].size

    @property
    def identity(self) -> str:
        """Digest of everything that decides the volume's bytes."""
        rows = zip(self.members, self.blocks, strict=True)
        text = repr([(m.name, [block.sha256 for block in blocks]) for m, blocks in rows])
        return sha256_hex(text.encode())


def kept_volume(path: Path, done: Path, draft: Draft) -> str | None:
    """The SHA-256 of a volume that an interrupted build finished, if it is the planned one."""
    if not path.is_file() or not done.is_file():
        return None
    identity, _, sha256 = done.read_text().strip().partition(" ")
    if identity != draft.identity or path.stat().st_size != draft.size:
        return None
    return sha256 if sha256_file(path) == sha256 else None


def write_volume(path: Path, draft: Draft, files: Sequence[Fetched], task: Task) -> str:
    """Write one volume durably.

    Returns:
        Its SHA-256.

    Raises:
        IntegrityError: a source is no longer what it was.
        SpaceError, FileAccessError: of the disk.
    """
    with disk_errors("writing", path):
        file = DiskFile(path)
    try:
        with ThreadPoolExecutor(1) as hasher:
            out = _Output(file, path, hasher, task)
            for region in draft.regions:
                if region.member is None:
                    out.put(region.literal or b"")
                else:
                    piece = draft.slices[region.member]
                    _copy(files[piece.file], piece.start, draft.blocks[region.member], out)
            sha256 = out.done()
        with disk_errors("writing", path):
            file.sync()
    finally:
        file.close()
    return sha256


class _Output:
    """Gathers bytes in aligned buffers; full ones are written here and hashed on another core."""

    def __init__(self, file: DiskFile, path: Path, hasher: ThreadPoolExecutor, task: Task) -> None:
        self._file = file
        self._path = path
        self._hasher = hasher
        self._task = task
        self._whole = hashes.Hash(hashes.SHA256())
        self._buffers = [aligned_buffer() for _ in range(_BUFFERS)]
        self._pending: list[Future[None] | None] = [None] * _BUFFERS
        self._turn = self._filled = self._at = 0

    def room(self) -> memoryview:
        """What is free of the buffer in use."""
        return self._buffers[self._turn][self._filled :]

    def took(self, count: int) -> None:
        """`count` bytes were put into `room`."""
        self._filled += count
        if self._filled == CHUNK:
            self._flush()

    def put(self, data: bytes) -> None:
        """Predicted bytes."""
        while data:
            room = self.room()
            count = min(len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            self.took(count)

    def done(self) -> str:
        """Write the rest; the SHA-256 of all."""
        self._flush()
        self._hasher.shutdown(wait=True)
        return self._whole.finalize().hex()

    def _flush(self) -> None:
        data = self._buffers[self._turn][: self._filled]
        self._pending[self._turn] = self._hasher.submit(self._whole.update, data)
        with disk_errors("writing", self._path):
            self._file.write(data, self._at)
        self._at += len(data)
        self._task.advance(len(data))
        self._turn, self._filled = (self._turn + 1) % _BUFFERS, 0
        pending = self._pending[self._turn]
        if pending is not None:
            pending.result()


def _copy(source: Fetched, start: int, blocks: Sequence[BlockDigests], out: _Output) -> None:
    path = source.blob.path
    with disk_errors("reading", path):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        at = start
        for block in blocks:
            quick, crc32, end = xxhash.xxh3_128(), 0, at + block.size
            while at < end:
                room = out.room()[: end - at]
                with disk_errors("reading", path):
                    count = os.preadv(handle, [room], at)
                if not count:
                    break
                quick.update(room[:count])
                crc32 = zlib_ng.crc32(room[:count], crc32)
                out.took(count)
                at += count
            if (quick.hexdigest(), crc32) != (block.xxh3, block.crc32):
                raise _changed(source)
    finally:
        os.close(handle)


def _changed(source: Fetched) -> IntegrityError:
    if source.blob.stored:
        source.blob.path.unlink(missing_ok=True)
        return damaged_copy(source.path)
    return IntegrityError(
        f"{source.path}: {source.blob.path} changed while it was packed",
        hint="Let nothing write to the source, then run the same command again.",
    )
