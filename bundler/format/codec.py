"""Records to canonical bytes and back, and the gate for format versions.

Canonical JSON here: UTF-8, sorted keys, two-space indentation, one newline at the end, so that a
reviewer can read what was signed. Reading refuses anything that is not exactly that form, so one
manifest has one digest.
"""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import ValidationError

from bundler.domain.lock import LOCK_VERSION, Lock
from bundler.domain.manifest import FORMAT_VERSION, Manifest
from bundler.domain.record import Record
from bundler.errors import FormatError
from bundler.format import layout
from bundler.format.rules import check_rules

R = TypeVar("R", bound=Record)


def to_bytes(record: Record) -> bytes:
    """Canonical bytes of a record, every key written out."""
    return _canonical(record.model_dump(mode="json"))


def bytes_read(record: Record) -> bytes:
    """Canonical bytes of a record that was read, without the keys that it did not have.

    A bundle of an older writer lacks keys that were added with a default since; it stays what it was.
    """
    return _canonical(record.model_dump(mode="json", exclude_unset=True))


def _canonical(data: object) -> bytes:
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, indent=2, allow_nan=False)
    return (text + "\n").encode()


def from_bytes(kind: type[R], data: bytes, what: str) -> R:
    """Parse a record.

    Raises:
        FormatError: not JSON, not this kind of record; the message names the first bad key.
    """
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "top level"
        raise FormatError(f"{what}: {where}: {first['msg']}") from error


def parse_manifest(data: bytes) -> Manifest:
    """Parse a manifest that is already trusted to be what was signed, and check its inner rules.

    Raises:
        FormatError: another format version, or a manifest that breaks the format.
    """
    _gate(data, "format_version", FORMAT_VERSION, layout.MANIFEST)
    manifest = from_bytes(Manifest, data, layout.MANIFEST)
    if bytes_read(manifest) != data:
        raise FormatError(f"{layout.MANIFEST}: not in canonical form")
    if len(manifest.entries) > layout.MAX_ENTRIES:
        raise FormatError(f"{layout.MANIFEST}: over {layout.MAX_ENTRIES} entries")
    check_rules(manifest)
    return manifest


def parse_lock(data: bytes, what: str) -> Lock:
    """Parse a lock file.

    Raises:
        FormatError: another lock version, or not a lock.
    """
    try:
        _gate(data, "lock_version", LOCK_VERSION, what)
        return from_bytes(Lock, data, what)
    except FormatError as error:
        raise FormatError(str(error), hint="Make a new lock with --relock.") from error


def _gate(data: bytes, key: str, supported: int, what: str) -> None:
    """Look at the version before the rest: a newer format may have keys unknown here."""
    if not data.startswith(b"{"):
        raise FormatError(f"{what}: not a JSON object")
    try:
        version = json.loads(data).get(key)
    except (ValueError, AttributeError, RecursionError) as error:
        raise FormatError(f"{what}: not a JSON object: {error}") from error
    if type(version) is not int or version != supported:
        raise FormatError(
            f"{what}: {key} {version!r} is not supported; this version reads {supported}"
        )
