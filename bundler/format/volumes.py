"""Reading volumes against the signed manifest, byte for byte, on all cores.

Nothing inside the archive is believed: headers must equal what the manifest predicts, and data is read
at the manifest's offsets and hashed block by block. So every byte of a volume is accounted for, and a
damaged one is named by the path, and the run of bytes, that it belongs to.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cryptography.hazmat.primitives import hashes

from bundler.domain.manifest import Manifest, VolumeEntry
from bundler.domain.verdict import Damage
from bundler.errors import disk_errors
from bundler.format.diskfile import aligned_buffer
from bundler.format.places import Place, Reader
from bundler.format.sealing import WrongSealError
from bundler.format.spans import BlockSpan, Predicted, Span, placed_parts, volume_spans
from bundler.format.workers import in_parallel
from bundler.ports import Task, VolumeFormat

# One more than the cores: it waits for the medium while the others hash. Still more only get in each
# other's way, and cost memory.
READERS = min((os.cpu_count() or 1) + 1, 8)
# What one worker reads at once: it stays in a core's own cache between the kernel's copy and the hash.
_PIECE = 2**19
# What one worker takes at once: enough that opening the file costs nothing beside it.
_BATCH = 32 * 2**20


class BlockSink(Protocol):
    """Takes blocks while volumes are read. Called from several threads."""

    def wants(self, span: BlockSpan) -> bool:
        """Whether this block is still needed; others are skipped unread."""

    def write(self, span: BlockSpan, at: int, chunk: memoryview) -> None:
        """Bytes of the block, `at` bytes into the entry's file. Not yet trusted."""

    def good(self, span: BlockSpan) -> None:
        """The block is complete and its SHA-256 is right."""


def scan_volumes(
    places: Mapping[str, Place],
    manifest: Manifest,
    form: VolumeFormat,
    task: Task,
    sink: BlockSink | None = None,
) -> list[Damage]:
    """Check volumes in one pass, and hand their blocks on.

    Args:
        places: volume name -> where it lies; volumes that are not named are not looked at.
        manifest: what was signed.
        form: the volume format.
        task: counts the bytes that were dealt with.
        sink: takes blocks; without one the volumes are only checked, headers and all.

    Returns:
        What is wrong, in order; empty when every byte is right.

    Raises:
        FormatError: see `volume_spans`.
    """
    found = find_faults(places, manifest, form, task, sink)
    return list(dict.fromkeys(fault.damage for fault in found))


@dataclass(frozen=True)
class Fault:
    """Where a volume is wrong; no span when only its length is."""

    volume: str
    span: Span | None
    damage: Damage


def find_faults(
    places: Mapping[str, Place],
    manifest: Manifest,
    form: VolumeFormat,
    task: Task,
    sink: BlockSink | None = None,
) -> list[Fault]:
    """As `scan_volumes`, span by span: of a truncated volume also those that are gone."""
    parts = placed_parts(manifest)
    batches: list[_Batch] = []
    for volume in manifest.volumes:
        if volume.name in places:
            spans = volume_spans(volume, parts[volume.name], form, manifest.block_size)
            batches += _batches(places[volume.name], volume, spans, sink)

    def check(batch: _Batch, shared: Task) -> list[Fault]:
        return batch.check(shared, sink)

    return [found for one in in_parallel(READERS, check, batches, task) for found in one]


@dataclass(frozen=True)
class _Batch:
    """Spans of one volume for one worker; `known` is what its length tells already."""

    place: Place
    volume: str
    spans: tuple[Span, ...]
    skipped: int = 0
    known: tuple[Fault, ...] = ()

    def check(self, task: Task, sink: BlockSink | None) -> list[Fault]:
        found = list(self.known)
        task.advance(self.skipped)
        if not self.spans:
            return found
        buffer = aligned_buffer(_PIECE)
        with self.place.open() as reader:
            for span in self.spans:
                if damage := _check(reader, self.volume, span, buffer, task, sink):
                    found.append(Fault(self.volume, span, damage))
        return found


def _batches(
    place: Place, volume: VolumeEntry, spans: Sequence[Span], sink: BlockSink | None
) -> Iterator[_Batch]:
    with disk_errors("reading", place.path):
        size = place.size()
    if size != volume.size:
        gone = [span for span in spans if span.offset + span.size > size]
        damage = Damage(
            where=f"{volume.name}: {gone[0].label}" if gone else volume.name,
            what="truncated" if size < volume.size else "longer than promised",
            expected=f"{volume.size} bytes", found=f"{size} bytes",
        )  # fmt: skip
        known = tuple(Fault(volume.name, span, damage) for span in gone)
        yield _Batch(place, volume.name, (), known=known or (Fault(volume.name, None, damage),))
    there = [span for span in spans if span.offset + span.size <= size]
    wanted = [span for span in there if sink is None or _is_wanted(span, sink)]
    skipped = volume.size - sum(span.size for span in wanted)
    for group in _grouped(wanted):
        yield _Batch(place, volume.name, tuple(group), skipped)
        skipped = 0
    if skipped:
        yield _Batch(place, volume.name, (), skipped)


def _is_wanted(span: Span, sink: BlockSink) -> bool:
    return isinstance(span, BlockSpan) and sink.wants(span)


def _grouped(spans: Iterable[Span]) -> Iterator[list[Span]]:
    group: list[Span] = []
    total = 0
    for span in spans:
        group.append(span)
        total += span.size
        if total >= _BATCH:
            yield group
            group, total = [], 0
    if group:
        yield group


def _check(
    reader: Reader,
    volume: str,
    span: Span,
    buffer: memoryview,
    task: Task,
    sink: BlockSink | None,
) -> Damage | None:
    where = f"{volume}: {span.label}"
    try:
        if isinstance(span, Predicted):
            found = b"".join(bytes(chunk) for _, chunk in _pieces(reader, span, buffer, task))
            same = found == span.literal
            return None if same else Damage(where=where, what="ZIP structure changed")
        digest = hashes.Hash(hashes.SHA256())
        for at, chunk in _pieces(reader, span, buffer, task):
            digest.update(chunk)
            if sink is not None:
                sink.write(span, span.start + at, chunk)
    except _Unreadable as cause:
        return Damage(where=where, what=str(cause))
    sha256 = digest.finalize().hex()
    if sha256 != span.block.sha256:
        wanted = f"sha256 {span.block.sha256}"
        return Damage(where=where, what="changed", expected=wanted, found=sha256)
    if sink is not None:
        sink.good(span)
    return None


class _Unreadable(Exception):  # noqa: N818 - becomes a finding: the rest of the volume may be sound
    """The medium does not give the bytes; the text says how."""


def _pieces(
    reader: Reader, span: Span, buffer: memoryview, task: Task
) -> Iterator[tuple[int, memoryview]]:
    """The bytes of a span, each piece with where it starts in the span; valid until the next one."""
    at = 0
    while at < span.size:
        try:
            count = reader.read_into(buffer[: span.size - at], span.offset + at)
        except OSError as cause:
            raise _Unreadable(f"cannot be read: {cause.strerror}") from cause
        except WrongSealError as cause:
            raise _Unreadable("does not open: changed, or sealed with another key") from cause
        if not count:
            raise _Unreadable("truncated while it was read")
        yield at, buffer[:count]
        at += count
        task.advance(count)
