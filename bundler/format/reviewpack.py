"""The reviewer's pack beside a bundle: which files it has, and whether they are still what was made.

It is derived from the signed manifest and names its digest, so the manifest cannot name the pack. It has
checksums of its own instead, signed by the key that signed the bundle: who swaps a page on a stick has
to answer for a wrong signature.
"""

from __future__ import annotations

from pathlib import Path

from bundler.domain.manifest import VerifiedManifest
from bundler.domain.verdict import Damage
from bundler.errors import FormatError, disk_errors
from bundler.format import layout
from bundler.format.digests import sha256_file, sha256_hex
from bundler.format.safepath import check_path
from bundler.format.trust import digest_line
from bundler.format.untrusted import shown
from bundler.ports import Verifier

FOLDER = "review"
# `sha256sum -c review/BUNDLE` in the bundle's folder: the pack is about this very bundle.
BUNDLE = "BUNDLE"
SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
_MAX_SUMS = 4 * 2**20
_MAX_FILES = 20_000


def sums(files: dict[str, bytes]) -> bytes:
    """The text for `sha256sum -c` within the pack: every file but itself and its signature."""
    return "".join(f"{sha256_hex(files[name])}  {name}\n" for name in sorted(files)).encode()


def pack_files(folder: Path) -> list[str]:
    """Paths of the pack's files beside a bundle, relative to the bundle's folder; none without a pack."""
    pack = folder / FOLDER
    if not (pack / SUMS).is_file():
        return []
    found = (path for path in pack.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted(path.relative_to(folder).as_posix() for path in found)


def check_pack(
    folder: Path, verified: VerifiedManifest, verifier: Verifier | None
) -> tuple[list[Damage], bool]:
    """What is wrong with the pack beside a bundle, and whether it is the bundle's signer's.

    Args:
        folder: the bundle's.
        verified: its manifest.
        verifier: of the key that signed it; None when none did.

    Returns:
        Damages, none when there is no pack; and whether its checksums have a good signature.
    """
    pack = folder / FOLDER
    if not (pack / SUMS).is_file():
        return [], False
    name = f"{FOLDER}/{SUMS}"
    with disk_errors("reading", pack):
        if (pack / SUMS).stat().st_size > _MAX_SUMS:
            return [Damage(where=name, what=f"over {_MAX_SUMS} bytes")], False
        data = (pack / SUMS).read_bytes()
        signed = False
        if (pack / SIGNATURE).is_file():
            with (pack / SIGNATURE).open("rb") as file:
                signature = file.read(layout.SIGNATURE_BYTES + 1)
            signed = verifier is not None and verifier.verify(data, signature)
            if not signed:
                return [Damage(where=name, what="is not what the bundle's key signed")], False
        found = list(_faults(pack, data, verified))
    return found, signed and not found


def _faults(pack: Path, data: bytes, verified: VerifiedManifest) -> list[Damage]:
    promised = {}
    for line in data.decode("utf-8", "replace").splitlines()[:_MAX_FILES]:
        digest, _, name = line.partition("  ")
        try:
            promised[check_path(name)] = digest
        except FormatError as error:
            return [Damage(where=f"{FOLDER}/{SUMS}", what=str(error))]
    found = []
    there = {
        shown(path.relative_to(pack).as_posix(), 1024)
        for path in pack.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }
    for name in sorted((there | promised.keys()) - {SUMS, SIGNATURE}):
        where, path = f"{FOLDER}/{name}", pack / name
        if name not in promised:
            found.append(Damage(where=where, what="is not of the reviewer's pack"))
        elif not path.is_file() or path.is_symlink():
            found.append(Damage(where=where, what="not there, or no regular file"))
        elif sha256_file(path) != promised[name]:
            found.append(Damage(where=where, what="changed"))
    if not found and sha256_hex(digest_line(verified.digest)) != promised.get(BUNDLE):
        found.append(Damage(where=f"{FOLDER}/{BUNDLE}", what="is the pack of another bundle"))
    return found
