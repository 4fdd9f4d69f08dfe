"""What files take on the disk, and what removing them gives back: a hard link to what stays gives nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bundler.errors import disk_errors

# stat(2): st_blocks counts these, whatever the file system's own block size.
_BLOCK = 512


@dataclass(frozen=True)
class Node:
    """A file or a symbolic link, as it lies on the disk."""

    path: Path
    inode: tuple[int, int]
    links: int
    size: int


def files_below(path: Path) -> Iterator[Node]:
    """Every file and symbolic link at or below a path; links are not followed."""
    with disk_errors("looking at", path):
        if not os.path.lexists(path):
            return
        if path.is_symlink() or not path.is_dir():
            yield _node(path)
            return
        for folder, folders, files in os.walk(path, onerror=_raise):
            yield from (_node(Path(folder, name)) for name in files)
            linked = (Path(folder, name) for name in folders)
            yield from (_node(one) for one in linked if one.is_symlink())


def _node(path: Path) -> Node:
    found = path.lstat()
    size = 0 if stat.S_ISLNK(found.st_mode) else found.st_blocks * _BLOCK
    return Node(path, (found.st_dev, found.st_ino), found.st_nlink, size)


def _raise(error: OSError) -> None:
    raise error


@dataclass
class Freed:
    """Counts what a row of removals gives back: a file's bytes come with the last of its links."""

    _taken: dict[tuple[int, int], int] = field(default_factory=dict)

    def by(self, path: Path) -> int:
        """Bytes that removing the path gives back, after those that were asked about before."""
        total = 0
        for node in files_below(path):
            taken = self._taken.get(node.inode, 0) + 1
            self._taken[node.inode] = taken
            total += node.size if taken == node.links else 0
        return total
