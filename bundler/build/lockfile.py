"""The lock on disk: lock.json, and beside it the engine's closure for pip, pip-sync and uv."""

from __future__ import annotations

from pathlib import Path

from bundler.build.resolve import spec_digest
from bundler.domain.lock import Lock
from bundler.domain.spec import BundleSpec
from bundler.errors import FileAccessError, disk_errors
from bundler.format.atomic import write_atomically
from bundler.format.codec import parse_lock, to_bytes
from bundler.format.requirements import addressed_requirements_text


def default_lock(spec: Path, *, engine_only: bool = False) -> Path:
    """Where a spec's lock lies when nobody says otherwise; one for the engine alone has its own."""
    return spec.with_suffix(".engine.lock.json" if engine_only else ".lock.json")


def requirements_file(lock: Path) -> Path:
    """The requirements file beside a lock: `x.lock.json` -> `x.lock.requirements.txt`."""
    return lock.with_suffix(".requirements.txt")


def read_lock(path: Path, spec: BundleSpec, *, engine_only: bool = False) -> Lock | None:
    """The lock that belongs to the spec; None when there is none or the spec has changed since.

    Raises:
        FormatError: the file is not a lock.
    """
    lock = last_lock(path)
    if lock is None or lock.engine_only != engine_only:
        return None
    return lock if lock.spec_sha256 == spec_digest(spec) else None


def last_lock(path: Path) -> Lock | None:
    """The lock that lies there, of whatever spec; None when there is none.

    Raises:
        FormatError: the file is not a lock.
    """
    if not path.is_file():
        return None
    with disk_errors("reading", path):
        return parse_lock(path.read_bytes(), str(path))


def write_lock(path: Path, lock: Lock) -> None:
    """Write both files, each atomically; lock.json, which counts, last."""
    requirements = requirements_file(path)
    for place in (requirements, path):
        if place.is_dir():
            raise FileAccessError(f"{place}: is a folder", hint="Give another --lock.")
    with disk_errors("writing", requirements):
        write_atomically(requirements, addressed_requirements_text(lock.engine_wheels))
    with disk_errors("writing", path):
        write_atomically(path, to_bytes(lock))
