"""A bundle's manifest as it lies there. Nothing of it is trusted; `verify` is what trusts."""

from __future__ import annotations

from pathlib import Path

from bundler.domain.manifest import Manifest
from bundler.errors import FormatError, MissingVolumeError, disk_errors
from bundler.format import layout
from bundler.format.codec import parse_manifest


def read_manifest(place: Path) -> tuple[Manifest, bytes]:
    """The manifest of a bundle's folder, or a manifest file by itself, and its exact bytes.

    Raises:
        MissingVolumeError: there is none.
        FormatError: it is not a manifest that this version reads.
    """
    path = place / layout.MANIFEST if place.is_dir() else place
    if not path.is_file():
        raise MissingVolumeError(
            f"{path}: not there", hint="Name a folder with a finished bundle, or its manifest.json."
        )
    with disk_errors("reading", path):
        if path.stat().st_size > layout.MAX_MANIFEST_BYTES:
            raise FormatError(f"{path}: over {layout.MAX_MANIFEST_BYTES} bytes")
        data = path.read_bytes()
    return parse_manifest(data), data
