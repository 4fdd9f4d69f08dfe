"""Whose fault an unreadable file is: its origin's, or that of the download store, which mends itself.

What is in the store was right when it came in, and is not hashed again for every build. So when a file cannot be
read as what it is, or two files do not fit together, the store is asked first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bundler.build.fetch import Fetched
from bundler.domain.sizes import human
from bundler.errors import FormatError, IntegrityError, ResolveError, SourceError, disk_errors
from bundler.format.ingest import digest_file
from bundler.format.workers import in_parallel
from bundler.ports import Progress, Task

_READERS = 4
# What reading a damaged file can end in; a full disk or Ctrl-C says nothing of the store.
_SUSPICIOUS = (IntegrityError, FormatError, ResolveError, SourceError)


def damaged_copy(path: str) -> IntegrityError:
    """The error for a stored file that was damaged and is removed now."""
    return IntegrityError(
        f"{path}: its copy in the download store was damaged; it was removed",
        hint="Run the same command again: it is fetched anew.",
    )


@contextmanager
def suspecting_the_store(fetched: Sequence[Fetched], progress: Progress) -> Iterator[None]:
    """When the files cannot be made sense of, hash those that come from the store.

    Raises:
        IntegrityError: some were damaged there; all of them are removed and named. Without any, the error
            stays what it was.
    """
    try:
        yield
    except _SUSPICIOUS as cause:
        stored = [item for item in fetched if item.blob.stored]
        size = sum(item.blob.digests.size for item in stored)
        progress.note(f"looking for damage in the download store ({human(size)})")
        with progress.task("check download store", size) as task:
            sound = in_parallel(_READERS, _is_sound, stored, task)
        damaged = [item for item, is_sound in zip(stored, sound, strict=True) if not is_sound]
        if not damaged:
            raise
        for item in damaged:
            with disk_errors("removing", item.blob.path):
                item.blob.path.unlink(missing_ok=True)
        raise damaged_copy(", ".join(item.path for item in damaged)) from cause


def _is_sound(item: Fetched, task: Task) -> bool:
    if not item.blob.path.is_file():
        return True
    with disk_errors("reading", item.blob.path):
        found = digest_file(item.blob.path, item.blob.digests.block_size, task.advance)
    return found.sha256 == item.blob.digests.sha256
