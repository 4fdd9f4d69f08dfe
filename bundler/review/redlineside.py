"""The sides of a redline: a bundle that was looked into, a manifest alone, an earlier pack's inventory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bundler.domain.manifest import Manifest, VerifiedManifest
from bundler.domain.redline import RedlineSide
from bundler.domain.vulnerability import VulnerabilityCheck
from bundler.errors import FormatError, disk_errors
from bundler.format import layout
from bundler.format.codec import from_bytes
from bundler.format.digests import sha256_hex
from bundler.review.difference import settings
from bundler.review.inventory import listed
from bundler.review.packed import PackedInventory
from bundler.review.reading import read_manifest
from bundler.review.redline import Side
from bundler.review.subject import VULNERABILITIES, Subject


def side_of_bundle(subject: Subject) -> Side:
    """A bundle whose files were looked into."""
    verified = subject.verified
    return Side(
        about=_about(verified.manifest, verified.digest, "bundle", verified),
        components=subject.inventory.components,
        looked_into=True,
        settings=settings(verified.manifest),
        checked=subject.checked,
    )


def side_of_manifest(path: Path, verified: VerifiedManifest | None) -> Side:
    """A manifest by itself: names, versions, digests and settings, and nothing of what is inside.

    Args:
        path: of the manifest.
        verified: the same, where its signature lay beside it and was checked.

    Raises:
        FormatError: it is none.
        MissingVolumeError: it is not there.
    """
    if verified is None:
        manifest, data = read_manifest(path)
        digest = sha256_hex(data)
    else:
        manifest, digest = verified.manifest, verified.digest
    return Side(
        about=_about(manifest, digest, "manifest", verified),
        components=listed(manifest).components,
        looked_into=False,
        settings=settings(manifest),
    )


def side_of_inventory(path: Path) -> Side:
    """An earlier pack's `inventory.json`, with the `vulnerabilities.json` that lies beside it.

    Raises:
        FormatError: it is none.
        FileAccessError: it cannot be read.
    """
    packed = from_bytes(PackedInventory, _bounded(path), str(path))
    flaws = path.with_name(VULNERABILITIES)
    side = Side(
        about=RedlineSide(
            bundle_id=packed.bundle_id,
            manifest_sha256=packed.manifest_sha256,
            sequence=packed.sequence,
            key_id=packed.key_id,
            source="inventory",
            verified=False,
        ),
        components=packed.components,
        looked_into=True,
        settings=packed.settings,
    )
    return replace(side, checked=known_flaws(flaws)) if flaws.is_file() else side


def known_flaws(path: Path) -> VulnerabilityCheck:
    """An earlier look-up.

    Raises:
        FormatError: it is none.
        FileAccessError: it cannot be read.
    """
    return from_bytes(VulnerabilityCheck, _bounded(path), str(path))


def is_inventory(path: Path) -> bool:
    """Whether a file is an inventory rather than a manifest: by a key that every manifest has."""
    return path.is_file() and b'\n  "format_version": ' not in _bounded(path)


def _bounded(path: Path) -> bytes:
    with disk_errors("reading", path):
        if path.stat().st_size > layout.MAX_MANIFEST_BYTES:
            raise FormatError(f"{path}: over {layout.MAX_MANIFEST_BYTES} bytes")
        return path.read_bytes()


def _about(
    manifest: Manifest, digest: str, source: str, verified: VerifiedManifest | None
) -> RedlineSide:
    return RedlineSide(
        bundle_id=f"{manifest.name}-{digest[:12]}",
        manifest_sha256=digest,
        sequence=manifest.sequence,
        key_id=verified.key_id if verified else None,
        source="bundle" if source == "bundle" else "manifest",
        verified=verified is not None and verified.signed,
    )
