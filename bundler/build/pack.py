"""Fetched files -> volumes, manifest, signature and checksums, in a folder that appears only whole.

Everything is written below `<out>.partial`; the last step renames it. A finished volume is kept by a
rerun when it is, byte for byte, the one that the plan wants.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bundler.build.fetch import Fetched
from bundler.build.parity import parity_sets, usable_limit, write_parity
from bundler.build.volumewriter import Draft, kept_volume, write_volume
from bundler.domain.manifest import (
    Block,
    Entry,
    LooseFile,
    Manifest,
    ParitySet,
    Part,
    VolumeEntry,
)
from bundler.domain.sizes import human
from bundler.errors import SpaceError, StateError, disk_errors
from bundler.format import layout
from bundler.format.blocks import block_count, block_size_for, content_id_of
from bundler.format.checksums import checksums
from bundler.format.codec import to_bytes
from bundler.format.digests import sha256_hex
from bundler.format.ingest import BlockDigests, joined_crc32
from bundler.format.safepath import check_paths
from bundler.format.shards import Slice, member_names, plan_apart
from bundler.format.workers import in_parallel
from bundler.ports import Member, Progress, Signer, Task, VolumeFormat

# One waits for the disk while another reads and hashes.
WRITERS = 4
_MARKER = ".airbundle-build"


@dataclass(frozen=True)
class Packed:
    """What the manifest says of the volumes."""

    volumes: tuple[VolumeEntry, ...]
    entries: tuple[Entry, ...]
    parity: tuple[ParitySet, ...]


class Packer:
    """Packs one bundle."""

    def __init__(
        self, *, out: Path, limit: int, form: VolumeFormat, progress: Progress, bundle: str,
        parity: int = 0, held: frozenset[str] = frozenset(), apart: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self.out = out
        self.work = out.with_name(out.name + ".partial")
        self._limit = usable_limit(limit, bundle, form, parity=bool(parity), sealable=bool(apart))
        self._apart = apart
        self._parity = parity
        self._held = held
        self.block_size = block_size_for(limit)
        self._form = form
        self._progress = progress
        self._bundle = bundle

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the work folder: two builds would write into each other's volumes.

        Raises:
            StateError: another build holds it, or the folder is not one that a build made.
        """
        marker = self.work / _MARKER
        with disk_errors("creating", self.work):
            if self.work.exists() and not marker.exists() and not self._is_ours():
                raise StateError(
                    f"{self.work}: is not left by a build, and a build would empty it",
                    hint="Move it away, or give another --out.",
                )
            self.work.mkdir(parents=True, exist_ok=True)
            file = marker.open("a")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as cause:
                raise StateError(
                    f"{self.out}: another build writes here", hint="Wait until it has ended."
                ) from cause
            yield

    def pack(self, files: Sequence[Fetched]) -> Packed:
        """Write the volumes and give what the manifest says of them.

        Raises:
            SpaceError: no room on the disk, or the volume size is too small.
            IntegrityError: a source file changed while it was packed.
            FormatError: a path cannot be in a bundle.
        """
        everything = sorted(files, key=lambda item: item.path)
        check_paths(item.path for item in everything)
        ordered = [item for item in everything if not self._is_held(item)]
        drafts = self.plan(ordered)
        check_paths(draft.name for draft in drafts)
        check_paths(member.name for draft in drafts for member in draft.members)
        sets = parity_sets(self._bundle, [draft.name for draft in drafts], self._parity)
        largest = max((draft.size for draft in drafts), default=0)
        # Parity is written twice: as it is coded, and then into its volume.
        extra = 2 * largest * sum(len(one.parity) for one in sets)
        self._check_room(sum(draft.size for draft in drafts) + extra)
        names = [layout.parity_name(self._bundle, i, self._form.suffix)
                 for i in range(1, 1 + sum(len(one.parity) for one in sets))]  # fmt: skip
        self._remove_strangers({draft.name for draft in drafts} | set(names))
        volumes = self._write_all(drafts, ordered, "pack")
        entries = [*entries_of(ordered, drafts)]
        entries += [_entry(item, ()) for item in everything if self._is_held(item)]
        entries.sort(key=lambda entry: entry.path)
        if sets:
            with self._progress.task("parity", sum(draft.size for draft in drafts)) as task:
                parity = [
                    item
                    for one in sets
                    for item in write_parity(one, self.work, self.block_size, task)
                ]
            more = self._parity_drafts(parity, names)
            volumes += self._write_all(more, parity, "pack parity")
            entries += entries_of(parity, more)
            for item in parity:
                item.blob.path.unlink()
        return Packed(tuple(volumes), tuple(entries), sets)

    def _write_all(
        self, drafts: Sequence[Draft], files: Sequence[Fetched], label: str
    ) -> list[VolumeEntry]:
        def write(draft: Draft, shared: Task) -> str:
            return self._write(draft, files, shared)

        with self._progress.task(label, sum(draft.size for draft in drafts)) as task:
            sums = in_parallel(WRITERS, write, drafts, task)
        return [
            VolumeEntry(name=draft.name, size=draft.size, sha256=sha256, open=draft.open)
            for draft, sha256 in zip(drafts, sums, strict=True)
        ]

    def _parity_drafts(self, parity: Sequence[Fetched], names: Sequence[str]) -> list[Draft]:
        """One volume for each parity file."""
        drafts: list[Draft] = []
        for number, (item, name) in enumerate(zip(parity, names, strict=True)):
            blocks = item.blob.digests.blocks
            member = Member(item.path, item.blob.digests.size, joined_crc32(blocks))
            piece, regions = Slice(number, 0, member.size), self._form.layout([member])
            drafts.append(Draft(name, (piece,), (member,), (blocks,), regions))
        return drafts

    def finish(self, manifest: Manifest, loose: dict[str, bytes], signer: Signer | None) -> str:
        """Write manifest, signature, checksums and loose files, and give the bundle its name.

        Returns:
            The manifest's SHA-256.
        """
        data = to_bytes(manifest)
        signature = signer.sign(data) if signer else None
        files = {**loose, layout.MANIFEST: data}
        if signature is not None:
            files[layout.SIGNATURE] = signature
        files[layout.CHECKSUMS] = checksums(
            manifest, sha256_hex(data), sha256_hex(signature) if signature is not None else None
        )
        for name, content in files.items():
            with disk_errors("writing", path := self.work / name):
                path.write_bytes(content)
                _sync(path)
        with disk_errors("renaming", self.work):
            for side in [*self.work.glob("*.done"), self.work / _MARKER]:
                side.unlink()
            _sync(self.work)
            self.work.rename(self.out)
            _sync(self.out.parent)
        return sha256_hex(data)

    def plan(self, files: Sequence[Fetched]) -> list[Draft]:
        """What lies where, byte by byte, from the files' digests alone; files are in path order."""
        sizes = [(item.path, item.blob.digests.size) for item in files]
        first, volumes = plan_apart(sizes, self._apart, self._limit, self._form, self.block_size)
        names = member_names(sizes, volumes)
        drafts = []
        for number, slices in enumerate(volumes, 1):
            blocks = tuple(self._blocks(files[piece.file], piece) for piece in slices)
            members = tuple(
                Member(names[piece], piece.size, joined_crc32(of_piece))
                for piece, of_piece in zip(slices, blocks, strict=True)
            )
            name = layout.volume_name(self._bundle, number, len(volumes), self._form.suffix)
            regions = self._form.layout(members)
            drafts.append(Draft(name, slices, members, blocks, regions, number <= first))
        return drafts

    def _is_ours(self) -> bool:
        """Whether all that lies in the work folder is a build's: its marker goes before its name."""
        return all(
            path.name in layout.BESIDE or path.name.startswith(f"{self._bundle}.")
            for path in self.work.iterdir()
        )

    def _is_held(self, item: Fetched) -> bool:
        digests = item.blob.digests
        return item.kind in ("wheel", "model", "file") and (
            content_id_of(digests.size, [block.sha256 for block in digests.blocks]) in self._held
        )

    def _blocks(self, item: Fetched, piece: Slice) -> tuple[BlockDigests, ...]:
        first = piece.start // self.block_size
        return item.blob.digests.blocks[first : first + block_count(piece.size, self.block_size)]

    def _check_room(self, need: int) -> None:
        with disk_errors("creating", self.work):
            self.work.mkdir(parents=True, exist_ok=True)
        there = sum(path.stat().st_size for path in self.work.iterdir())
        free = shutil.disk_usage(self.work).free
        if free + there < need:
            raise SpaceError(
                f"{self.work.parent}: {human(free)} free, the volumes need {human(need - there)}",
                hint="Free space, or give another --out.",
            )

    def _remove_strangers(self, names: set[str]) -> None:
        keep = names | {f"{name}.done" for name in names} | {_MARKER}
        for path in self.work.iterdir():
            if path.name not in keep:
                path.unlink()

    def _write(self, draft: Draft, files: Sequence[Fetched], task: Task) -> str:
        path = self.work / draft.name
        done = path.with_name(path.name + ".done")
        kept = kept_volume(path, done, draft)
        if kept:
            task.advance(draft.size)
            return kept
        partial = path.with_name(path.name + ".partial")
        sha256 = write_volume(partial, draft, files, task)
        with disk_errors("writing", done):
            done.write_text(f"{draft.identity} {sha256}\n")
            partial.rename(path)
        return sha256


