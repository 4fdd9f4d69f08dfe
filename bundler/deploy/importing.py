"""Volumes -> the content store of an installation root: each part straight to its place.

Disk need is once the bundle. Sticks come in any order and in several runs: which parts are in is
kept beside the manifest. Sources are only read. Nothing counts before its SHA-256 is right.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from bundler.deploy.root import Root
from bundler.domain.manifest import Entry, Manifest, VerifiedManifest
from bundler.domain.sizes import human
from bundler.domain.verdict import Finding
from bundler.errors import SpaceError, TrustError, disk_errors
from bundler.format import layout
from bundler.format.trust import open_manifest
from bundler.format.volumes import PlacedPart, placed_parts, scan_volume, volume_regions
from bundler.ports import Progress, Verifier, VolumeFormat

KEY_FILE = "key.pem"
UNSIGNED_MARK = "UNSIGNED"
_JOURNAL = "parts"


@dataclass(frozen=True)
class Imported:
    """The state after an import."""

    verified: VerifiedManifest
    findings: tuple[Finding, ...]
    missing_volumes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every file of the bundle is in the store."""
        return not self.missing_volumes and not self.findings


def import_bundle(
    folders: Sequence[Path],
    *,
    root: Root,
    verifiers: Sequence[Verifier],
    form: VolumeFormat,
    progress: Progress,
    allow_unsigned: bool = False,
) -> Imported:
    """Bring in what the folders hold.

    Raises:
        TrustError: the manifest is not by a trusted key, or the folders hold different bundles.
        SpaceError: the root's disk cannot hold what is still to come.
    """
    opened = [
        open_manifest(folder, verifiers, allow_unsigned=allow_unsigned)
        for folder in folders
        if len(folders) == 1 or (folder / layout.MANIFEST).exists()
    ]
    if not opened:
        opened = [open_manifest(folders[0], verifiers, allow_unsigned=allow_unsigned)]
    verified = opened[0]
    if len({one.digest for one in opened}) > 1:
        raise TrustError(
            "the folders hold different bundles: "
            + ", ".join(sorted({one.bundle_id for one in opened})),
            hint="Import one bundle at a time.",
        )
    source = next(folder for folder in folders if (folder / layout.MANIFEST).exists())
    _keep_records(root, verified, source, verifiers)
    sink = _StoreSink(root, verified)
    _check_room(root, sink.bytes_missing())
    findings: list[Finding] = []
    parts = placed_parts(verified.manifest)
    present = {
        volume.name: path
        for volume in verified.manifest.volumes
        for folder in folders
        if (path := folder / volume.name).is_file()
    }
    with progress.task("import", sum(p.stat().st_size for p in present.values())) as task, sink:
        for volume in verified.manifest.volumes:
            if volume.name in present and sink.wants_any(parts[volume.name]):
                regions = volume_regions(volume, parts[volume.name], form)
                path = present[volume.name]
                findings += scan_volume(path, regions, parts[volume.name], task, sink)
    # A damaged header loses no data: what matters is which parts are in.
    missing = missing_volumes(root, verified)
    bad = tuple(finding for finding in findings if missing)
    return Imported(verified, bad, tuple(name for name in missing if name not in present))


def missing_volumes(root: Root, verified: VerifiedManifest) -> tuple[str, ...]:
    """Volumes that hold parts which are not in the store yet."""
    sink = _StoreSink(root, verified)
    return tuple(
        name for name, parts in placed_parts(verified.manifest).items() if sink.wants_any(parts)
    )


def _keep_records(
    root: Root, verified: VerifiedManifest, source: Path, verifiers: Sequence[Verifier]
) -> None:
    """Copy manifest, signature and key: what `install` trusts later."""
    folder = root.bundle(verified.bundle_id)
    if (folder / layout.MANIFEST).is_file():
        return
    if verified.signed:
        signer = next(one for one in verifiers if one.key_id == verified.key_id)
        root.write(folder / KEY_FILE, signer.pem)
        root.write(folder / layout.SIGNATURE, (source / layout.SIGNATURE).read_bytes())
    else:
        root.write(folder / UNSIGNED_MARK, b"imported under the explicit unsigned policy\n")
    root.write(folder / layout.MANIFEST, (source / layout.MANIFEST).read_bytes())


