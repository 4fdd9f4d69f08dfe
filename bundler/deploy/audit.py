"""The audit log of a root: lines that are only ever added, each bound to the one before.

`audit.jsonl` can be checked with stock tools (`sed -n 5p audit.jsonl | sha256sum` is what line 6 calls `previous`).
`audit.head` says where it ends. Who may write both can make both anew: whoever wants to exclude that writes down the head
(`airbundle audit verify` prints it) and gives it back with --expect.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from bundler.deploy.root import Root
from bundler.domain.audit import FIRST, AuditEntry, AuditHead, Outcome
from bundler.domain.manifest import VerifiedManifest
from bundler.errors import FormatError, IntegrityError, disk_errors
from bundler.format.codec import from_bytes, to_bytes
from bundler.format.digests import sha256_hex
from bundler.format.untrusted import shown
from bundler.ports import Clock

# A line is far shorter; a file without line ends is not read as one.
_LONGEST = 16 * 1024
_LONGEST_DETAIL = 500
_NO_LOGIN = 2**32 - 1


@dataclass
class Action:
    """What a command is about, filled in while it runs."""

    what: str
    verified: VerifiedManifest | None = None
    detail: str = ""

    def about(self, verified: VerifiedManifest) -> None:
        """Name the bundle."""
        self.verified = verified


@dataclass(frozen=True)
class AuditLog:
    """The log of one root."""

    root: Root
    clock: Clock

    def add(
        self,
        action: Action,
        outcome: Outcome,
        of: int | None = None,
    ) -> int:
        """Add one line, durably; gives its number.

        Raises:
            IntegrityError: the end of the log is not what was written there.
            SpaceError, FileAccessError: of the disk.
        """
        path = self.root.audit
        self.root.make(path.parent)
        verified = action.verified
        with disk_errors("writing", path), path.open("ab+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            head = self._end(file)
            known = self._head()
            if known and not _continues(head, known):
                raise IntegrityError(
                    f"{path}: does not end as {self.root.audit_head.name} says",
                    hint="See `airbundle audit verify`; keep both files, and move them away to begin a"
                    " new log.",
                )
            entry = AuditEntry(
                number=head.lines + 1,
                at=self.clock.now(),
                who=_who(),
                what=action.what,
                outcome=outcome,
                of=of,
                bundle_id=verified.bundle_id if verified else None,
                manifest_sha256=verified.digest if verified else None,
                detail=shown(action.detail, _LONGEST_DETAIL - len("...")),
                tool=version("airbundle"),
                previous=head.sha256,
            )
            line = _line(entry.model_dump(mode="json"))
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
            self.root.write(
                self.root.audit_head,
                to_bytes(AuditHead(lines=entry.number, sha256=sha256_hex(line))),
            )
        return entry.number

    def _end(self, file: IO[bytes]) -> AuditHead:
        """Where the log ends. A line that a power cut left unfinished was never counted, and goes."""
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 2 * _LONGEST))
        tail = file.read()
        whole, _, torn = tail.rpartition(b"\n")
        if torn and len(torn) < _LONGEST:
            file.truncate(size - len(torn))
            file.seek(0, os.SEEK_END)
        last = whole.rpartition(b"\n")[2] + b"\n" if whole else b""
        if not last:
            return AuditHead(lines=0, sha256=FIRST)
        try:
            number = from_bytes(AuditEntry, last, str(self.root.audit)).number
        except FormatError as cause:
            raise IntegrityError(
                f"{self.root.audit}: its last line is none of this log",
                hint="See `airbundle audit verify`; keep it, and move it away to begin a new log.",
            ) from cause
        return AuditHead(lines=number, sha256=sha256_hex(last))

    def entries(self) -> Iterator[AuditEntry]:
        """Every line that can be read.

        Raises:
            IntegrityError: a line cannot be read.
        """
        for number, line in enumerate(self._lines(), 1):
            yield self._entry(number, line)

    def verify(self, expected: AuditHead | None = None) -> AuditHead:
        """Check every line against the next, and the last against the head; gives the head.

        Args:
            expected: an earlier head that somebody wrote down: the log must still hold it.

        Raises:
            IntegrityError: the line that was changed, removed, added or moved, by its number.
            FileAccessError: it cannot be read.
        """
        known = self._head()
        previous, number = FIRST, 0
        marks = {one.lines: one.sha256 for one in (known, expected) if one is not None}
        for number, line in enumerate(self._lines(), 1):
            if not line.endswith(b"\n") and number > (known.lines if known else 0):
                # What a power cut left unfinished was never counted; the next command removes it.
                number -= 1
                break
            entry = self._entry(number, line)
            if entry.number != number:
                self._fault(
                    number, f"says that it is line {entry.number}: one was removed or moved"
                )
            if entry.previous != previous:
                self._fault(max(1, number - 1), f"was changed: line {number} knows it as another")
            previous = sha256_hex(line)
            if marks.get(number, previous) != previous:
                self._fault(number, "was changed, or the lines up to it were made anew")
        longest = max(marks, default=0)
        if number < longest:
            self._fault(number + 1, f"is missing: the log was cut off; it had {longest} lines")
        if known and number > known.lines + 1:
            self._fault(known.lines + 2, "was added by something else")
        if known is None and number:
            raise IntegrityError(
                f"{self.root.audit_head}: is not there, so that nobody knows where the log ended",
                hint="Compare the last line with a head that was written down (--expect).",
            )
        return AuditHead(lines=number, sha256=previous)

    def _head(self) -> AuditHead | None:
        path = self.root.audit_head
        with disk_errors("reading", path):
            data = path.read_bytes() if path.is_file() else None
        try:
            return None if data is None else from_bytes(AuditHead, data, str(path))
        except FormatError as cause:
            raise IntegrityError(f"{cause}", hint="It was changed by hand.") from cause

    def _lines(self) -> Iterator[bytes]:
        path = self.root.audit
        if not path.is_file():
            return
        with disk_errors("reading", path), path.open("rb") as file:
            while line := file.readline(_LONGEST):
                yield line

    def _entry(self, number: int, line: bytes) -> AuditEntry:
        if not line.endswith(b"\n"):
            self._fault(number, "is not whole")
        try:
            entry = from_bytes(AuditEntry, line, f"line {number}")
        except FormatError as cause:
            self._fault(number, f"is no entry ({shown(str(cause))[:200]})")
            raise
        # Lines of older versions lack keys that were added with a default since.
        if _line(entry.model_dump(mode="json", exclude_unset=True)) != line:
            self._fault(number, "was written by something else")
        return entry

    def _fault(self, number: int, what: str) -> None:
        raise IntegrityError(
            f"{self.root.audit}: line {number} {what}",
            hint="Whoever may write this root could change it; ask who did, and keep the file as it is.",
        )


def _continues(end: AuditHead, head: AuditHead) -> bool:
    """Whether a log ends where its head says, or one line after it, which is what a power cut leaves."""
    return end == head or end.lines == head.lines + 1


def _line(entry: dict[str, Any]) -> bytes:
    text = json.dumps(entry, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return (text + "\n").encode()


def _who() -> str:
    """The user, and the one who logged in: the kernel keeps that through sudo and su (pam_loginuid(8))."""
    user = _name(os.getuid())
    try:
        login = int(Path("/proc/self/loginuid").read_text())
    except (OSError, ValueError):
        login = _NO_LOGIN
    if login not in (_NO_LOGIN, os.getuid()):
        return f"{user} (logged in as {_name(login)})"
    return user


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
