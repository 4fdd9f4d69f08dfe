"""Parts of files -> files of the store: each part to its place, each file named when it is proved.

    <root>/store/partial/<sha256>         the file on its way, preallocated
    <root>/store/partial/<sha256>.parts   which of its parts are in, one line each
    <root>/store/ab/<sha256>              the file, once all of it has this SHA-256

The list lives and dies with the partial file, so that it never speaks of bytes that are gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from bundler.deploy.root import Root
from bundler.domain.manifest import Entry, Manifest
from bundler.domain.verdict import Damage
from bundler.errors import disk_errors
from bundler.format.digests import digest_file
from bundler.format.volumes import PlacedPart


class StoreSink:
    """Takes parts, in any order and over many runs.

    `stored` are the SHA-256 of the manifest's files that are in the store; `findings` tells of files
    whose parts are all right while the whole is not what the manifest names.
    """

    def __init__(self, root: Root, manifest: Manifest) -> None:
        self._root = root
        self._entries: dict[str, Entry] = {entry.sha256: entry for entry in manifest.entries}
        self.stored = {sha for sha, entry in self._entries.items() if self._is_stored(entry)}
        self.findings: list[Damage] = []
        self._done = {sha: self._read_list(sha) for sha in self._entries if sha not in self.stored}
        self._open: tuple[str, BinaryIO] | None = None

    def __enter__(self) -> StoreSink:
        """Finish what a kill interrupted between a file's last part and its name."""
        for sha in [sha for sha in self._done if self._is_full(sha)]:
            self._name(self._entries[sha])
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()

    def bytes_missing(self) -> int:
        """Bytes that the root's disk must still take."""
        total = 0
        for sha, entry in self._entries.items():
            if sha not in self.stored:
                partial = self._root.partial(sha)
                allocated = partial.stat().st_blocks * 512 if partial.is_file() else 0
                total += max(0, entry.size - allocated)
        return total

    def wants(self, placed: PlacedPart) -> bool:
        """Whether the part is still needed."""
        sha = placed.entry.sha256
        return (
            sha not in self.stored and _line(placed.start, placed.part.size) not in self._done[sha]
        )

    def wanted(self, parts: Iterable[PlacedPart]) -> bool:
        """Whether any of the parts is still needed."""
        return any(map(self.wants, parts))

    def write(self, placed: PlacedPart, at: int, chunk: bytes) -> None:
        """Put bytes in their place."""
        path = self._root.partial(placed.entry.sha256)
        with disk_errors("writing", path):
            os.pwrite(self._file(placed.entry).fileno(), chunk, at)

    def good(self, placed: PlacedPart) -> None:
        """Remember the part; when it was the file's last, prove the file and give it its name."""
        sha = placed.entry.sha256
        path = self._root.partial(sha)
        line = _line(placed.start, placed.part.size)
        with disk_errors("writing", path):
            os.fdatasync(self._file(placed.entry).fileno())
            with _list_of(path).open("a") as done:
                done.write(line + "\n")
        self._done[sha].add(line)
        if self._is_full(sha):
            self._name(placed.entry)

    def _name(self, entry: Entry) -> None:
        """Move a full file to the store, if it is what its name will say."""
        self._close()
        path, final = self._root.partial(entry.sha256), self._root.object(entry.sha256)
        self._root.make(final.parent)
        with disk_errors("writing", final):
            # The only part of a whole file has been proved under this very digest.
            found = entry.sha256 if len(entry.parts) == 1 else digest_file(path).sha256
            if found != entry.sha256:
                path.unlink()
                _list_of(path).unlink(missing_ok=True)
                self._done[entry.sha256] = set()
                what = "its parts are right, but the manifest names another SHA-256 for the whole"
                self.findings.append(
                    Damage(where=entry.path, what=what, expected=entry.sha256, found=found)
                )
                return
            path.chmod(0o444)
            path.replace(final)
            _list_of(path).unlink(missing_ok=True)
        self.stored.add(entry.sha256)

    def _is_stored(self, entry: Entry) -> bool:
        path = self._root.object(entry.sha256)
        return path.is_file() and path.stat().st_size == entry.size

    def _is_full(self, sha: str) -> bool:
        start = 0
        for part in self._entries[sha].parts:
            if _line(start, part.size) not in self._done[sha]:
                return False
            start += part.size
        return self._root.partial(sha).is_file()

    def _file(self, entry: Entry) -> BinaryIO:
        if self._open is not None and self._open[0] == entry.sha256:
            return self._open[1]
        self._close()
        path = self._root.partial(entry.sha256)
        self._root.make(path.parent)
        fresh = not path.exists()
        if fresh:
            _list_of(path).unlink(missing_ok=True)
            self._done[entry.sha256] = set()
        file = path.open("w+b" if fresh else "r+b", buffering=0)
        self._open = (entry.sha256, file)
        if fresh and entry.size:
            os.posix_fallocate(file.fileno(), 0, entry.size)
        return file

    def _close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _read_list(self, sha: str) -> set[str]:
        path = self._root.partial(sha)
        if not path.is_file() or not _list_of(path).is_file():
            return set()
        with disk_errors("reading", _list_of(path)):
            return set(_list_of(path).read_text(errors="replace").splitlines())


def _list_of(partial: Path) -> Path:
    return partial.with_name(partial.name + ".parts")


def _line(start: int, size: int) -> str:
    return f"{start}+{size}"
