"""One volume onto a medium: written past the page cache, synced, and read back from the medium itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path

from cryptography.hazmat.primitives import hashes

from bundler.domain.manifest import Manifest, VolumeEntry
from bundler.domain.shipping import ShippedFile
from bundler.errors import IntegrityError, disk_errors
from bundler.format.atomic import write_atomically
from bundler.format.digests import sha256_file
from bundler.format.diskfile import CHUNK, DiskFile, aligned_buffer
from bundler.format.places import Place
from bundler.format.rehearsal import rehearsing
from bundler.format.sealing import seal
from bundler.format.volumes import scan_volumes
from bundler.format.workers import Idle
from bundler.ports import Task, VolumeFormat


@dataclass(frozen=True)
class MediumWriter:
    """Writes volumes of the bundle in `source`; a copy that fails leaves nothing on the medium."""

    source: Path
    manifest: Manifest
    form: VolumeFormat

    def carry(self, volume: VolumeEntry, place: Place, task: Task, *, there: bool) -> ShippedFile:
        """Bring one volume to its place; what is `there` is only read back when it is right.

        Raises:
            IntegrityError: the source is damaged, or the medium does not give back what was written.
            SpaceError, FileAccessError: of the medium.
        """
        size = place.stored_size(volume.size)
        if there:
            task.advance(volume.size)
            if not self._faults(place, volume, task):
                sha256 = volume.sha256 if place.key is None else sha256_file(place.path)
                return ShippedFile(name=place.path.name, size=size, sha256=sha256)
        partial = partial_of(place.path)
        try:
            sha256 = self._write(volume, replace(place, path=partial), task)
            if faults := self._faults(replace(place, path=partial), volume, task):
                # Whose fault it is decides what to do: the source is looked at only now.
                source = Place(self.source / volume.name, volume.name)
                here = self._faults(source, volume, Idle())
                raise IntegrityError(here[0]) if here else unfaithful(place.path, faults[0])
        except BaseException:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise
        with disk_errors("renaming", place.path):
            partial.replace(place.path)
            _sync_folder(place.path.parent)
        return ShippedFile(name=place.path.name, size=size, sha256=sha256)

    def _write(self, volume: VolumeEntry, place: Place, task: Task) -> str:
        """Gives the SHA-256 of what was written."""
        digest = hashes.Hash(hashes.SHA256()) if place.key else None
        with disk_errors("writing", place.path):
            file = DiskFile(place.path)
            try:
                buffer, at = aligned_buffer(), 0
                with (self.source / volume.name).open("rb", buffering=0) as original:
                    pieces = _pieces(original, buffer, task)
                    if place.key is None or digest is None:
                        for piece in pieces:
                            file.write(piece, at)
                            at += len(piece)
                    else:
                        out = aligned_buffer()
                        for sealed in seal(place.key, volume.name, volume.size, pieces):
                            digest.update(sealed)
                            out[: len(sealed)] = sealed
                            file.write(out[: len(sealed)], at)
                            at += len(sealed)
                file.sync()
            finally:
                file.close()
        return digest.finalize().hex() if digest else volume.sha256

    def _faults(self, place: Place, volume: VolumeEntry, task: Task) -> list[str]:
        """What is wrong with a volume on its medium, read past the page cache."""
        _forget(place.path)
        found = scan_volumes({volume.name: place}, self.manifest, self.form, task)
        return [damage.line() for damage in found]


def put_small(target: Path, data: bytes) -> None:
    """Write a small file to a medium, and read it back.

    Raises:
        IntegrityError: the medium gives back something else.
        SpaceError, FileAccessError: of the medium.
    """
    with disk_errors("writing", target):
        write_atomically(target, data)
        if rehearsing():
            return
        _forget(target)
        same = target.read_bytes() == data
    if not same:
        raise unfaithful(target)


def partial_of(path: Path) -> Path:
    """What a file is called until it is whole."""
    return path.with_name(f"{path.name}.partial")


def unfaithful(path: Path, detail: str = "") -> IntegrityError:
    """The error for a medium that loses data."""
    more = f" ({detail})" if detail else ""
    return IntegrityError(
        f"{path}: the medium does not give back what was written to it{more}",
        hint="Use another medium; this one loses data.",
    )


def _pieces(file: FileIO, buffer: memoryview, task: Task) -> Iterator[memoryview]:
    """A file's bytes in full buffers: direct writes need even lengths."""
    at = 0
    while True:
        filled = 0
        while filled < CHUNK:
            count = os.preadv(file.fileno(), [buffer[filled:]], at + filled)
            if not count:
                break
            filled += count
        if not filled:
            return
        task.advance(filled)
        at += filled
        yield buffer[:filled]


def _forget(path: Path) -> None:
    """Drop a file from the page cache, so that reading it asks the medium."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems cannot sync a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
