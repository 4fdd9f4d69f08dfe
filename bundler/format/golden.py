"""Golden records: which model one is of, and how one is read. It comes from another host, unsigned."""

from __future__ import annotations

from pathlib import Path

from bundler.domain.correctness import GOLDEN_VERSION, Golden
from bundler.domain.manifest import Manifest
from bundler.errors import FormatError, StateError, disk_errors
from bundler.format import layout
from bundler.format.codec import from_bytes
from bundler.format.digests import sha256_hex

_MOST_BYTES = 4 * 2**20


def model_digest(manifest: Manifest, model: str) -> str:
    """SHA-256 over `sha256  path` lines of a model's files, sorted by path.

    It is one for each model, revision and quantization, whatever bundle carries it.

    Raises:
        StateError: the bundle has no such model.
    """
    folder = layout.model_path(model, "")
    files = sorted(
        (entry.path.removeprefix(folder), entry.sha256)
        for entry in manifest.entries
        if entry.kind == "model" and entry.path.startswith(folder)
    )
    if not files:
        raise StateError(f"{manifest.name}: holds no model {model}")
    return sha256_hex("".join(f"{digest}  {path}\n" for path, digest in files).encode())


def read_golden(path: Path) -> Golden:
    """A golden record from a file.

    Raises:
        FormatError: it is none, or of another version.
        FileAccessError: it cannot be read.
    """
    with disk_errors("reading", path), path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise FormatError(f"{path}: over {_MOST_BYTES // 2**20} MiB, so it is no golden record")
    golden = from_bytes(Golden, data, str(path))
    if golden.golden_version != GOLDEN_VERSION:
        raise FormatError(
            f"{path}: golden_version {golden.golden_version} is not supported;"
            f" this version reads {GOLDEN_VERSION}",
            hint="Record it again: airbundle golden record",
        )
    return golden
