"""One streaming pass: SHA-256 (decides trust), xxh3-128 (finds drift fast), CRC-32 (what ZIP stores).

SHA-256 comes from `cryptography`, which releases the GIL as hashlib does; package code
does not use hashlib.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import xxhash
from cryptography.hazmat.primitives import hashes

CHUNK = 1 << 20


@dataclass(frozen=True)
class Digests:
    """All that is known of a run of bytes."""

    size: int
    sha256: str
    xxh3: str
    crc32: int


class Digester:
    """Feeds several digests from one read."""

    def __init__(self) -> None:
        self._sha256 = hashes.Hash(hashes.SHA256())
        self._xxh3 = xxhash.xxh3_128()
        self._crc32 = 0
        self.size = 0

    def update(self, chunk: bytes | memoryview) -> None:
        """Add bytes."""
        self._sha256.update(chunk)
        self._xxh3.update(chunk)
        self._crc32 = zlib.crc32(chunk, self._crc32)
        self.size += len(chunk)

    def digests(self) -> Digests:
        """The result; the digester is spent."""
        return Digests(
            size=self.size,
            sha256=self._sha256.finalize().hex(),
            xxh3=self._xxh3.hexdigest(),
            crc32=self._crc32,
        )


def sha256_hex(data: bytes) -> str:
    """SHA-256 of bytes in memory, 64 hexadecimal digits."""
    digest = hashes.Hash(hashes.SHA256())
    digest.update(data)
    return digest.finalize().hex()


def digest_bytes(data: bytes) -> Digests:
    """All digests of bytes in memory."""
    digester = Digester()
    digester.update(data)
    return digester.digests()


def read_chunks(path: Path, offset: int = 0, size: int | None = None) -> Iterator[bytes]:
    """A file's bytes from `offset`, `size` of them (or to the end), in chunks of 1 MiB."""
    left = size
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        while left is None or left > 0:
            chunk = file.read(CHUNK if left is None else min(CHUNK, left))
            if not chunk:
                return
            if left is not None:
                left -= len(chunk)
            yield chunk


def digest_chunks(chunks: Iterable[bytes]) -> Digests:
    """All digests of a stream."""
    digester = Digester()
    for chunk in chunks:
        digester.update(chunk)
    return digester.digests()


def digest_file(path: Path) -> Digests:
    """All digests of a file, one pass."""
    return digest_chunks(read_chunks(path))


def xxh3_file(path: Path) -> str:
    """xxh3-128 of a file: drift, not trust."""
    quick = xxhash.xxh3_128()
    for chunk in read_chunks(path):
        quick.update(chunk)
    return quick.hexdigest()


def git_blob_sha1(path: Path) -> str:
    """The id that git gives to a file: SHA-1 over `blob <size>`, a zero byte and the content.

    The Hub states it for files outside LFS (https://git-scm.com/book/en/v2/Git-Internals-Git-Objects).
    """
    digest = hashes.Hash(hashes.SHA1())  # noqa: S303 - git's own identifier, not a trust decision
    digest.update(f"blob {path.stat().st_size}\0".encode())
    for chunk in read_chunks(path):
        digest.update(chunk)
    return digest.finalize().hex()
