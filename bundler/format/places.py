"""Where volumes lie, open or sealed, and how their bytes are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bundler.domain.manifest import Manifest
from bundler.errors import KeyFileError, disk_errors
from bundler.format.sealing import (
    SUFFIX,
    SealedReader,
    VolumeKey,
    WrongSealError,
    opened_size,
    sealed_size,
)


@dataclass(frozen=True)
class Place:
    """A volume's file; with a key when it is sealed."""

    path: Path
    name: str
    key: VolumeKey | None = None

    def size(self) -> int:
        """Bytes of the volume that are there.

        Raises:
            OSError: it cannot be looked at.
        """
        size = self.path.stat().st_size
        return size if self.key is None else opened_size(size)

    def stored_size(self, size: int) -> int:
        """Bytes of the file when `size` bytes of volume are in it."""
        return size if self.key is None else sealed_size(size)

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Read from it.

        Raises:
            FileAccessError: the operating system refuses.
        """
        with disk_errors("opening", self.path):
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield VolumeReader(handle, self)
        finally:
            os.close(handle)


class Reader(Protocol):
    """Bytes of one volume. One thread at a time."""

    def read_into(self, buffer: memoryview, at: int) -> int:
        """As `os.preadv` with one buffer: fewer bytes than asked are no end, none are.

        Raises:
            OSError: the medium fails.
            WrongSealError: what is there does not open.
        """


def read_padded(reader: Reader, at: int, length: int) -> bytes:
    """A run of the volume; behind its end there are zeros.

    Raises:
        OSError, WrongSealError: as `Reader.read_into`.
    """
    found = bytearray(length)
    view, done = memoryview(found), 0
    while done < length:
        count = reader.read_into(view[done:], at + done)
        if not count:
            break
        done += count
    return bytes(found)


class VolumeReader:
    """Of a file, open or sealed."""

    def __init__(self, handle: int, place: Place) -> None:
        self._handle = handle
        self._place = place
        self._sealed: SealedReader | None = None

    def read_into(self, buffer: memoryview, at: int) -> int:
        """See `Reader`."""
        if self._place.key is None:
            return os.preadv(self._handle, [buffer], at)
        if self._sealed is None:
            self._sealed = SealedReader(self._handle, self._place.key, self._place.name)
        found = self._sealed.read(len(buffer), at)
        buffer[: len(found)] = found
        return len(found)


def find_volumes(
    manifest: Manifest, folders: Sequence[Path], key: VolumeKey | None = None
) -> dict[str, Place]:
    """Where the volumes lie; of several the first of the right size, open ones before sealed ones.

    Raises:
        KeyFileError: some are sealed, and there is no key or another's.
    """
    found: dict[str, Place] = {}
    for volume in manifest.volumes:
        places = [Place(folder / volume.name, volume.name) for folder in folders]
        places += [
            Place(folder / (volume.name + SUFFIX), volume.name, key or _NO_KEY)
            for folder in folders
        ]
        there = [place for place in places if place.path.is_file()]
        if there:
            whole = [
                place
                for place in there
                if place.path.stat().st_size == place.stored_size(volume.size)
            ]
            found[volume.name] = (whole or there)[0]
    sealed = [place for place in found.values() if place.key is not None]
    sizes = {volume.name: volume.size for volume in manifest.volumes}
    whole = [p for p in sealed if p.path.stat().st_size == p.stored_size(sizes[p.name])]
    if sealed and key is None:
        raise KeyFileError(
            f"{sealed[0].path}: {len(sealed)} volume(s) are sealed, and no key was given",
            hint="Give --volume-key FILE; it travels by another way than the bundle.",
        )
    if key is not None and whole and not any(_opens(place) for place in whole):
        raise KeyFileError(
            f"{whole[0].path}: the key {key.key_id} opens none of the {len(whole)} sealed volume(s): it is"
            " another's, or their beginnings are damaged",
            hint="Give the --volume-key that `airbundle copy --seal` was given.",
        )
    return found


def unsealed_name(name: str) -> str:
    """The volume's name of a file that may be sealed."""
    return name.removesuffix(SUFFIX)


_NO_KEY = VolumeKey(b"")


def _opens(place: Place) -> bool:
    try:
        with place.open() as reader:
            return reader.read_into(memoryview(bytearray(1)), 0) == 1
    except (OSError, WrongSealError):
        return False
