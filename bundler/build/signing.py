"""Signing a bundle after it was built: with a key file, or by a device that only gets a short line.

The hand-off is two files and no protocol: what is to be signed goes out, the 64 raw bytes come back. So
it works with a hardware module, a smart card, a key service or a computer in a safe.
"""

from __future__ import annotations

from pathlib import Path

from bundler.domain.manifest import Manifest
from bundler.domain.record import Record
from bundler.domain.trust import Approval, Revocations, Rotation
from bundler.errors import StateError, TrustError, disk_errors
from bundler.format import layout
from bundler.format.atomic import write_atomically
from bundler.format.checksums import checksums
from bundler.format.codec import parse_manifest
from bundler.format.digests import sha256_hex
from bundler.format.statements import signature_path, statement_files
from bundler.format.trust import digest_line, read_small
from bundler.ports import Signer, Verifier

HAND_OFF = f"{layout.MANIFEST}.sha256"
_STATEMENTS: tuple[type[Record], ...] = (Approval, Rotation, Revocations)


def sign_bundle(folder: Path, signer: Signer, *, replace: bool = False) -> str:
    """Sign a bundle that lies there, and give its manifest's SHA-256.

    Raises:
        StateError: it is signed already, and `replace` is not given.
        FormatError, MissingVolumeError: it is no bundle that this version reads.
    """
    data, manifest = _manifest(folder)
    signature = signer.sign(data)
    _put(folder, data, manifest, signature, replace=replace)
    return sha256_hex(data)


def write_hand_off(folder: Path, out: Path | None = None) -> Path:
    """Write the line that a signing device signs: what `sha256sum manifest.json` prints.

    Raises:
        FormatError, MissingVolumeError: it is no bundle that this version reads.
    """
    data, _ = _manifest(folder)
    path = out or folder.absolute().with_name(f"{folder.absolute().name}.{HAND_OFF}")
    with disk_errors("writing", path):
        write_atomically(path, digest_line(sha256_hex(data)))
    return path


def attach_signature(
    folder: Path, signature: bytes, verifier: Verifier, *, replace: bool = False
) -> str:
    """Put a signature that came back to what it signs: the manifest, or an unsigned statement.

    Returns:
        The name of the file that it signs.

    Raises:
        TrustError: it signs nothing that lies here.
        StateError: another signature is there, and `replace` is not given.
    """
    if len(signature) != layout.SIGNATURE_BYTES:
        raise TrustError(
            f"the signature has {len(signature)} bytes, Ed25519 has {layout.SIGNATURE_BYTES}",
            hint="Have the device write the raw signature: no PEM, no base64.",
        )
    for kind in _STATEMENTS:
        for key_id, path in statement_files(folder, kind):
            said = read_small(path, layout.MAX_STATEMENT_BYTES)
            if key_id == verifier.key_id and verifier.verify(said, signature):
                with disk_errors("writing", signature_path(path)):
                    write_atomically(signature_path(path), signature)
                return path.name
    data, manifest = _manifest(folder)
    if not any(verifier.verify(form, signature) for form in (data, digest_line(sha256_hex(data)))):
        raise TrustError(
            f"{folder}: the signature is not one of key {verifier.key_id} over this bundle's manifest,"
            f" its {HAND_OFF} line, or a statement here",
            hint="Sign the file that `airbundle sign --digest-only` wrote, unchanged, with that key.",
        )
    _put(folder, data, manifest, signature, replace=replace)
    return layout.MANIFEST


def _manifest(folder: Path) -> tuple[bytes, Manifest]:
    data = read_small(folder / layout.MANIFEST, layout.MAX_MANIFEST_BYTES)
    return data, parse_manifest(data)


def _put(folder: Path, data: bytes, manifest: Manifest, signature: bytes, *, replace: bool) -> None:
    path = folder / layout.SIGNATURE
    before = read_small(path, layout.MAX_MANIFEST_BYTES) if path.is_file() else signature
    if before != signature and not replace:
        raise StateError(
            f"{path}: the bundle is signed already",
            hint="--replace puts the new signature in its place.",
        )
    sums = checksums(manifest, sha256_hex(data), sha256_hex(signature))
    for name, content in ((layout.SIGNATURE, signature), (layout.CHECKSUMS, sums)):
        with disk_errors("writing", folder / name):
            write_atomically(folder / name, content)
