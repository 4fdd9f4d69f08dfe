"""Volumes -> the content store of an installation root: each block straight to its place.

Disk need is once the bundle. Sticks come in any order and in several runs: which blocks are in is
kept beside each file. Sources are only read. Nothing counts before its SHA-256 is right.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.accepting import keep_approvals, keep_revocations
from bundler.deploy.root import ORDER_FILE, Root
from bundler.deploy.sitetrust import SiteTrust
from bundler.deploy.storing import StoreSink
from bundler.deploy.trustroot import (
    KEY_FILE,
    UNSIGNED_MARK,
    check_not_older,
    keep_seen,
)
from bundler.domain.manifest import Manifest, VerifiedManifest
from bundler.domain.sizes import human
from bundler.domain.verdict import Damage
from bundler.errors import SpaceError, StateError, TrustError, disk_errors
from bundler.format import layout
from bundler.format.atomic import remove
from bundler.format.blocks import content_id
from bundler.format.codec import bytes_read
from bundler.format.places import Place, find_volumes
from bundler.format.rehearsal import instead, rehearsing
from bundler.format.sealing import VolumeKey
from bundler.format.spans import block_numbers, placed_parts
from bundler.format.volumes import scan_volumes
from bundler.ports import Progress, VolumeFormat


@dataclass(frozen=True)
class Imported:
    """The state after an import."""

    verified: VerifiedManifest
    findings: tuple[Damage, ...]
    missing_volumes: tuple[str, ...]
    places: Mapping[str, Path]

    @property
    def complete(self) -> bool:
        """Whether every file of the bundle is in the store."""
        return not self.missing_volumes and not self.findings


def import_bundle(
    folders: Sequence[Path],
    *,
    root: Root,
    trust: SiteTrust,
    form: VolumeFormat,
    progress: Progress,
    allow_downgrade: bool = False,
    key: VolumeKey | None = None,
) -> Imported:
    """Bring in what the folders hold.

    Raises:
        TrustError: the manifest is not by a trusted key, the bundle was revoked or rejected or is older
            than one before, or the folders hold different bundles.
        SpaceError: the root's disk cannot hold what is still to come.
    """
    for folder in folders:
        trust = trust.with_revocations(folder)
    opened = [
        trust.open(folder)
        for folder in folders
        if len(folders) == 1 or (folder / layout.MANIFEST).exists()
    ]
    if not opened:
        opened = [trust.open(folders[0])]
    verified = opened[0]
    if len({one.digest for one in opened}) > 1:
        raise TrustError(
            "the folders hold different bundles: "
            + ", ".join(sorted({one.bundle_id for one in opened})),
            hint="Import one bundle at a time.",
        )
    trust.check_not_rejected(folders, verified)
    source = next(folder for folder in folders if (folder / layout.MANIFEST).exists())
    present = find_volumes(verified.manifest, folders, key)
    with root.alone():
        check_not_older(root, verified, trust, allow=allow_downgrade)
        _check_base(root, verified)
        for folder in folders:
            keep_revocations(root, folder, trust)
        _keep_records(root, verified, source, trust)
        keep_approvals(root, folders, verified, trust)
        keep_seen(root, verified)
        findings = _bring_in(root, verified, present, form, progress)
        missing = missing_volumes(root, verified)
    # A damaged header loses no data: what matters is which parts are in.
    bad = tuple(finding for finding in findings if missing)
    places = {name: place.path for name, place in present.items()}
    return Imported(verified, bad, tuple(name for name in missing if name not in present), places)


def _bring_in(
    root: Root,
    verified: VerifiedManifest,
    present: dict[str, Place],
    form: VolumeFormat,
    progress: Progress,
) -> list[Damage]:
    sink = StoreSink(root, verified.manifest)
    _check_room(root, sink.bytes_missing())
    if rehearsing():
        for name in missing_volumes(root, verified):
            if name in present:
                size = sum(part.part.size for part in placed_parts(verified.manifest)[name])
                instead("write", root.store, size, f"what {name} holds")
        return []
    total = sum(volume.size for volume in verified.manifest.volumes if volume.name in present)
    with progress.task("import", total) as task, sink:
        return scan_volumes(present, verified.manifest, form, task, sink)


def _check_base(root: Root, verified: VerifiedManifest) -> None:
    """Refuse a delta before the first write when what it builds on is not here."""
    manifest = verified.manifest
    absent = [
        entry for entry in manifest.held if not _holds(root.object(content_id(entry)), entry.size)
    ]
    if manifest.base is not None and absent:
        raise StateError(
            f"{verified.bundle_id} builds on {manifest.base.bundle_id}, of which"
            f" {len(absent)} files ({human(sum(entry.size for entry in absent))}) are not here,"
            f" such as {absent[0].path}",
            hint=f"Import {manifest.base.bundle_id} first, or bring a bundle that was built without"
            " --base.",
        )


def _holds(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def bytes_to_come(root: Root, manifest: Manifest) -> int:
    """Bytes of files that an import would still write."""
    return sum(
        entry.size
        for entry in manifest.payload
        if not _holds(root.object(content_id(entry)), entry.size)
    )


def missing_volumes(root: Root, verified: VerifiedManifest) -> tuple[str, ...]:
    """Volumes with blocks of files that are not in the store yet."""
    sink = StoreSink(root, verified.manifest)
    size = verified.manifest.block_size
    lacking = {
        name
        for name, parts in placed_parts(verified.manifest).items()
        if any(sink.lacks(p.entry, i) for p in parts for i in block_numbers(p, size))
    }
    # A file with all its blocks in but no name yet: the next import gives it one.
    lacking |= {entry.parts[-1].volume for entry in sink.unnamed() if entry.parts}
    return tuple(v.name for v in verified.manifest.volumes if v.name in lacking)


def _keep_records(root: Root, verified: VerifiedManifest, source: Path, trust: SiteTrust) -> None:
    """Copy manifest, signature and key: what `install` trusts later.

    A bundle that came in under the `unsigned` policy becomes a signed one when it comes again with a
    signature by a trusted key; the other way round it stays signed.
    """
    folder = root.bundle(verified.bundle_id)
    known = (folder / layout.MANIFEST).is_file()
    if known and not ((folder / UNSIGNED_MARK).exists() and verified.signed):
        return
    if verified.signed:
        signer = next(key for key in trust.keys if key.key_id == verified.key_id)
        root.write(folder / KEY_FILE, signer.verifier.pem)
        with disk_errors("reading", source / layout.SIGNATURE):
            signature = (source / layout.SIGNATURE).read_bytes()
        root.write(folder / layout.SIGNATURE, signature)
        with disk_errors("removing", folder / UNSIGNED_MARK):
            remove(folder / UNSIGNED_MARK)
    else:
        root.write(folder / UNSIGNED_MARK, b"imported under the explicit unsigned policy\n")
    if not known:
        root.write(folder / ORDER_FILE, root.next_order())
        # The bytes that were verified, not the medium's second answer.
        root.write(folder / layout.MANIFEST, bytes_read(verified.manifest))


def _check_room(root: Root, need: int) -> None:
    # In a rehearsal the root may not be there yet.
    place = next(one for one in (root.path, *root.path.parents) if one.is_dir())
    free = shutil.disk_usage(place).free
    if free < need:
        raise SpaceError(
            f"{root.path}: {human(free)} free, the import still needs {human(need)}",
            hint="Free space, or give another --root.",
        )
