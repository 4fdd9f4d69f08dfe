"""What lies in a root and can answer a question: each record with its time and its SHA-256."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from bundler.deploy.audit import AuditLog
from bundler.deploy.releases import current_release, releases
from bundler.deploy.root import RELEASE_FILE, Root
from bundler.deploy.trustroot import Gate, open_imported, open_record
from bundler.domain.ab import ABRecord
from bundler.domain.audit import AuditEntry
from bundler.domain.capacity import CapacityRecord
from bundler.domain.facts import AcceptanceRecord, ReleaseRecord
from bundler.domain.manifest import Entry, VerifiedManifest
from bundler.domain.questions import Source, Told
from bundler.domain.record import Record
from bundler.errors import BundlerError
from bundler.format.blocks import content_id
from bundler.format.codec import from_bytes
from bundler.format.digests import sha256_hex
from bundler.format.gguf import read_gguf
from bundler.format.safetensors import HeaderFault
from bundler.format.trust import read_small
from bundler.format.untrusted import NotAnObject, parse_object, shown

# A run of 10,000 requests with their gaps between tokens takes some tens of MB.
_MAX_RECORD = 512 * 2**20
_MAX_CONFIG = 2**20
_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Kept(Generic[R]):
    """A record and where it is from."""

    what: R
    source: Source


@dataclass(frozen=True)
class Experts:
    """How many experts a layer of a model has, as its own files say; 0: it is dense."""

    model: str
    count: int
    source: Source


@dataclass(frozen=True)
class Action:
    """A command that ended: its line, and how many seconds it took where the clock tells."""

    entry: AuditEntry
    seconds: int | None
    source: Source


@dataclass
class Evidence:
    """Everything found, the newest first; what could not be used is in `unread`."""

    current: VerifiedManifest
    release: Kept[ReleaseRecord]
    runs: list[Kept[AcceptanceRecord]] = field(default_factory=list)
    comparisons: list[Kept[ABRecord]] = field(default_factory=list)
    searches: list[Kept[CapacityRecord]] = field(default_factory=list)
    installed: list[tuple[Kept[ReleaseRecord], VerifiedManifest]] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    experts: list[Experts] = field(default_factory=list)
    unread: list[Told] = field(default_factory=list)


@dataclass(frozen=True)
class Gatherer:
    """Reads a root."""

    root: Root
    gate: Gate
    log: AuditLog

    def gather(self) -> Evidence:
        """Everything that is there.

        Raises:
            StateError: no release is in use.
            TrustError: its bundle's records were changed.
        """
        _, record = current_release(self.root)
        verified = open_imported(self.root, record.bundle_id, self.gate)
        kept = self._kept(ReleaseRecord, self.root.release(record.bundle_id) / RELEASE_FILE)
        found = Evidence(verified, kept)
        for path in sorted(self.root.acceptance.glob("*/*.json"), reverse=True):
            self._run(path, found)
        self._releases(found)
        self._audit(found)
        found.experts += self._experts(verified, found)
        return found

    def _run(self, path: Path, found: Evidence) -> None:
        try:
            if path.name == "record.json":
                found.runs.append(self._kept(AcceptanceRecord, path))
            elif path.name == "ab.json":
                found.comparisons.append(self._kept(ABRecord, path))
            elif path.name == "capacity.json":
                found.searches.append(self._kept(CapacityRecord, path))
        except BundlerError as error:
            found.unread.append(_unread(self._name(path), error))

    def _releases(self, found: Evidence) -> None:
        for one in reversed(releases(self.root)):
            if one.record is None:
                continue
            try:
                verified = open_record(self.root, one.bundle_id, self.gate)
                kept = self._kept(ReleaseRecord, one.folder / RELEASE_FILE)
            except BundlerError as error:
                found.unread.append(_unread(self._name(one.folder / RELEASE_FILE), error))
                continue
            found.installed.append((kept, verified))

    def _audit(self, found: Evidence) -> None:
        """A log that was changed proves nothing."""
        if not self.root.audit.is_file():
            return
        try:
            self.log.verify()
            entries = list(self.log.entries())
        except BundlerError as error:
            found.unread.append(_unread(self.root.audit.name, error))
            return
        began = {entry.number: entry for entry in entries}
        for entry in reversed(entries):
            if entry.outcome == "begun":
                continue
            first = began.get(entry.of or 0)
            line = json.dumps(
                entry.model_dump(mode="json", exclude_unset=True),
                ensure_ascii=False, sort_keys=True, separators=(",", ":"),
            )  # fmt: skip
            source = Source(
                record=f"{self.root.audit.name}:{entry.number}",
                at=entry.at,
                sha256=sha256_hex(f"{line}\n".encode()),
            )
            seconds = _between(first.at, entry.at) if first else None
            found.actions.append(Action(entry, seconds, source))

    def _experts(self, verified: VerifiedManifest, found: Evidence) -> Iterator[Experts]:
        for entry in verified.manifest.payload:
            parts = entry.path.split("/")
            if entry.kind != "model" or len(parts) != 3:
                continue
            try:
                count = self._count(entry)
            except (BundlerError, NotAnObject, HeaderFault, OSError) as error:
                found.unread.append(_unread(entry.path, error))
                continue
            if count is not None:
                source = Source(
                    record=entry.path, at=verified.manifest.created, sha256=entry.sha256
                )
                yield Experts(parts[1], count, source)

    def _count(self, entry: Entry) -> int | None:
        path = self.root.object(content_id(entry))
        if entry.path.endswith("/config.json"):
            data = parse_object(read_small(path, _MAX_CONFIG), values=100_000)
            text = data.get("text_config")
            names = {**data, **text} if isinstance(text, dict) else data
            return max((n for key in _EXPERTS if isinstance(n := names.get(key), int)), default=0)
        if not entry.path.endswith(".gguf") or not path.is_file():
            return None
        with path.open("rb") as file:

            def read(start: int, size: int) -> bytes:
                file.seek(start)
                return file.read(size)

            told = read_gguf(read, entry.size).metadata
        count = told.get(f"{told.get('general.architecture')}.expert_count", 0)
        return count if isinstance(count, int) else 0

    def _kept(self, kind: type[R], path: Path) -> Kept[R]:
        data = read_small(path, _MAX_RECORD)
        what = from_bytes(kind, data, self._name(path))
        at = what.installed if isinstance(what, ReleaseRecord) else getattr(what, "ended", "")
        return Kept(what, Source(record=self._name(path), at=at, sha256=sha256_hex(data)))

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root.path).as_posix()


def _unread(name: str, error: Exception) -> Told:
    why = shown(str(error), 300)
    return Told(ko=f"{name}: 근거로 쓸 수 없음 ({why})", en=f"{name}: is no evidence ({why})")


def _between(began: str, ended: str) -> int | None:
    """Seconds from one time of the log to another; None when a clock was set back between."""
    try:
        first, last = (
            datetime.datetime.fromisoformat(at.replace("Z", "+00:00")) for at in (began, ended)
        )
        seconds = int((last - first).total_seconds())
    except (ValueError, TypeError):
        return None
    return seconds if seconds >= 0 else None
