"""Facts that took long to find, kept under the digest of what they were found in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bundler.domain.record import Record
from bundler.errors import FormatError, disk_errors
from bundler.format.atomic import write_atomically
from bundler.format.codec import from_bytes, to_bytes

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Recall:
    """Records in a folder. What is kept there is only a shortcut: a broken one is made anew."""

    folder: Path

    def of(self, kind: type[R], key: str, make: Callable[[], R]) -> R:
        """The record kept under `key`, else the one that `make` gives, kept from now on.

        `key` must change with whatever the record depends on: the bytes, and the version of the
        code that reads them.
        """
        known = self.find(kind, key)
        if known is not None:
            return known
        record = make()
        path = self._path(kind, key)
        with disk_errors("writing", path):
            write_atomically(path, to_bytes(record))
        return record

    def find(self, kind: type[R], key: str) -> R | None:
        """The record kept under `key`; None when there is none that can be read."""
        path = self._path(kind, key)
        try:
            return from_bytes(kind, path.read_bytes(), str(path))
        except (OSError, FormatError):
            return None

    def _path(self, kind: type[Record], key: str) -> Path:
        return self.folder / f"{kind.__name__}-{key}.json"