def _check_room(root: Root, need: int) -> None:
    free = shutil.disk_usage(root.path).free
    if free < need:
        raise SpaceError(
            f"{root.path}: {human(free)} free, the import still needs {human(need)}",
            hint="Free space, or give another --root.",
        )


class _StoreSink:
    """Writes parts to preallocated files and remembers which are in."""

    def __init__(self, root: Root, verified: VerifiedManifest) -> None:
        self._root = root
        self._manifest: Manifest = verified.manifest
        self._journal = root.bundle(verified.bundle_id) / _JOURNAL
        self._done = self._read_journal()
        self._stored = {
            entry.path
            for entry in self._manifest.entries
            if (path := root.object(entry.sha256)).is_file() and path.stat().st_size == entry.size
        }
        self._open: tuple[str, BinaryIO] | None = None

    def __enter__(self) -> _StoreSink:
        return self

    def __exit__(self, *exc: object) -> None:
        self._close()

    def bytes_missing(self) -> int:
        """Bytes that the root's disk must still take."""
        total = 0
        for entry in {e.sha256: e for e in self._manifest.entries}.values():
            if entry.path not in self._stored:
                partial = self._root.partial(entry.sha256)
                allocated = partial.stat().st_blocks * 512 if partial.is_file() else 0
                total += max(0, entry.size - allocated)
        return total

    def wants_any(self, parts: Iterable[PlacedPart]) -> bool:
        """Whether one of the parts is still needed."""
        return any(self.wants(placed) for placed in parts)

    def wants(self, placed: PlacedPart) -> bool:
        """Whether the part is still needed."""
        if placed.entry.path in self._stored:
            return False
        return _key(placed) not in self._done

    def write(self, placed: PlacedPart, at: int, chunk: bytes) -> None:
        """Put bytes in their place."""
        path = self._root.partial(placed.entry.sha256)
        with disk_errors("writing", path):
            os.pwrite(self._file(placed.entry).fileno(), chunk, at)

    def good(self, placed: PlacedPart) -> None:
        """Remember the part; when it was the entry's last, give the file its name."""
        path = self._root.partial(placed.entry.sha256)
        with disk_errors("writing", path):
            file = self._file(placed.entry)
            os.fdatasync(file.fileno())
            with self._journal.open("a") as journal:
                journal.write(_key(placed) + "\n")
        self._done.add(_key(placed))
        start = 0
        for part in placed.entry.parts:
            if _key(PlacedPart(placed.entry, part, start)) not in self._done:
                return
            start += part.size
        self._close()
        final = self._root.object(placed.entry.sha256)
        self._root.make(final.parent)
        with disk_errors("writing", final):
            path.chmod(0o444)
            path.replace(final)
        self._stored.update(
            entry.path for entry in self._manifest.entries if entry.sha256 == placed.entry.sha256
        )

    def _file(self, entry: Entry) -> BinaryIO:
        if self._open is not None and self._open[0] == entry.sha256:
            return self._open[1]
        self._close()
        path = self._root.partial(entry.sha256)
        self._root.make(path.parent)
        fresh = not path.exists()
        file = path.open("r+b" if not fresh else "w+b", buffering=0)
        if fresh and entry.size:
            os.posix_fallocate(file.fileno(), 0, entry.size)
        self._open = (entry.sha256, file)
        return file

    def _close(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _read_journal(self) -> set[str]:
        """Parts that are in. A part counts only while the file that holds it is there."""
        if not self._journal.is_file():
            return set()
        keys = set(self._journal.read_text().split())
        return {key for key in keys if self._root.partial(key.split(":", 1)[0]).is_file()}


def _key(placed: PlacedPart) -> str:
    return f"{placed.entry.sha256}:{placed.start}:{placed.part.size}"
