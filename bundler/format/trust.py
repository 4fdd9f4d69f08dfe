"""Signature first, parse second: the only way to a `VerifiedManifest`.

The signature is Ed25519 over the exact bytes of the manifest, 64 raw bytes in a file beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bundler.domain.manifest import VerifiedManifest
from bundler.errors import FormatError, MissingVolumeError, StateError, TrustError, disk_errors
from bundler.format import layout
from bundler.format.codec import parse_manifest
from bundler.format.digests import sha256_hex
from bundler.ports import Verifier


def open_manifest(
    folder: Path, verifiers: Sequence[Verifier], *, allow_unsigned: bool = False
) -> VerifiedManifest:
    """Read a bundle's manifest once one of the keys vouches for its bytes.

    Args:
        folder: where the manifest lies.
        verifiers: trusted public keys.
        allow_unsigned: the explicit `unsigned` policy: accept a bundle without a signature file.
            A signature that is there must still be good.

    Raises:
        StateError: the folder is no bundle, or an unfinished one.
        TrustError: no signature, or none of the keys made it.
        FormatError: signed, but not a manifest that this version reads.
    """
    data = _read(folder / layout.MANIFEST, layout.MAX_MANIFEST_BYTES)
    key_id = _signer(folder, data, verifiers, allow_unsigned=allow_unsigned)
    return VerifiedManifest(manifest=parse_manifest(data), digest=sha256_hex(data), key_id=key_id)


def _signer(
    folder: Path, data: bytes, verifiers: Sequence[Verifier], *, allow_unsigned: bool
) -> str | None:
    path = folder / layout.SIGNATURE
    if not path.exists():
        if allow_unsigned:
            return None
        raise TrustError(
            f"{path}: there is no signature",
            hint="Ask the supplier for the signature file. An unsigned bundle needs --unsigned.",
        )
    signature = _read(path, layout.MAX_MANIFEST_BYTES)
    if len(signature) != layout.SIGNATURE_BYTES:
        raise TrustError(
            f"{path}: {len(signature)} bytes, a signature has {layout.SIGNATURE_BYTES}"
        )
    for verifier in verifiers:
        if verifier.verify(data, signature):
            return verifier.key_id
    if not verifiers:
        raise TrustError(
            f"{path}: no public key was given to check it with", hint="Give --key PUBLIC.pem."
        )
    keys = ", ".join(verifier.key_id for verifier in verifiers)
    raise TrustError(
        f"{folder / layout.MANIFEST}: the signature in {layout.SIGNATURE} is not by key {keys}:"
        " the manifest or the signature was changed, or the key is another's"
    )


def _read(path: Path, limit: int) -> bytes:
    if not path.parent.is_dir():
        raise StateError(f"{path.parent}: no such folder", hint="Name the folder with the bundle.")
    if not path.is_file():
        raise MissingVolumeError(
            f"{path}: not there",
            hint="The folder is no finished bundle; copy every file of the bundle, or finish the"
            " build with the same command.",
        )
    with disk_errors("reading", path):
        size = path.stat().st_size
        if size > limit:
            raise FormatError(f"{path}: {size} bytes, over the limit of {limit}")
        return path.read_bytes()
