"""Statements that keys sign: approvals, rotations, revocations; one file each, its signature beside it.

`KIND-SIGNER.json` is canonical JSON, `KIND-SIGNER.json.sig` 64 raw bytes of Ed25519 over its exact bytes:
`openssl pkeyutl -verify -rawin` checks it as it checks a manifest. SIGNER is the id of the key.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from bundler.domain.record import Record
from bundler.domain.trust import Approval, Revocations, Rotation
from bundler.errors import FileAccessError, FormatError, TrustError, disk_errors
from bundler.format import layout
from bundler.format.atomic import remove, write_atomically
from bundler.format.codec import bytes_read, from_bytes, to_bytes
from bundler.format.digests import sha256_hex
from bundler.format.rehearsal import instead, rehearsing
from bundler.format.trust import read_small
from bundler.ports import Signer, Verifier

S = TypeVar("S", Approval, Rotation, Revocations)
KINDS: Mapping[type[Record], str] = {
    Approval: "approval",
    Rotation: "rotation",
    Revocations: "revocations",
}


def statement_files(folder: Path, kind: type[Record]) -> Iterator[tuple[str, Path]]:
    """Key id of the claimed signer, and the file, of every statement of a kind in a folder."""
    with disk_errors("reading", folder):
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in paths:
        found = layout.STATEMENT.fullmatch(path.name)
        if found and found[1] == KINDS[kind]:
            yield found[2], path


def signature_path(path: Path) -> Path:
    """Where the signature of a statement lies."""
    return path.with_name(path.name + ".sig")


def read_statement(kind: type[S], path: Path, verifier: Verifier) -> S:
    """A statement, once its signature was found good.

    Raises:
        TrustError: it is not signed by this key.
        FormatError: signed, but no such statement.
        MissingVolumeError: the file is not there.
    """
    data = read_small(path, layout.MAX_STATEMENT_BYTES)
    sign = signature_path(path)
    if not sign.is_file():
        raise TrustError(
            f"{path}: there is no signature ({sign.name})", hint="Copy both files, or remove it."
        )
    if not verifier.verify(data, read_small(sign, layout.MAX_STATEMENT_BYTES)):
        raise TrustError(
            f"{path}: the signature is not by key {verifier.key_id}: the statement was changed",
            hint="Ask whoever signed it, by another way, and copy it again.",
        )
    return parse_statement(kind, data, str(path))


def parse_statement(kind: type[S], data: bytes, what: str) -> S:
    """A statement from its bytes.

    Raises:
        FormatError: no such statement, or not in canonical form.
    """
    found = from_bytes(kind, data, what)
    if bytes_read(found) != data:
        raise FormatError(f"{what}: not in canonical form")
    return found


def write_statement(folder: Path, statement: Record, key_id: str, signer: Signer | None) -> Path:
    """Write a statement, and its signature first: a statement without one is refused.

    Without a signer (one in a device signs later) an older signature is removed.

    Raises:
        SpaceError, FileAccessError: of the disk.
    """
    path = folder / layout.statement_name(KINDS[type(statement)], key_id)
    if path.is_dir():
        raise FileAccessError(f"{path}: is a folder", hint="Remove it.")
    data = to_bytes(statement)
    with disk_errors("writing", path):
        if signer is None:
            remove(signature_path(path))
        else:
            write_atomically(signature_path(path), signer.sign(data))
        write_atomically(path, data)
    return path


def keep_statement(path: Path, into: Path) -> None:
    """Copy a statement and its signature into a folder of its own, both or neither.

    Folders are called by the statement's digest and are never changed, so a crash leaves what was there.

    Raises:
        MissingVolumeError, FormatError: a file is not there, or too large.
        SpaceError, FileAccessError: of the disk.
    """
    data = read_small(path, layout.MAX_STATEMENT_BYTES)
    signature = read_small(signature_path(path), layout.MAX_STATEMENT_BYTES)
    final = into / sha256_hex(data + signature)[:16]
    if final.is_dir():
        return
    if rehearsing():
        instead("write", final / path.name, len(data))
        instead("write", signature_path(final / path.name), len(signature))
        return
    work = final.with_name(f"{final.name}.new")
    with disk_errors("writing", work):
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        write_atomically(signature_path(work / path.name), signature)
        write_atomically(work / path.name, data)
        work.rename(final)


def kept_folders(place: Path) -> list[Path]:
    """The folders that `keep_statement` made."""
    with disk_errors("reading", place):
        found = sorted(place.iterdir()) if place.is_dir() else []
    return [folder for folder in found if not folder.name.endswith(".new")]
