"""Volumes encrypted at rest: a lost stick gives nothing away.

The form is Tink's AES256_GCM_HKDF_1MB (https://developers.google.com/tink/streaming-aead/aes_gcm_hkdf_streaming),
with the volume's name as associated data, so that any Tink opens it with the same 32 bytes of key:

    1 byte 40, 32 bytes salt, 7 bytes nonce prefix; then segments of 1 MiB in the file, the first
    shorter by those 40 bytes, each AES-256-GCM with its tag of 16 bytes at the end
    key of the file = HKDF-SHA256(key, salt, info=name, 32)
    nonce of a segment = prefix, number (4 bytes, big endian), 1 when it is the last and 0 before

Segments can be opened in any order, so a sealed volume is read in parallel as an open one is.
"""

from __future__ import annotations

import os
import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from bundler.errors import KeyFileError, StateError, disk_errors
from bundler.format.digests import sha256_hex
from bundler.format.rehearsal import instead

SUFFIX = ".sealed"
SEGMENT = 2**20
HEADER = 40
_TAG = 16
_SALT, _PREFIX, _KEY = 32, 7, 32
_LABEL = "airbundle-volume-key-1"


class WrongSealError(Exception):
    """A segment does not open: it was changed, or sealed with another key."""


@dataclass(frozen=True, repr=False)
class VolumeKey:
    """32 secret bytes. They travel by another way than the bundle."""

    secret: bytes

    @property
    def key_id(self) -> str:
        """A short name that tells nothing of the key."""
        return sha256_hex(b"airbundle volume key id\n" + self.secret)[:16]

    @classmethod
    def read(cls, path: Path) -> VolumeKey:
        """From a key file.

        Raises:
            KeyFileError: it is not there, or no such file.
        """
        if not path.is_file():
            raise KeyFileError(f"{path}: no such key file", hint="airbundle keygen --volumes")
        with disk_errors("reading", path), path.open("rb") as file:
            words = file.read(4096).decode("ascii", "replace").split()
        try:
            secret = bytes.fromhex(words[1]) if words[:1] == [_LABEL] and len(words) == 2 else b""
        except ValueError:
            secret = b""
        if len(secret) != _KEY:
            raise KeyFileError(
                f"{path}: not a key for volumes", hint="`airbundle keygen --volumes` makes one."
            )
        return cls(secret)


def generate_volume_key(path: Path) -> VolumeKey:
    """Write a new key (mode 0600). Never overwrites.

    Raises:
        StateError: the file exists.
        SpaceError, FileAccessError: of the disk.
    """
    if path.exists():
        raise StateError(f"{path} exists already", hint="Keys are never overwritten; rename it.")
    key = VolumeKey(secrets.token_bytes(_KEY))
    if instead("write", path, why="the key, mode 600"):
        return key
    with disk_errors("writing", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(f"{_LABEL} {key.secret.hex()}\n")
    return key


def sealed_size(size: int) -> int:
    """Bytes of a sealed volume of `size` bytes."""
    return HEADER + size + _TAG * _segments(size)


def opened_size(size: int) -> int:
    """Bytes in a sealed volume of `size` bytes; of one that was cut, what is left of it."""
    return max(0, size - HEADER - _TAG * max(1, -(-size // SEGMENT)))


def seal(key: VolumeKey, name: str, size: int, read: Iterator[memoryview]) -> Iterator[bytes]:
    """The pieces of a sealed volume, each a segment of 1 MiB in the file but the last.

    Args:
        key: what seals.
        name: the volume's name, which is bound to its content.
        size: bytes of the volume.
        read: the volume's bytes, in pieces of any length.
    """
    salt, prefix = secrets.token_bytes(_SALT), secrets.token_bytes(_PREFIX)
    cipher = _cipher(key, salt, name)
    head = bytes([HEADER]) + salt + prefix
    waiting = bytearray()
    count = _segments(size)
    for number in range(count):
        wanted = SEGMENT - _TAG - (HEADER if number == 0 else 0)
        while len(waiting) < wanted:
            piece = next(read, None)
            if piece is None:
                break
            waiting += piece
        plain, waiting = bytes(waiting[:wanted]), waiting[wanted:]
        yield head + cipher.encrypt(_nonce(prefix, number, number == count - 1), plain, None)
        head = b""


class SealedReader:
    """Reads the content of a sealed volume at any place. One thread at a time."""

    def __init__(self, handle: int, key: VolumeKey, name: str) -> None:
        """Read the header.

        Raises:
            WrongSealError: there is none.
            OSError: of the medium.
        """
        self._handle = handle
        head = _read(handle, HEADER, 0)
        if len(head) < HEADER or head[0] != HEADER:
            raise WrongSealError
        self._prefix = head[1 + _SALT :]
        self._cipher = _cipher(key, head[1 : 1 + _SALT], name)
        self._size = os.fstat(handle).st_size
        self._kept: tuple[int, bytes] = (-1, b"")

    def read(self, size: int, at: int) -> bytes:
        """Up to `size` bytes of the content, as many as lie in one segment; none at the end.

        Raises:
            WrongSealError: the segment does not open.
            OSError: of the medium.
        """
        number, start = _place(at)
        return self._segment(number)[at - start : at - start + size]

    def _segment(self, number: int) -> bytes:
        if self._kept[0] != number:
            low = max(HEADER, number * SEGMENT)
            high = min((number + 1) * SEGMENT, self._size)
            if low >= high:
                return b""
            last = high == self._size
            found = _read(self._handle, high - low, low)
            try:
                plain = self._cipher.decrypt(_nonce(self._prefix, number, last), found, None)
            except InvalidTag as cause:
                raise WrongSealError from cause
            self._kept = (number, plain)
        return self._kept[1]


def _place(at: int) -> tuple[int, int]:
    """Number of the segment with a byte of the content, and where its content starts."""
    first = SEGMENT - _TAG - HEADER
    if at < first:
        return 0, 0
    number = 1 + (at - first) // (SEGMENT - _TAG)
    return number, first + (number - 1) * (SEGMENT - _TAG)


def _segments(size: int) -> int:
    return 1 + _place(size - 1)[0] - _place(0)[0] if size else 1


def _nonce(prefix: bytes, number: int, last: bool) -> bytes:
    return prefix + struct.pack(">IB", number, last)


def _cipher(key: VolumeKey, salt: bytes, name: str) -> AESGCM:
    return AESGCM(HKDF(hashes.SHA256(), _KEY, salt, name.encode()).derive(key.secret))


def _read(handle: int, size: int, at: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = os.pread(handle, size - len(found), at + len(found))
        if not piece:
            break
        found += piece
    return bytes(found)
