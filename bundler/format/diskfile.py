"""Large files written past the page cache, where the file system can do that.

Bytes that are written once and not read again soon gain nothing from the cache: they push everything
else out of it, cost a copy, and hide the disk's speed until the sync. With O_DIRECT a write ends when
the disk has the bytes, so the workers of other blocks go on meanwhile. Measured on 6 GB: import in
3.7 s in place of 8.3 s, where `cp` and `sync` take 5.6 s (`scripts/bench_volumes.py`).
"""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

# Offsets, lengths and addresses of direct writes are multiples of the device's block: at most 4 KiB.
ALIGNMENT = 4096
CHUNK = 2**20
_REFUSALS = {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP}


def aligned_buffer(size: int = CHUNK) -> memoryview:
    """Zeroed memory that starts at a page, as direct writes need it."""
    return memoryview(mmap.mmap(-1, size))


class DiskFile:
    """A file that is written at aligned offsets, from aligned buffers, by one thread or several.

    Only the last write to the file may have an odd length.
    """

    def __init__(self, path: Path, *, keep: bool = False) -> None:
        """Open or create; what is there is kept, or cut to nothing.

        Raises:
            OSError: it cannot be opened.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (0 if keep else os.O_TRUNC)
        self._plain = os.open(path, flags, 0o644)
        self._direct: int | None = None
        try:
            self._direct = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_DIRECT)
        except OSError as cause:
            if cause.errno not in _REFUSALS:
                os.close(self._plain)
                raise

    def allocate(self, size: int) -> None:
        """Take the room at once, so that a full disk shows before the work.

        Raises:
            OSError: there is no room.
        """
        if size:
            os.posix_fallocate(self._plain, 0, size)

    def write(self, data: memoryview, at: int) -> None:
        """Write all of the bytes.

        Raises:
            OSError: the disk is full, or fails.
        """
        even = len(data) - len(data) % ALIGNMENT if self._direct is not None else 0
        done = self._write_direct(data[:even], at) if even else 0
        while done < len(data):
            done += os.pwrite(self._plain, data[done:], at + done)

    def sync(self) -> None:
        """Bring everything to the disk.

        Raises:
            OSError: the disk fails.
        """
        os.fsync(self._plain)

    def close(self) -> None:
        """Give the handles back."""
        os.close(self._plain)
        if self._direct is not None:
            os.close(self._direct)

    def _write_direct(self, data: memoryview, at: int) -> int:
        """Bytes written; fewer where direct writing turns out not to work here."""
        done = 0
        while done < len(data) and self._direct is not None:
            try:
                count = os.pwrite(self._direct, data[done:], at + done)
            except OSError as cause:
                if cause.errno not in _REFUSALS:
                    raise
                break
            done += count
            if count % ALIGNMENT:
                break
        return done
