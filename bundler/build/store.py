"""The connected side's content store: a file is there under its SHA-256, or it is not there.

<root>/objects/ab/abcdef...        the bytes, read-only
<root>/objects/ab/abcdef....json   size and digests of its blocks, so that nothing is hashed twice
<root>/git/<sha1>                  the SHA-256 of a Hub file that is known by its git blob id
<root>/partial/                    what is on its way; survives kill -9 and is resumed
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bundler.domain.sizes import MAX_BLOCK
from bundler.errors import IntegrityError, disk_errors
from bundler.format.atomic import write_atomically
from bundler.format.digests import git_blob_sha1, sha256_hex
from bundler.format.ingest import BlockDigests, Digests, digest_file


@dataclass(frozen=True)
class Blob:
    """A file's bytes on this machine, and what is known of them; `stored` when the store owns it."""

    path: Path
    digests: Digests
    stored: bool = False


class ContentStore:
    """Holds downloaded bytes, each checked before it gets its name."""

    def __init__(self, root: Path, block_size: int = MAX_BLOCK) -> None:
        self.root = root
        self.block_size = block_size

    @contextmanager
    def held(self, wait_note: Callable[[str], None]) -> Iterator[None]:
        """Hold the store alone: two builds would append to one partial file.

        The kernel gives the lock back when the process ends, however it ends.
        """
        path = self.root / "lock"
        with disk_errors("writing", path):
            self.root.mkdir(parents=True, exist_ok=True)
            file = path.open("a")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                wait_note(f"another build uses {self.root}; waiting for it")
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def partial(self, key: str) -> Path:
        """A place for bytes on their way; the same key gives the same place."""
        path = self.root / "partial" / sha256_hex(key.encode())[:32]
        with disk_errors("creating", path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def get(self, sha256: str | None, git_sha1: str | None = None) -> Blob | None:
        """The stored file with this digest."""
        if sha256 is None and git_sha1 is not None:
            link = self.root / "git" / git_sha1
            sha256 = link.read_text().strip() if link.is_file() else None
        if sha256 is None:
            return None
        path = self._object(sha256)
        if not path.is_file():
            return None
        digests = _read_note(_note_of(path))
        if digests is None:
            # Reading it again costs less than fetching it again.
            with disk_errors("reading", path):
                digests = digest_file(path, self.block_size)
            if digests.sha256 == sha256:
                with disk_errors("writing", path):
                    write_atomically(_note_of(path), _note(digests))
        if digests.sha256 != sha256 or path.stat().st_size != digests.size:
            return None
        return Blob(path, digests, stored=True)

    def blocked(self, blob: Blob, block_size: int) -> Blob:
        """The same file with the digests of its blocks of `block_size` bytes.

        They are as a rule those of the fetch; bundles with small volumes have smaller blocks.

        Raises:
            IntegrityError: the file is no longer what it was.
        """
        before = blob.digests
        if before.block_size == block_size:
            return blob
        if before.size <= min(before.block_size, block_size):
            return replace(blob, digests=replace(before, block_size=block_size))
        with disk_errors("reading", blob.path):
            digests = digest_file(blob.path, block_size)
        if digests.sha256 != before.sha256:
            raise IntegrityError(f"{blob.path}: changed while the bundle was built")
        return replace(blob, digests=digests)

    def file(self, sha256: str) -> Path | None:
        """Where the bytes with this digest lie."""
        blob = self.get(sha256)
        return blob.path if blob else None

    def admit(
        self, file: Path, what: str, *, sha256: str | None = None, git_sha1: str | None = None
    ) -> Blob:
        """Check a complete file and move it to its final name.

        Raises:
            IntegrityError: it is not what was promised; the file is removed, so that a rerun
                fetches it anew.
        """
        with disk_errors("reading", file):
            digests = digest_file(file, self.block_size)
            found_git = git_blob_sha1(file) if git_sha1 and sha256 is None else git_sha1
        if sha256 is not None and digests.sha256 != sha256:
            self._refuse(file, what, f"sha256 {sha256}", digests.sha256)
        if found_git != git_sha1:
            self._refuse(file, what, f"git blob {git_sha1}", str(found_git))
        path = self._object(digests.sha256)
        with disk_errors("writing", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(_note_of(path), _note(digests))
            file.replace(path)
            if git_sha1:
                link = self.root / "git" / git_sha1
                write_atomically(link, digests.sha256.encode())
        return Blob(path, digests, stored=True)

    def _object(self, sha256: str) -> Path:
        return self.root / "objects" / sha256[:2] / sha256

    @staticmethod
    def _refuse(file: Path, what: str, expected: str, found: str) -> None:
        file.unlink(missing_ok=True)
        raise IntegrityError(
            f"{what}: downloaded bytes are wrong (expected {expected}, found {found})",
            hint="Run the command again to download it anew; if it stays wrong, ask the source.",
        )


def _note_of(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _note(digests: Digests) -> bytes:
    """What is kept beside an object: its digests, and the digest of these."""
    text = json.dumps(asdict(digests))
    return json.dumps({"digests": text, "check": sha256_hex(text.encode())}).encode()


def _read_note(path: Path) -> Digests | None:
    """What stands beside an object; None when it cannot be relied on (a power cut, a full disk)."""
    try:
        note = json.loads(path.read_bytes())
        if sha256_hex(note["digests"].encode()) != note["check"]:
            return None
        found = json.loads(note["digests"])
        return Digests(**{**found, "blocks": tuple(BlockDigests(**b) for b in found["blocks"])})
    except (ValueError, TypeError, KeyError, AttributeError, OSError):
        return None
