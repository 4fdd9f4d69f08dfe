"""SHA-256 decides trust, xxh3-128 finds drift fast.

SHA-256 comes from `cryptography`, which releases the GIL as hashlib does; package code
does not use hashlib.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import xxhash
from cryptography.hazmat.primitives import hashes

CHUNK = 1 << 20
# What is mapped counts as this process's memory.
_WINDOW = 16 * 2**20
_POPULATE_READ = 22  # not named by the mmap module yet


def sha256_hex(data: bytes) -> str:
    """SHA-256 of bytes in memory, 64 hexadecimal digits."""
    digest = hashes.Hash(hashes.SHA256())
    digest.update(data)
    return digest.finalize().hex()


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


def sha256_file(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashes.Hash(hashes.SHA256())
    for chunk in read_chunks(path):
        digest.update(chunk)
    return digest.finalize().hex()


def sha256_stream(file: IO[bytes]) -> str:
    """SHA-256 of what is still to be read."""
    digest = hashes.Hash(hashes.SHA256())
    while chunk := file.read(CHUNK):
        digest.update(chunk)
    return digest.finalize().hex()


def sha256_run(path: Path, offset: int, size: int) -> str:
    """SHA-256 of a run of a file's bytes; of fewer bytes where the file is shorter."""
    digest = hashes.Hash(hashes.SHA256())
    for chunk in read_chunks(path, offset, size):
        digest.update(chunk)
    return digest.finalize().hex()


def xxh3_run(path: Path, offset: int, size: int) -> str:
    """xxh3-128 of a run of a file's bytes: drift, not trust. Of fewer bytes where the file is shorter.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb", buffering=0) as file:
        if size >= CHUNK and offset % mmap.ALLOCATIONGRANULARITY == 0:
            mapped = _mapped_xxh3(file.fileno(), offset, size)
            if mapped is not None:
                return mapped
        quick = xxhash.xxh3_128()
        # Half a MiB stays in a core's own cache between the kernel's copy and the hash.
        buffer = memoryview(bytearray(min(size, CHUNK // 2) or 1))
        end = offset + size
        while offset < end:
            count = os.preadv(file.fileno(), [buffer[: end - offset]], offset)
            if not count:
                break
            quick.update(buffer[:count])
            offset += count
        return quick.hexdigest()


def _mapped_xxh3(handle: int, offset: int, size: int) -> str | None:
    """The digest without the kernel's copy, which would cost more than the hash; None: not here.

    Every page is brought in first, in a call that reports a failing disk or a short file as an error
    (madvise(2), Linux 5.14): touching such a page would end the process with SIGBUS.
    """
    quick = xxhash.xxh3_128()
    try:
        for at in range(offset, offset + size, _WINDOW):
            length = min(_WINDOW, offset + size - at)
            with mmap.mmap(handle, length, mmap.MAP_SHARED, mmap.PROT_READ, offset=at) as pages:
                pages.madvise(_POPULATE_READ)
                quick.update(pages)
    except (OSError, ValueError):
        return None
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
