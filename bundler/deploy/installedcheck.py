"""Is an installed release still what its bundle says? Every file of it, by SHA-256.

Files of the bundle are compared with the signed manifest; what came out of wheels with the RECORD inside
the stored wheel, which the manifest vouches for too. What the installer generated (programs in bin, the
environment itself) is known only from lists that were written here: they find a change, and no one who
changes the lists as well. A Python that the bundle carried is compared with its archive. Bytecode is made and made anew by Python and is not looked at.
"""

from __future__ import annotations

import base64
import csv
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bundler.deploy.diskuse import files_below
from bundler.deploy.interpreter import carried_runtime, runtime_digests
from bundler.deploy.root import RELEASE_FILE, Root
from bundler.deploy.variants import with_steps
from bundler.domain.facts import ReleaseRecord
from bundler.domain.manifest import Entry, VerifiedManifest
from bundler.domain.variants import bundle_of, same_settings
from bundler.errors import IntegrityError, disk_errors
from bundler.format.blocks import content_id
from bundler.format.digests import sha256_file, sha256_hex
from bundler.format.drift import drifted_entries
from bundler.format.wheelzip import DAMAGE, open_wheel
from bundler.format.workers import in_parallel
from bundler.ports import Progress, Task

_WORKERS = min((os.cpu_count() or 1) + 1, 8)
_MAX_RECORD = 64 * 2**20
# Removed when they are installed.
_WHEELS = "wheels/"
# Written by the running engine and by Python.
_OWN = ("cache", RELEASE_FILE)
# uv's, and empty.
_LOCK = ".lock"


