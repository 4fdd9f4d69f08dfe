"""Lock -> the bytes of every locked file, each checked before it counts.

What is in the store is not fetched again, what was half done is resumed. Models in local folders are
read where they lie.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bundler.build.enginearchive import ARCHIVE, ArchiveWheels
from bundler.build.resolve import SELF
from bundler.build.store import Blob, ContentStore
from bundler.domain.lock import Lock, LockedExtra, LockedFile, LockedModel, LockedWheel
from bundler.domain.sizes import human
from bundler.errors import FormatError, IntegrityError, ResolveError, SourceError, SpaceError
from bundler.format import layout
from bundler.format.ingest import digest_file
from bundler.format.workers import Idle, in_parallel
from bundler.ports import Downloader, ModelSource, Progress, Task

# More streams than this gained nothing on a fast line; fewer leave it idle between small files.
STREAMS = 4


@dataclass(frozen=True)
class Fetched:
    """A file that is ready to be packed."""

    path: str
    kind: str
    origin: str
    blob: Blob


@dataclass(frozen=True)
class Fetcher:
    """Everything that fetching needs."""

    store: ContentStore
    sources: Mapping[str, Callable[[], ModelSource]]
    downloader: Downloader
    progress: Progress
    base: Path
    tool_wheel: Path

    def fetch(self, lock: Lock) -> list[Fetched]:
        """Bring everything that the lock names.

        Raises:
            SourceError: something could not be had.
            IntegrityError: something is not what the lock says.
            SpaceError: the disk cannot hold it.
        """
        wheels = {wheel.filename: wheel for wheel in (*lock.engine_wheels, *lock.tool_wheels)}
        jobs = [
            *(self._wheel_job(wheel, lock) for wheel in wheels.values()),
            *(self._extra_job(extra) for extra in lock.extras),
            *(self._file_job(model, file) for model in lock.models for file in model.files),
        ]
        # Two jobs for the same bytes would write into one partial file.
        once = {job.key: job for job in reversed(jobs)}
        missing = sum(job.size for job in once.values() if job.cached() is None)
        self._check_room(missing)
        total = sum(job.size for job in jobs)
        if not missing:
            self.progress.note(f"nothing to fetch: all {human(total)} are here")
            return [job.run(Idle()) for job in jobs]
        self.progress.note(f"fetching {human(missing)} of {human(total)}")
        with self.progress.task("fetch", total) as task:
            done = in_parallel(STREAMS, _Job.run, once.values(), task)
            again = [job for job in jobs if once[job.key] is not job]
            done += in_parallel(STREAMS, _Job.run, again, task)
        found = {item.path: item for item in done}
        return [found[job.path] for job in jobs]

    def _check_room(self, missing: int) -> None:
        self.store.root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self.store.root).free
        if free < missing:
            raise SpaceError(
                f"{self.store.root}: {human(free)} free, {human(missing)} still to be fetched",
                hint="Free space, or give another --cache.",
            )

    def _wheel_job(self, wheel: LockedWheel, lock: Lock) -> _Job:
        def cached() -> Blob | None:
            if wheel.url == SELF:
                return Blob(self.tool_wheel, digest_file(self.tool_wheel))
            return self.store.get(wheel.sha256)

        def bring(task: Task) -> Blob:
            if wheel.url == ARCHIVE:
                made = ArchiveWheels(self.store, self.downloader, self.progress, self.base)
                return made.remake(lock, wheel)
            return self._download(wheel.url, wheel.filename, wheel.sha256, task)

        origin = wheel.url if wheel.url.startswith("http") else wheel.url.split(":", 1)[0]
        if wheel.url == ARCHIVE and lock.engine_archive is not None:
            # What the reviewer is told: where the bytes are from, not that a wheel was made of them.
            origin = f"{lock.engine_archive.origin} (sha256 {lock.engine_archive.sha256})"
        return _Job(
            path=layout.wheel_path(wheel.filename),
            kind="wheel",
            origin=origin,
            size=wheel.size or 0,
            key=wheel.sha256,
            cached=cached,
            bring=bring,
        )

    def _extra_job(self, extra: LockedExtra) -> _Job:
        def bring(task: Task) -> Blob:
            if extra.origin.startswith("http"):
                return self._download(extra.origin, extra.filename, extra.sha256, task)
            place = self.base / extra.origin
            return _in_place(place, extra.origin, extra.sha256, task, self.store.block_size)

        return _Job(
            path=layout.extra_path(extra.filename),
            kind="file",
            origin=extra.origin,
            size=extra.size or 0,
            key=extra.sha256,
            cached=lambda: self.store.get(extra.sha256),
            bring=bring,
        )

    def _file_job(self, model: LockedModel, file: LockedFile) -> _Job:
        what = f"{model.name}/{file.path}"

        def bring(task: Task) -> Blob:
            if model.source not in self.sources:
                raise FormatError(
                    f"lock: model {model.name} has source {model.source!r}",
                    hint="Make a new lock with --relock.",
                )
            if model.source != "hub":
                path = self.sources[model.source]().fetch(model, file, self.base, self.base, task)
                return _in_place(path, what, file.sha256, task, self.store.block_size)
            folder = self.store.partial(f"{model.origin}@{model.revision}")
            path = self.sources["hub"]().fetch(model, file, folder, self.base, task)
            return self.store.admit(path, what, sha256=file.sha256, git_sha1=file.git_sha1)

        origin = f"{model.origin}@{model.revision}" if model.revision else model.origin
        return _Job(
            path=layout.model_path(model.name, file.path),
            kind="model",
            origin=origin,
            size=file.size,
            key=file.sha256 or file.git_sha1 or what,
            cached=lambda: self.store.get(file.sha256, file.git_sha1),
            bring=bring,
        )

    def _download(self, url: str, what: str, sha256: str, task: Task) -> Blob:
        partial = self.store.partial(sha256)
        if partial.exists():
            task.advance(partial.stat().st_size)
        self.downloader.download(url, partial, task)
        return self.store.admit(partial, what, sha256=sha256)


def check_own_wheel(lock: Lock, tool_wheel: Path) -> None:
    """The lock pins airbundle's own wheel as well.

    Raises:
        ResolveError: it was made by another airbundle than this one.
    """
    own = digest_file(tool_wheel).sha256
    for wheel in lock.tool_wheels:
        if wheel.url == SELF and wheel.sha256 != own:
            raise ResolveError(
                f"{wheel.filename}: the lock was made by another airbundle",
                hint="Build with that version, or make a new lock with --relock.",
            )


@dataclass(frozen=True)
class _Job:
    path: str
    kind: str
    origin: str
    size: int
    key: str
    cached: Callable[[], Blob | None]
    bring: Callable[[Task], Blob]

    def run(self, task: Task) -> Fetched:
        blob = self.cached()
        if blob is None:
            blob = self.bring(task)
        else:
            task.advance(self.size)
        return Fetched(self.path, self.kind, self.origin, blob)


def _in_place(path: Path, what: str, sha256: str | None, task: Task, block_size: int) -> Blob:
    if not path.is_file():
        raise SourceError(f"{what}: {path}: no such file")
    digests = digest_file(path, block_size, task.advance)
    if sha256 is not None and digests.sha256 != sha256:
        raise IntegrityError(
            f"{what}: {path} changed (expected sha256 {sha256}, found {digests.sha256})",
            hint="Put the right file back, or correct the sha256 or the lock (--relock).",
        )
    return Blob(path, digests)
