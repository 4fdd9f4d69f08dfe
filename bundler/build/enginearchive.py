"""The engine's archive: brought, checked by its SHA-256, and made into the wheel that the lock names.

Making it costs a minute or two and room for the unpacked archive and the wheel; it is done once for an archive, and
what was made lies in the store like a wheel of an index. Another machine makes the same bytes from the same archive.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bundler.build.archivewheel import DISTRIBUTION, MAKING, Source, canonical, write_archive_wheel
from bundler.build.recall import Recall
from bundler.build.store import Blob, ContentStore
from bundler.build.unpacking import unpack
from bundler.domain.lock import Lock, LockedExtra, LockedWheel
from bundler.domain.record import Record
from bundler.domain.sizes import human
from bundler.domain.sources import ArchiveRef
from bundler.errors import FormatError, IntegrityError, SourceError, disk_errors
from bundler.format.digests import sha256_file
from bundler.ports import Downloader, Progress, Task

ARCHIVE = "archive"
ROLE = "engine-archive"
_WORK = "archive-"


class MadeWheel(Record):
    """A wheel that lies in the store, and the bytes of the archive that it was made from."""

    wheel: LockedWheel
    archive_size: int


@dataclass(frozen=True)
class ArchiveWheels:
    """Makes the wheel of an archive, or finds the one that was made."""

    store: ContentStore
    downloader: Downloader
    progress: Progress
    base: Path

    def make(self, ref: ArchiveRef, version: str, arch: str) -> tuple[LockedWheel, LockedExtra]:
        """What the lock says of the wheel and of the archive.

        Raises:
            SourceError: the archive cannot be had, or is not Ollama's.
            IntegrityError: its SHA-256 is another than the spec says.
            HostError: it is packed with zstd, which cannot be read here.
            SpecError: the version is none.
            SpaceError, FileAccessError: of the disk.
        """
        source = Source(canonical(version), arch, ref.sha256)
        recall = Recall(self.store.root / "facts")
        key = f"{MAKING}-{arch}-{source.version}-{ref.sha256}"
        archive = LockedExtra(
            filename=ref.filename, role=ROLE, origin=ref.url or ref.path or "", sha256=ref.sha256
        )
        made = recall.find(MadeWheel, key)
        if made is None or self.store.get(made.wheel.sha256) is None:
            with self.store.held(self.progress.note):
                made = self._made(archive, source)
            recall.of(MadeWheel, key, lambda: made)
        return made.wheel, archive.model_copy(update={"size": made.archive_size})

    def remake(self, lock: Lock, wheel: LockedWheel) -> Blob:
        """The locked wheel, made again where the store has lost it or never had it. The store is held.

        Raises:
            FormatError: the lock names no archive.
            IntegrityError: other bytes came of it than the lock says.
            Else as `make`.
        """
        if lock.engine_archive is None:
            raise FormatError("the lock names no archive of the engine", hint="Use --relock.")
        source = Source(
            canonical(lock.engine_version), lock.target.arch, lock.engine_archive.sha256
        )
        made = self._made(lock.engine_archive, source).wheel
        blob = self.store.get(made.sha256)
        if made.sha256 != wheel.sha256 or blob is None:
            raise IntegrityError(
                f"{wheel.filename}: made anew from the same archive, it is not what the lock says",
                hint="The lock was made by another airbundle; make a new one with --relock.",
            )
        return blob

    def _made(self, archive: LockedExtra, source: Source) -> MadeWheel:
        """Make it, into the store."""
        with self._brought(archive) as path:
            size = path.stat().st_size
            work = self.store.root / "partial"
            with disk_errors("creating", work):
                work.mkdir(parents=True, exist_ok=True)
            # The store is held, so these are a killed build's: gigabytes.
            for left in work.glob(f"{_WORK}*"):
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=work, prefix=_WORK) as folder:
                wheel = self._wheel(path, Path(folder), source)
                name = wheel.name
                blob = self.store.admit(wheel, name)
        digests = blob.digests
        locked = LockedWheel(
            name=DISTRIBUTION,
            version=source.version,
            filename=name,
            url=ARCHIVE,
            size=digests.size,
            sha256=digests.sha256,
        )
        return MadeWheel(wheel=locked, archive_size=size)

    def _wheel(self, archive: Path, folder: Path, source: Source) -> Path:
        unpacked_into = folder / "files"
        with disk_errors("creating", unpacked_into):
            unpacked_into.mkdir()
        with self.progress.task(f"unpack {archive.name[:60]}", archive.stat().st_size) as task:
            unpacked = unpack(archive, unpacked_into, task.advance)
        total = sum(path.stat().st_size for path in unpacked.files.values())
        self.progress.note(f"making a wheel of {len(unpacked.files)} files, {human(total)}")
        with self.progress.task("make wheel", total) as task:
            wheel = write_archive_wheel(unpacked, source, folder, task.advance)
        shutil.rmtree(unpacked_into)
        return wheel

    @contextmanager
    def _brought(self, archive: LockedExtra) -> Iterator[Path]:
        """The archive, its digest checked: where it lies, or in the store, which keeps it."""
        if archive.origin.startswith(("http:", "https:")):
            blob = self.store.get(archive.sha256)
            if blob is None:
                partial = self.store.partial(archive.sha256)
                with self.progress.task(
                    f"fetch {archive.filename[:60]}", archive.size or 0
                ) as task:
                    self._resume(archive.origin, partial, task)
                blob = self.store.admit(partial, archive.filename, sha256=archive.sha256)
            yield blob.path
            return
        path = self.base / archive.origin
        with disk_errors("reading", path):
            if not path.is_file():
                raise SourceError(f"engine.archive: {path}: no such file")
            found = sha256_file(path)
        if found != archive.sha256:
            raise IntegrityError(
                f"engine.archive: {path} is not what the spec says (expected sha256 {archive.sha256},"
                f" found {found})",
                hint="Put the right file there, or correct the sha256.",
            )
        yield path

    def _resume(self, url: str, partial: Path, task: Task) -> None:
        if partial.exists():
            task.advance(partial.stat().st_size)
        self.downloader.download(url, partial, task)
