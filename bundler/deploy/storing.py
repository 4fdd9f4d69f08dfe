"""Blocks of files -> files of the store: each block to its place, each file named when it is proved.

    <root>/store/partial/<id>          the file on its way, preallocated
    <root>/store/partial/<id>.blocks   which of its blocks are in, one number a line
    <root>/store/ab/<id>               the file, once every block of it is right

`id` is the content id, which follows from the blocks: a file is proved by its blocks alone. The list
lives and dies with the partial file, so that it never speaks of bytes that are gone; a block gets into
it when its bytes are on the disk.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from bundler.deploy.root import Root
from bundler.domain.manifest import Entry, Manifest
from bundler.errors import disk_errors
from bundler.format.blocks import content_id
from bundler.format.diskfile import DiskFile
from bundler.format.spans import BlockSpan

# Written but not yet on the disk: what a power cut may cost.
_UNSYNCED = 256 * 2**20
# Files that stay open until they are synced; a process may have no more than 1024 handles.
_MOST_OPEN = 128
# Files are synced at once, so that the file system's journal takes many with one write.
_SYNCERS = 4


@dataclass
class _Incoming:
    """A file on its way: which blocks are on the disk, which are written, and its open file."""

    id: str
    entry: Entry
    listed: set[int] = field(default_factory=set)
    written: list[int] = field(default_factory=list)
    file: DiskFile | None = None

    @property
    def full(self) -> bool:
        return len(self.listed) == len(self.entry.blocks)


class StoreSink:
    """Takes blocks, in any order, from several threads and over many runs.

    Use it as a context; what is written by then is on the disk and listed when it ends, however it ends.
    """

    def __init__(self, root: Root, manifest: Manifest) -> None:
        self._root = root
        self._ids = {entry.path: content_id(entry) for entry in manifest.payload}
        entries = {self._ids[entry.path]: entry for entry in manifest.payload}
        self._incoming = {
            id_: _Incoming(id_, entry, self._read_list(id_, entry))
            for id_, entry in entries.items()
            if not self._is_stored(id_, entry)
        }
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_SYNCERS)
        self._syncing: list[Future[None]] = []
        self._unsynced = 0
        self._handles = 0

    def __enter__(self) -> StoreSink:
        """Finish what a kill interrupted between a file's last block, its name and its list's end."""
        for item in [item for item in self._incoming.values() if item.full]:
            self._name(item)
        for listed in self._root.partial("").glob("*.blocks"):
            if not listed.with_suffix("").exists():
                with disk_errors("removing", listed):
                    listed.unlink(missing_ok=True)
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self._sync_all()
            for future in self._syncing:
                future.result()
        finally:
            self._pool.shutdown()
            for item in self._incoming.values():
                self._close(item)

    def bytes_missing(self) -> int:
        """Bytes that the root's disk must still take."""
        total = 0
        for id_, item in self._incoming.items():
            partial = self._root.partial(id_)
            allocated = partial.stat().st_blocks * 512 if partial.is_file() else 0
            total += max(0, item.entry.size - allocated)
        return total

    def wants(self, span: BlockSpan) -> bool:
        """Whether the block is still needed."""
        return self.lacks(span.entry, span.index)

    def lacks(self, entry: Entry, index: int) -> bool:
        """Whether a block of a file is still to come."""
        item = self._incoming.get(self._ids.get(entry.path, ""))
        # Two paths may hold the same content: the first brings it.
        return item is not None and item.entry is entry and index not in item.listed

    def unnamed(self) -> list[Entry]:
        """Files that have every block but no name yet: the next import gives it to them."""
        return [item.entry for item in self._incoming.values() if item.full]

    def write(self, span: BlockSpan, at: int, chunk: memoryview) -> None:
        """Put bytes in their place."""
        item = self._item(span)
        with disk_errors("writing", self._root.partial(item.id)):
            self._open(item).write(chunk, at)

    def good(self, span: BlockSpan) -> None:
        """Remember the block; from time to time bring what was written to the disk."""
        item = self._item(span)
        if not span.size:
            self._open(item)  # an empty file is written by being there
        with self._lock:
            item.written.append(span.index)
            self._unsynced += span.size
            due = self._unsynced >= _UNSYNCED or self._handles >= _MOST_OPEN // 2
            crowded = self._handles >= _MOST_OPEN
        if due:
            self._sync_all()
        if crowded:
            # A disk that syncs slower than others read would otherwise use up the process's handles.
            for future in list(self._syncing):
                future.result()

    def _item(self, span: BlockSpan) -> _Incoming:
        return self._incoming[self._ids[span.entry.path]]

    def _sync_all(self) -> None:
        """Start syncing every file that has written blocks; hashing and reading go on meanwhile."""
        with self._lock:
            due = [(item, item.written) for item in self._incoming.values() if item.written]
            for item, _ in due:
                item.written = []
            self._unsynced = 0
            failed = [future for future in self._syncing if future.done() and future.exception()]
            self._syncing = [future for future in self._syncing if not future.done()]
            self._syncing += [self._pool.submit(self._sync, item, blocks) for item, blocks in due]
        for future in failed:
            future.result()

    def _sync(self, item: _Incoming, blocks: list[int]) -> None:
        path = self._root.partial(item.id)
        with disk_errors("writing", path):
            self._open(item).sync()
            with self._lock, _list_of(path).open("a") as listed:
                listed.write("".join(f"{index}\n" for index in blocks))
                item.listed.update(blocks)
                full = item.full
        if full:
            self._name(item)

    def _name(self, item: _Incoming) -> None:
        """Move a file that has every block to the store."""
        path, final = self._root.partial(item.id), self._root.object(item.id)
        self._close(item)
        self._root.make(final.parent)
        with disk_errors("writing", final):
            path.chmod(0o444)
            path.replace(final)
            _list_of(path).unlink(missing_ok=True)
        with self._lock:
            del self._incoming[item.id]

    def _is_stored(self, id_: str, entry: Entry) -> bool:
        path = self._root.object(id_)
        return path.is_file() and path.stat().st_size == entry.size

    def _open(self, item: _Incoming) -> DiskFile:
        with self._lock:
            if item.file is None:
                item.file = self._make(item)
            return item.file

    def _make(self, item: _Incoming) -> DiskFile:
        path = self._root.partial(item.id)
        with disk_errors("writing", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            sound = path.is_file() and path.stat().st_size == item.entry.size
            if not sound:
                _list_of(path).unlink(missing_ok=True)
                item.listed.clear()
            file = DiskFile(path, keep=sound)
            try:
                if not sound:
                    file.allocate(item.entry.size)
            except BaseException:
                file.close()
                raise
        self._handles += 1
        return file

    def _close(self, item: _Incoming) -> None:
        with self._lock:
            if item.file is not None:
                item.file.close()
                item.file = None
                self._handles -= 1

    def _read_list(self, id_: str, entry: Entry) -> set[int]:
        path = self._root.partial(id_)
        if not path.is_file() or path.stat().st_size != entry.size or not _list_of(path).is_file():
            return set()
        with disk_errors("reading", _list_of(path)):
            lines = _list_of(path).read_text(errors="replace").splitlines()
        return _numbers(lines, len(entry.blocks))


def _numbers(lines: Iterable[str], count: int) -> set[int]:
    """Block numbers; a line that a power cut left unfinished is none."""
    return {int(line) for line in lines if line.isascii() and line.isdigit() and int(line) < count}


def _list_of(partial: Path) -> Path:
    return partial.with_name(partial.name + ".blocks")
