"""Files written past the page cache, and where that cannot be."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from bundler.format import diskfile
from bundler.format.diskfile import ALIGNMENT, CHUNK, DiskFile, aligned_buffer


def write(path: Path, size: int) -> bytes:
    data = os.urandom(size)
    file = DiskFile(path)
    file.allocate(size)
    for at in range(0, size, CHUNK):
        piece = data[at : at + CHUNK]
        buffer = aligned_buffer()
        buffer[: len(piece)] = piece
        file.write(buffer[: len(piece)], at)
    file.sync()
    file.close()
    return data


@pytest.mark.parametrize("size", [0, 1, ALIGNMENT - 1, ALIGNMENT, 3 * CHUNK, 2 * CHUNK + 4097])
def test_what_is_written_is_there(tmp_path: Path, size: int) -> None:
    data = write(tmp_path / "f", size)
    assert (tmp_path / "f").read_bytes() == data


@pytest.mark.parametrize("refused", ["open", "write"])
def test_a_file_system_without_direct_writes_is_written_through_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    real_open, real_write = os.open, os.pwrite
    direct: set[int] = set()

    def opens(path: Any, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_DIRECT and refused == "open":
            raise OSError(errno.EINVAL, "Invalid argument")
        handle = real_open(path, flags, mode)
        if flags & os.O_DIRECT:
            direct.add(handle)
        return handle

    def writes(handle: int, data: Any, at: int) -> int:
        if handle in direct:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real_write(handle, data, at)

    monkeypatch.setattr(diskfile.os, "open", opens)
    if refused == "write":
        monkeypatch.setattr(diskfile.os, "pwrite", writes)
    data = write(tmp_path / "f", 2 * CHUNK + 100)
    assert (tmp_path / "f").read_bytes() == data


def test_a_full_disk_is_not_taken_for_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(diskfile.os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "f", CHUNK)


def test_what_is_kept_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a" * 10_000)
    file = DiskFile(path, keep=True)
    buffer = aligned_buffer()
    buffer[:4096] = b"b" * 4096
    file.write(buffer[:4096], 4096)
    file.close()
    assert path.read_bytes() == b"a" * 4096 + b"b" * 4096 + b"a" * (10_000 - 8192)
