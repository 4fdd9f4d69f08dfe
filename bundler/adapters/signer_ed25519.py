"""Signer and Verifier: Ed25519 through `cryptography`, keys as PEM, as OpenSSL 3 reads them."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from bundler.errors import BundlerError, KeyFileError, StateError, disk_errors
from bundler.format.digests import sha256_hex
from bundler.format.rehearsal import instead, rehearsing


class Ed25519Signer:
    """Signs with a private key file."""

    def __init__(self, path: Path) -> None:
        try:
            key = serialization.load_pem_private_key(_read(path), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as cause:
            raise KeyFileError(f"{path}: not an unencrypted PEM private key: {cause}") from cause
        if not isinstance(key, Ed25519PrivateKey):
            raise KeyFileError(f"{path}: not an Ed25519 key")
        self._key = key

    def sign(self, data: bytes) -> bytes:
        """64 raw bytes. Ed25519 is deterministic: the same bytes give the same signature."""
        return self._key.sign(data)

    @property
    def key_id(self) -> str:
        """Short name of the key pair."""
        return _key_id(self._key.public_key())

    @property
    def pem(self) -> bytes:
        """The public key."""
        return self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )


class Ed25519Verifier:
    """Checks signatures with a public key."""

    def __init__(self, data: bytes, what: str) -> None:
        """`data` is PEM; errors call it `what`."""
        try:
            key = serialization.load_pem_public_key(data)
        except (ValueError, TypeError, UnsupportedAlgorithm) as cause:
            raise KeyFileError(f"{what}: not a PEM public key: {cause}") from cause
        if not isinstance(key, Ed25519PublicKey):
            raise KeyFileError(f"{what}: not an Ed25519 key")
        self._key = key
        self._pem = data

    @classmethod
    def from_file(cls, path: Path) -> Ed25519Verifier:
        """With a public key file."""
        return cls(_read(path), str(path))

    def verify(self, data: bytes, signature: bytes) -> bool:
        """Whether the signature is this key's."""
        try:
            self._key.verify(signature, data)
        except InvalidSignature:
            return False
        return True

    @property
    def key_id(self) -> str:
        """Short name of the key pair."""
        return _key_id(self._key)

    @property
    def pem(self) -> bytes:
        """The key file's bytes."""
        return self._pem


def generate(private: Path, public: Path) -> str:
    """Write a new pair (private: mode 0600) and give its key id. Never overwrites.

    Raises:
        StateError: one of the files exists.
        FileAccessError: a file cannot be written.
    """
    for path in (private, public):
        if path.exists():
            raise StateError(
                f"{path} exists already", hint="Keys are never overwritten; rename it."
            )
    key = Ed25519PrivateKey.generate()
    if rehearsing():
        instead("write", private, why="the private key, mode 600")
        instead("write", public, why="the public key")
        return "(of the pair that would be made)"
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    open_text = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    try:
        for path, data, mode in ((private, secret, 0o600), (public, open_text, 0o644)):
            with disk_errors("writing", path):
                path.parent.mkdir(parents=True, exist_ok=True)
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
    except BundlerError:
        # Half a pair is of no use, and would be in the way of the next try.
        for path in (private, public):
            path.unlink(missing_ok=True)
        raise
    return _key_id(key.public_key())


def _key_id(key: Ed25519PublicKey) -> str:
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return sha256_hex(der)[:16]


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise KeyFileError(f"{path}: no such key file")
    with disk_errors("reading", path):
        return path.read_bytes()
