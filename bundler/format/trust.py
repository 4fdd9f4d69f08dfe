"""Signature first, parse second: the only way to a `VerifiedManifest`.

The signature is Ed25519, 64 raw bytes in a file beside the manifest: over the exact bytes of the
manifest or, from a signing device that takes no long messages, over the line that `sha256sum` prints
of it. No manifest begins like that line, so neither can pose as the other.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
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
    return read_signed(folder, verifiers, allow_unsigned=allow_unsigned).parse()


@dataclass(frozen=True)
class SignedManifest:
    """A manifest's bytes and who vouches for them; nothing in them was looked at yet."""

    data: bytes
    digest: str
    key_id: str | None

    def parse(self) -> VerifiedManifest:
        """Believe the signer.

        Raises:
            FormatError: not a manifest that this version reads.
        """
        manifest = parse_manifest(self.data)
        return VerifiedManifest(manifest=manifest, digest=self.digest, key_id=self.key_id)


def read_signed(
    folder: Path, verifiers: Sequence[Verifier], *, allow_unsigned: bool = False
) -> SignedManifest:
    """As `open_manifest`, but without a look into the manifest."""
    data = read_small(folder / layout.MANIFEST, layout.MAX_MANIFEST_BYTES)
    digest = sha256_hex(data)
    path = folder / layout.SIGNATURE
    if not path.exists():
        if allow_unsigned:
            return SignedManifest(data, digest, None)
        raise TrustError(
            f"{path}: there is no signature",
            hint="Ask the supplier for the signature file. An unsigned bundle needs --unsigned.",
        )
    signature = read_small(path, layout.MAX_MANIFEST_BYTES)
    if len(signature) != layout.SIGNATURE_BYTES:
        raise TrustError(
            f"{path}: {len(signature)} bytes, a signature has {layout.SIGNATURE_BYTES}"
        )
    for verifier in verifiers:
        if any(verifier.verify(form, signature) for form in (data, digest_line(digest))):
            return SignedManifest(data, digest, verifier.key_id)
    if not verifiers:
        raise TrustError(
            f"{path}: no public key was given to check it with", hint="Give --key PUBLIC.pem."
        )
    keys = ", ".join(verifier.key_id for verifier in verifiers)
    raise TrustError(
        f"{folder / layout.MANIFEST}: the signature in {layout.SIGNATURE} is not by key {keys}:"
        " the manifest or the signature was changed, or the key is another's"
    )


def digest_line(digest: str) -> bytes:
    """What `sha256sum manifest.json` prints: the short form of what is signed."""
    return f"{digest}  {layout.MANIFEST}\n".encode()


def read_small(path: Path, limit: int) -> bytes:
    """A small file of a bundle.

    Raises:
        StateError, MissingVolumeError: it is not there.
        FormatError: it is larger than the limit.
    """
    if not path.parent.is_dir():
        raise StateError(f"{path.parent}: no such folder", hint="Name the folder with the bundle.")
    if os.path.lexists(path) and not path.is_file():
        raise FormatError(f"{path}: is no regular file", hint="Copy the bundle again.")
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
