"""One pass over a file that goes into a bundle: every digest that the bundle will state.

Only the connected side needs CRC-32, which ZIP stores: it comes from zlib-ng, six times as fast as
zlib, and lets the CRC of a part follow from those of its blocks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import xxhash
from cryptography.hazmat.primitives import hashes
from zlib_ng import zlib_ng

from bundler.domain.sizes import MAX_BLOCK

# Large enough that handing it to another thread costs nothing, small enough for a core's cache.
_CHUNK = 2**20


@dataclass(frozen=True)
class BlockDigests:
    """All that is known of one block, `size` bytes."""

    size: int
    sha256: str
    xxh3: str
    crc32: int


@dataclass(frozen=True)
class Digests:
    """All that is known of a file: of the whole, and of each block of `block_size` bytes."""

    size: int
    sha256: str
    xxh3: str
    block_size: int
    blocks: tuple[BlockDigests, ...]


class _Digester:
    def __init__(self) -> None:
        self._sha256 = hashes.Hash(hashes.SHA256())
        self._xxh3 = xxhash.xxh3_128()
        self._crc32 = 0
        self._size = 0

    def update(self, chunk: memoryview) -> None:
        self._sha256.update(chunk)
        self._xxh3.update(chunk)
        self._crc32 = zlib_ng.crc32(chunk, self._crc32)
        self._size += len(chunk)

    def done(self) -> BlockDigests:
        return BlockDigests(
            self._size, self._sha256.finalize().hex(), self._xxh3.hexdigest(), self._crc32
        )


class _Whole:
    """SHA-256 and xxh3 of a whole file, on another core than its blocks'."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._sha256 = hashes.Hash(hashes.SHA256())
        self._xxh3 = xxhash.xxh3_128()
        self._pending: Future[None] | None = None

    def update(self, chunk: memoryview) -> None:
        self.wait()
        self._pending = self._pool.submit(self._both, chunk)

    def wait(self) -> None:
        if self._pending is not None:
            self._pending.result()

    def done(self) -> tuple[str, str]:
        self.wait()
        return self._sha256.finalize().hex(), self._xxh3.hexdigest()

    def _both(self, chunk: memoryview) -> None:
        self._sha256.update(chunk)
        self._xxh3.update(chunk)


def digest_file(
    path: Path, block_size: int = MAX_BLOCK, advance: Callable[[int], None] = lambda _: None
) -> Digests:
    """All digests of a file in one pass.

    Args:
        path: the file.
        block_size: bytes of a block.
        advance: told of bytes as they are done.
    """
    with path.open("rb", buffering=0) as file:
        if os.fstat(file.fileno()).st_size <= block_size:
            return _small(file, block_size, advance)
        with ThreadPoolExecutor(1) as pool:
            return _large(file, block_size, advance, pool)


def digest_bytes(data: bytes, block_size: int = MAX_BLOCK) -> Digests:
    """All digests of bytes in memory."""
    whole = _Digester()
    whole.update(memoryview(data))
    found = whole.done()
    blocks = []
    for start in range(0, max(len(data), 1), block_size):
        block = _Digester()
        block.update(memoryview(data)[start : start + block_size])
        blocks.append(block.done())
    return Digests(found.size, found.sha256, found.xxh3, block_size, tuple(blocks))


def joined_crc32(blocks: Iterable[BlockDigests]) -> int:
    """CRC-32 of blocks one after the other."""
    crc32 = 0
    for block in blocks:
        crc32 = zlib_ng.crc32_combine(crc32, block.crc32, block.size)
    return crc32


def _small(file: BinaryIO, block_size: int, advance: Callable[[int], None]) -> Digests:
    """A file of one block: the whole is the block. One that grows meanwhile is a change, see `pack`."""
    block, buffer = _Digester(), memoryview(bytearray(_CHUNK))
    while count := file.readinto(buffer):  # type: ignore[attr-defined]
        block.update(buffer[:count])
        advance(count)
    found = block.done()
    return Digests(found.size, found.sha256, found.xxh3, block_size, (found,))


def _large(
    file: BinaryIO, block_size: int, advance: Callable[[int], None], pool: ThreadPoolExecutor
) -> Digests:
    whole, block, blocks = _Whole(pool), _Digester(), []
    # Two buffers: the other core may still be at the last one.
    buffers = (memoryview(bytearray(_CHUNK)), memoryview(bytearray(_CHUNK)))
    size, turn = 0, 0
    while count := file.readinto(buffers[turn][: block_size - size % block_size]):  # type: ignore[attr-defined]
        chunk = buffers[turn][:count]
        whole.update(chunk)
        block.update(chunk)
        size += count
        advance(count)
        turn = 1 - turn
        if size % block_size == 0:
            blocks.append(block.done())
            block = _Digester()
    if size % block_size:
        blocks.append(block.done())
    sha256, xxh3 = whole.done()
    return Digests(size, sha256, xxh3, block_size, tuple(blocks))
