"""Reading a volume against the signed manifest, byte for byte.

Nothing inside the archive is believed: headers must equal what the manifest predicts, and data is read
at the manifest's offsets and hashed. So every byte of a volume is accounted for, and a damaged one is
named by the path that it belongs to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Protocol

from cryptography.hazmat.primitives import hashes

from bundler.domain.manifest import Entry, Manifest, Part, VolumeEntry
from bundler.domain.verdict import Damage
from bundler.errors import FormatError, disk_errors
from bundler.format.digests import CHUNK, read_chunks
from bundler.ports import Member, Region, Task, VolumeFormat


@dataclass(frozen=True)
class PlacedPart:
    """A part, its entry, and where in the entry's file it starts."""

    entry: Entry
    part: Part
    start: int


class PartSink(Protocol):
    """Takes the bytes of parts while a volume is read."""

    def wants(self, placed: PlacedPart) -> bool:
        """Whether this part is still needed; others are skipped unread."""

    def write(self, placed: PlacedPart, at: int, chunk: bytes) -> None:
        """Bytes of the part, `at` bytes into the entry's file. Not yet trusted."""

    def good(self, placed: PlacedPart) -> None:
        """The part is complete and its SHA-256 is right."""


def placed_parts(manifest: Manifest) -> dict[str, list[PlacedPart]]:
    """Volume name -> its parts in the order in which they lie."""
    by_volume: dict[str, list[PlacedPart]] = {volume.name: [] for volume in manifest.volumes}
    for entry in manifest.entries:
        start = 0
        for part in entry.parts:
            by_volume[part.volume].append(PlacedPart(entry, part, start))
            start += part.size
    for parts in by_volume.values():
        parts.sort(key=lambda placed: (placed.part.offset, placed.part.member))
    return by_volume


def volume_regions(
    volume: VolumeEntry, parts: Sequence[PlacedPart], form: VolumeFormat
) -> tuple[Region, ...]:
    """Predict the volume's bytes.

    Raises:
        FormatError: the manifest places parts where the format would not.
    """
    members = [Member(p.part.member, p.part.size, p.part.crc32) for p in parts]
    regions = form.layout(members)
    offsets = [region.offset for region in regions if region.member is not None]
    end = regions[-1].offset + regions[-1].size
    if offsets != [p.part.offset for p in parts] or end != volume.size:
        raise FormatError(f"manifest: the parts in {volume.name} do not lie as the format says")
    return regions


def scan_volume(
    path: Path,
    volume: VolumeEntry,
    regions: Sequence[Region],
    parts: Sequence[PlacedPart],
    task: Task,
    sink: PartSink | None = None,
) -> tuple[Damage, ...]:
    """Check one volume in one pass, and hand the data on.

    Args:
        path: the volume.
        volume: what the manifest says of it. Its SHA-256 is checked when all of it is read, which is
            when there is no sink.
        regions: what `volume_regions` predicts.
        parts: the volume's parts.
        task: counts the bytes that were dealt with.
        sink: takes data; without one the volume is only checked.

    Returns:
        What is wrong, in order; empty when every byte is right.
    """
    findings: list[Damage] = []
    promised = volume.size
    whole = hashes.Hash(hashes.SHA256()) if sink is None else None
    with disk_errors("reading", path), path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        for region in regions:
            if region.offset + region.size > size:
                break
            finding = _check_region(file, path.name, region, parts, task, sink, whole)
            if finding:
                findings.append(finding)
        if size != promised:
            what = "truncated" if size < promised else "longer than promised"
            cut = next((r.label for r in regions if r.offset + r.size > size), "")
            where = f"{path.name}: {cut}" if cut else path.name
            findings.append(
                Damage(where=where, what=what, expected=f"{promised} bytes", found=f"{size} bytes")
            )
    if whole is not None and not findings and (found := whole.finalize().hex()) != volume.sha256:
        what = "the manifest names another SHA-256 for the volume than its parts give"
        findings.append(Damage(where=path.name, what=what, expected=volume.sha256, found=found))
    return tuple(findings)


def _check_region(
    file: FileIO,
    volume: str,
    region: Region,
    parts: Sequence[PlacedPart],
    task: Task,
    sink: PartSink | None,
    whole: hashes.Hash | None,
) -> Damage | None:
    if region.member is None:
        found = b"".join(_read_at(file, region))
        if whole is not None:
            whole.update(found)
        task.advance(region.size)
        if found == region.literal:
            return None
        return Damage(where=f"{volume}: {region.label}", what="ZIP structure changed")
    placed = parts[region.member]
    if sink is not None and not sink.wants(placed):
        task.advance(region.size)
        return None
    digest = hashes.Hash(hashes.SHA256())
    at = placed.start
    for chunk in _read_at(file, region):
        digest.update(chunk)
        if whole is not None:
            whole.update(chunk)
        if sink is not None:
            sink.write(placed, at, chunk)
        at += len(chunk)
        task.advance(len(chunk))
    found_sha = digest.finalize().hex()
    if found_sha == placed.part.sha256:
        if sink is not None:
            sink.good(placed)
        return None
    return Damage(
        where=f"{volume}: {placed.part.member}",
        what="changed",
        expected=f"sha256 {placed.part.sha256}",
        found=found_sha,
    )


def joined_sha256(entry: Entry, places: Mapping[str, Path], task: Task) -> str:
    """SHA-256 of a cut file, read from its parts in the volumes, in order."""
    digest = hashes.Hash(hashes.SHA256())
    for part in entry.parts:
        path = places[part.volume]
        with disk_errors("reading", path):
            for chunk in read_chunks(path, part.offset, part.size):
                digest.update(chunk)
                task.advance(len(chunk))
    return digest.finalize().hex()


def _read_at(file: FileIO, region: Region) -> Iterator[bytes]:
    file.seek(region.offset)
    left = region.size
    while left > 0:
        chunk = file.read(min(CHUNK, left))
        if not chunk:
            return
        left -= len(chunk)
        yield chunk
