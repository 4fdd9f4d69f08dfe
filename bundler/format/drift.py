"""Files that were proved once, compared with the manifest again, block by block on every core.

By xxh3 at memory speed: bit rot and slips, not an attacker's work. By SHA-256: that too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bundler.domain.manifest import Entry, Manifest
from bundler.format.digests import sha256_run, xxh3_run
from bundler.format.volumes import READERS
from bundler.format.workers import in_parallel
from bundler.ports import Task


@dataclass(frozen=True)
class _Job:
    """A block to check; None: the file's size is wrong, or it is not there."""

    entry: Entry
    path: Path
    index: int | None


def drifted_entries(
    manifest: Manifest, places: Mapping[str, Path], task: Task, *, by_sha256: bool = False
) -> tuple[Entry, ...]:
    """Entries whose file is no longer what the manifest says, in order.

    Args:
        manifest: what was verified.
        places: entry path -> where the file lies; entries that are not named are not looked at.
        task: counts bytes.
        by_sha256: also find what somebody changed on purpose.
    """
    digest = sha256_run if by_sha256 else xxh3_run

    def check(job: _Job, shared: Task) -> Entry | None:
        size = manifest.block_size
        if job.index is None:
            shared.advance(job.entry.size)
            return job.entry
        start = job.index * size
        length = min(size, job.entry.size - start)
        try:
            found = digest(job.path, start, length)
        except OSError:
            found = ""
        shared.advance(length)
        block = job.entry.blocks[job.index]
        return None if found == (block.sha256 if by_sha256 else block.xxh3) else job.entry

    found = in_parallel(READERS, check, _jobs(manifest, places), task)
    paths = {entry.path for entry in found if entry}
    return tuple(entry for entry in manifest.entries if entry.path in paths)


def _jobs(manifest: Manifest, places: Mapping[str, Path]) -> Iterator[_Job]:
    for entry in manifest.entries:
        path = places.get(entry.path)
        if path is None:
            continue
        if not path.is_file() or path.stat().st_size != entry.size:
            yield _Job(entry, path, None)
        else:
            for index in range(len(entry.blocks)):
                yield _Job(entry, path, index)