def entries_of(files: Sequence[Fetched], drafts: Sequence[Draft]) -> Iterator[Entry]:
    """What the manifest says of planned files."""
    parts: dict[int, list[tuple[int, Part]]] = {}
    for draft in drafts:
        offsets = [region.offset for region in draft.regions if region.member is not None]
        for piece, member, offset in zip(draft.slices, draft.members, offsets, strict=True):
            part = Part(
                volume=draft.name,
                member=member.name,
                offset=offset,
                size=piece.size,
                crc32=member.crc32,
            )
            parts.setdefault(piece.file, []).append((piece.start, part))
    for number, item in enumerate(files):
        yield _entry(item, tuple(part for _, part in sorted(parts[number], key=lambda row: row[0])))


def _entry(item: Fetched, parts: tuple[Part, ...]) -> Entry:
    digests = item.blob.digests
    return Entry.model_validate(
        {
            "path": item.path,
            "kind": item.kind,
            "size": digests.size,
            "sha256": digests.sha256,
            "origin": item.origin,
            "blocks": tuple(Block(sha256=b.sha256, xxh3=b.xxh3) for b in digests.blocks),
            "parts": parts,
        }
    )


def loose_file(name: str, data: bytes) -> LooseFile:
    """What the manifest says of a file beside the volumes."""
    return LooseFile(name=name, size=len(data), sha256=sha256_hex(data))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