def digests_below(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder; of a link, where it points."""
    with disk_errors("reading", folder):
        return {
            node.path.relative_to(folder).as_posix(): _digest(node.path)
            for node in files_below(folder)
        }


def _digest(path: Path) -> str:
    return f"link:{path.readlink()}" if path.is_symlink() else sha256_file(path)


@dataclass(frozen=True)
class InstalledCheck:
    """What was found below a release; names are relative to it."""

    bundle_id: str
    """Id of the release."""
    files: int
    bytes: int
    changed: tuple[str, ...]
    missing: tuple[str, ...]
    strangers: tuple[str, ...]

    def raise_if_bad(self) -> None:
        """Raise what the findings mean.

        Raises:
            IntegrityError: anything is changed, missing or of unknown origin; everything is named.
        """
        lines = [f"{name}: changed" for name in self.changed]
        lines += [f"{name}: missing" for name in self.missing]
        lines += [f"{name}: no wheel and no bundle brought it" for name in self.strangers]
        if lines:
            more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
            raise IntegrityError(
                f"{self.bundle_id}: {lines[0]}{more}",
                hint=f"Make it anew from the store: airbundle install {bundle_of(self.bundle_id)} --again",
                details=lines if len(lines) > 1 else (),
            )


@dataclass
class _Known:
    """For each file of the environment the digests that it may have; None: it has no fixed content."""

    digests: dict[Path, set[str] | None] = field(default_factory=dict)

    def add(self, path: Path, digest: str | None) -> None:
        """One more; where two wheels bring a file, either is right."""
        known = self.digests.setdefault(path, set() if digest else None)
        if known is not None and digest:
            known.add(digest)


def check_installed(
    root: Root, verified: VerifiedManifest, record: ReleaseRecord, progress: Progress
) -> InstalledCheck:
    """Compare a release with its bundle.

    Raises:
        IntegrityError: the release says that it is of another bundle, or a stored wheel is not what it
            was, so that nothing can be said about what came out of it.
    """
    manifest, folder = verified.manifest, root.release(verified.bundle_id)
    if record.manifest_sha256 != verified.digest:
        raise IntegrityError(f"{folder / RELEASE_FILE}: names another bundle than its folder")
    steps = record.variant.steps if record.variant else ()
    if not same_settings(with_steps(manifest.services, steps), record.services):
        raise IntegrityError(
            f"{folder / RELEASE_FILE}: its services are not those of the signed bundle",
            hint=f"Make it anew from the store: airbundle install {verified.bundle_id} --again",
        )
    placed = {
        entry.path: folder / entry.path
        for entry in manifest.payload
        if not entry.path.startswith(_WHEELS)
    }
    wheels = _engine_wheels(root, verified)
    stored = {entry.path: root.object(content_id(entry)) for entry in wheels}
    total = sum(e.size for e in manifest.payload if e.path in placed or e.path in stored)
    with progress.task("check release", total) as task:
        bad_wheels = drifted_entries(manifest, stored, task, by_sha256=True)
        bad = drifted_entries(manifest, placed, task, by_sha256=True)
    if bad_wheels:
        raise IntegrityError(
            f"{root.path}: stored wheels changed since the import:"
            f" {', '.join(entry.path for entry in bad_wheels[:3])}",
            hint="Import the bundle again; only these files are read.",
        )
    venv = folder / "venv"
    known = _known_files(venv, stored.values(), record)
    present = {node.path: node.size for node in files_below(folder)}
    runtime = carried_runtime(verified)
    if runtime is not None and runtime not in bad:
        home = root.runtime(runtime.sha256)
        for name, digest in runtime_digests(placed[runtime.path]).items():
            known.add(home / name, digest)
        present |= {node.path: node.size for node in files_below(home)}
    wrong = _wrong_files(known, venv, present, progress)
    own = {folder / name for name in _OWN}
    return InstalledCheck(
        bundle_id=record.release_id,
        files=len(placed) + len(known.digests),
        bytes=sum(entry.size for entry in manifest.payload if entry.path in placed)
        + sum(present.get(path, 0) for path in known.digests),
        changed=(
            *(entry.path for entry in bad if placed[entry.path] in present),
            *(_name(path, folder) for path in wrong),
        ),
        missing=(
            *(entry.path for entry in bad if placed[entry.path] not in present),
            *(_name(path, folder) for path in sorted(known.digests) if path not in present),
        ),
        strangers=tuple(
            _name(path, folder)
            for path in sorted(present)
            if path not in known.digests
            and path not in set(placed.values())
            and not own & {path, *path.parents}
            and not _is_bytecode(path)
            and not (path == venv / _LOCK and present[path] == 0)
        ),
    )


def _name(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _is_bytecode(path: Path) -> bool:
    return path.suffix == ".pyc" and path.parent.name == "__pycache__"


def _engine_wheels(root: Root, verified: VerifiedManifest) -> list[Entry]:
    """The wheels that the engine's requirements file pins by hash; every one of them is installed."""
    manifest = verified.manifest
    listed = next(e for e in manifest.payload if e.path == manifest.engine.requirements)
    path = root.object(content_id(listed))
    if not path.is_file() or sha256_file(path) != listed.sha256:
        raise IntegrityError(
            f"{root.path}: the stored {listed.path} changed since the import",
            hint="Import the bundle again; only this file is read.",
        )
    text = path.read_text(errors="replace")
    return [e for e in manifest.payload if e.kind == "wheel" and f"sha256:{e.sha256}" in text]


def _known_files(venv: Path, wheels: Iterable[Path], record: ReleaseRecord) -> _Known:
    known = _Known()
    site = next(iter(sorted(venv.glob("lib/python*/site-packages"))), venv / "site-packages")
    dists = []
    for wheel in wheels:
        for path, digest in _wheel_files(wheel):
            if path.endswith(".dist-info/RECORD"):
                dists.append(path)
                known.add(site / path, None)
            elif (target := _target(path, site, venv)) and not _is_bytecode(target):
                known.add(target, digest)
    trusted = set(known.digests)
    for dist in dists:
        for path, digest in _installed_files(site / dist):
            target = Path(os.path.normpath(site / path))
            if target not in trusted and not _is_bytecode(target):
                known.add(target, digest or None)
    for path, digest in record.environment.items():
        if venv / path not in trusted:
            known.digests[venv / path] = {digest}
    return known


def _target(path: str, site: Path, venv: Path) -> Path | None:
    """Where a wheel's file goes; None for those that the installer rewrites or places by its own rules.

    https://packaging.python.org/en/latest/specifications/binary-distribution-format/
    """
    top, _, rest = path.partition("/")
    if not top.endswith(".data"):
        return Path(os.path.normpath(site / path))
    scheme, _, rest = rest.partition("/")
    place = {"purelib": site, "platlib": site, "data": venv}.get(scheme)
    return Path(os.path.normpath(place / rest)) if place else None


def _wheel_files(wheel: Path) -> Iterator[tuple[str, str]]:
    """Path and SHA-256 of each file inside, by the wheel's RECORD."""
    with disk_errors("reading", wheel):
        try:
            with open_wheel(wheel) as archive:
                inside = next(
                    info
                    for info in archive.infolist()
                    if info.filename.count("/") == 1 and info.filename.endswith(".dist-info/RECORD")
                )
                listed = dict(_rows(archive.open(inside).read(_MAX_RECORD).decode()))
                for info in archive.infolist():
                    if not info.is_dir():
                        # What a careless wheel does not list is installed all the same.
                        digest = listed.get(info.filename) or sha256_hex(archive.read(info))
                        yield info.filename, digest
        except (*DAMAGE, StopIteration) as cause:
            raise IntegrityError(f"{wheel}: is no wheel with a RECORD") from cause


def _installed_files(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_file():
        with disk_errors("reading", path):
            yield from _rows(path.read_text(encoding="utf-8", errors="replace"))


def _rows(text: str) -> Iterator[tuple[str, str]]:
    for row in csv.reader(text.splitlines()):
        if row and row[0]:
            yield row[0], _hexadecimal(row[1] if len(row) > 1 else "")


def _hexadecimal(digest: str) -> str:
    """`sha256=` and URL-safe base64 without its padding; other algorithms count as none."""
    algorithm, _, value = digest.partition("=")
    if algorithm != "sha256":
        return ""
    try:
        return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex()
    except ValueError:
        return "broken"


def _wrong_files(
    known: _Known, venv: Path, present: dict[Path, int], progress: Progress
) -> list[Path]:
    jobs = [
        (path, digests)
        for path, digests in sorted(known.digests.items())
        if digests is not None and path in present
    ]

    def check(job: tuple[Path, set[str]], task: Task) -> Path | None:
        path, digests = job
        try:
            right = _digest(path) in digests
        except OSError:
            right = False
        task.advance(present[path])
        return None if right else path

    total = sum(present[path] for path, _ in jobs)
    with progress.task("check environment", total) as shown:
        found = in_parallel(_WORKERS, check, jobs, shown)
    return [path for path in found if path is not None]
