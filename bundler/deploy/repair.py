"""Lost and damaged volumes, rebuilt from the others and from parity; what is there is never changed.

Damage is known by runs of bytes, so more volumes than there is parity can be rebuilt where their damage
does not lie at the same place. Whether all can be rebuilt is known before anything is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from bundler.domain.manifest import Entry, Manifest, ParitySet
from bundler.domain.sizes import human
from bundler.errors import IntegrityError, StateError, disk_errors
from bundler.format.erasure import Code, code_of
from bundler.format.places import Place, Reader, read_padded
from bundler.format.rehearsal import instead, rehearsing
from bundler.format.spans import BlockSpan, Predicted, Span, placed_parts, volume_spans
from bundler.format.stripes import stripe_size
from bundler.format.volumes import find_faults, scan_volumes
from bundler.ports import Progress, Task, VolumeFormat


@dataclass
class _Share:
    """One share of a code: a volume, or the parity inside one.

    `start` is where the share begins in the volume file. `bad` are runs of the share that cannot be
    believed, `literals` bytes that follow from the manifest.
    """

    volume: str
    place: Place | None
    start: int
    size: int
    bad: list[tuple[int, int]] = field(default_factory=list)
    literals: list[tuple[int, bytes]] = field(default_factory=list)

    def lost(self, at: int, length: int) -> bool:
        """Whether a run of it cannot be believed."""
        return any(start < at + length and at < end for start, end in self.bad)

    def read(self, reader: Reader | None, at: int, length: int) -> bytes:
        """A run that is not lost."""
        inside = max(0, min(length, self.size - at))
        data = bytearray(length)
        if reader is not None and inside:
            data[:inside] = read_padded(reader, self.start + at, inside)
        for offset, literal in self.literals:
            low, high = max(offset, at), min(offset + len(literal), at + length)
            if low < high:
                data[low - at : high - at] = literal[low - offset : high - offset]
        return bytes(data)


@dataclass(frozen=True)
class Repairer:
    """Everything that repairing needs. `places` are the volumes that are there."""

    manifest: Manifest
    places: Mapping[str, Place]
    form: VolumeFormat
    progress: Progress

    def repair(self, out: Path) -> tuple[str, ...]:
        """Rebuild what is lost or damaged into another folder.

        Returns:
            The names of the rebuilt volumes; none when nothing was wrong.

        Raises:
            IntegrityError: too much is lost; nothing was written.
            StateError: the bundle has no parity.
            HostError: the code is not installed here.
        """
        if not self.manifest.parity:
            raise StateError(
                "the bundle has no parity volumes",
                hint="Copy the volumes again from the source; `volumes.parity` adds parity.",
            )
        faults = self._faults()
        if not faults:
            return ()
        sets = [(one, self._shares(one, faults)) for one in self.manifest.parity]
        for one, shares in sets:
            self._check(one, shares)
        if not rehearsing():
            self._rebuild(sets, faults, out)
        damaged = [volume for volume in self.manifest.volumes if volume.name in faults]
        for volume in damaged:
            instead("write", out / volume.name, volume.size)
        return tuple(volume.name for volume in damaged)

    def _rebuild(
        self,
        sets: Sequence[tuple[ParitySet, Sequence[_Share]]],
        faults: Mapping[str, Sequence[Span]],
        out: Path,
    ) -> None:
        with disk_errors("creating", out):
            out.mkdir(parents=True, exist_ok=True)
        total = sum(v.size for v in self.manifest.volumes if v.name in faults)
        with self.progress.task("repair", 2 * total) as task:
            rebuilt = dict(self.places)
            for one, shares in sets:
                for share in shares[: len(one.volumes)]:
                    if share.volume in faults:
                        rebuilt[share.volume] = Place(
                            self._data_volume(one, shares, share, out, task), share.volume
                        )
                for index, share in enumerate(shares[len(one.volumes) :]):
                    if share.volume in faults:
                        self._parity_volume(one, index, share, rebuilt, out, task)

    def _faults(self) -> dict[str, list[Span]]:
        """Volume -> its bad spans; of a missing volume all of them."""
        found: dict[str, list[Span]] = {}
        total = sum(v.size for v in self.manifest.volumes if v.name in self.places)
        with self.progress.task("look for damage", total) as task:
            for fault in find_faults(self.places, self.manifest, self.form, task):
                spans = found.setdefault(fault.volume, [])
                if fault.span is not None:
                    spans.append(fault.span)
        for volume in self.manifest.volumes:
            if volume.name not in self.places:
                found[volume.name] = list(self._spans(volume.name))
        return found

    def _spans(self, name: str) -> Sequence[Span]:
        volume = next(v for v in self.manifest.volumes if v.name == name)
        parts = placed_parts(self.manifest)[name]
        return volume_spans(volume, parts, self.form, self.manifest.block_size)

    def _shares(self, one: ParitySet, faults: Mapping[str, Sequence[Span]]) -> list[_Share]:
        sizes = {volume.name: volume.size for volume in self.manifest.volumes}
        shares = []
        for name in one.volumes:
            share = _Share(name, self.places.get(name), 0, sizes[name])
            share.literals = [
                (s.offset, s.literal) for s in self._spans(name) if isinstance(s, Predicted)
            ]
            share.bad = [
                (s.offset, s.offset + s.size)
                for s in faults.get(name, ())
                if isinstance(s, BlockSpan) and s.size
            ]
            shares.append(share)
        for entry in self._parity_entries(one):
            [part] = entry.parts
            share = _Share(part.volume, self.places.get(part.volume), part.offset, entry.size)
            share.bad = [
                (s.start, s.start + s.size)
                for s in faults.get(part.volume, ())
                if isinstance(s, BlockSpan)
            ]
            shares.append(share)
        return shares

    def _parity_entries(self, one: ParitySet) -> list[Entry]:
        known = {entry.path: entry for entry in self.manifest.entries}
        return [known[path] for path in one.parity]

    def _check(self, one: ParitySet, shares: Sequence[_Share]) -> None:
        """Say honestly, before the work, what cannot be rebuilt."""
        for low, high in pairwise(_edges(shares)):
            lost = [share.volume for share in shares if share.lost(low, high - low)]
            if len(lost) > len(one.parity):
                raise IntegrityError(
                    f"cannot be rebuilt: {len(lost)} volumes are lost or damaged at the same place,"
                    f" and parity is for {len(one.parity)}: {', '.join(lost)}",
                    hint="Copy at least"
                    f" {len(lost) - len(one.parity)} of them again, then repair the rest.",
                    details=[f"{human(high - low)} at byte {low} of each"],
                )

    def _data_volume(
        self, one: ParitySet, shares: Sequence[_Share], share: _Share, out: Path, task: Task
    ) -> Path:
        code = code_of(one.code, len(one.volumes), len(one.parity))
        number = list(shares).index(share)

        def pieces() -> Iterator[bytes]:
            with ExitStack() as stack:
                readers = [_opened(stack, other) for other in shares]
                for at, length in _stripes(shares, share.size):
                    if share.lost(at, length):
                        yield _decoded(code, shares, readers, number, at, length, len(one.volumes))
                    else:
                        yield share.read(readers[number], at, length)

        return self._write(share.volume, pieces(), out, task)

    def _parity_volume(
        self, one: ParitySet, index: int, share: _Share, rebuilt: Mapping[str, Place], out: Path,
        task: Task,
    ) -> None:  # fmt: skip
        """Coded again from the volumes, which are whole by now."""
        code = code_of(one.code, len(one.volumes), len(one.parity))

        def pieces() -> Iterator[bytes]:
            spans = self._spans(share.volume)
            head = [s for s in spans if isinstance(s, Predicted) and s.offset < share.start]
            yield b"".join(span.literal for span in head)
            with ExitStack() as stack:
                files = [stack.enter_context(rebuilt[n].open()) for n in one.volumes]
                step = stripe_size(len(one.volumes) + len(one.parity))
                for at in range(0, share.size, step):
                    length = min(step, share.size - at)
                    data = [read_padded(file, at, length) for file in files]
                    yield code.encode(data)[index]
            tail = [s for s in spans if isinstance(s, Predicted) and s.offset >= share.start]
            yield b"".join(span.literal for span in tail)

        self._write(share.volume, pieces(), out, task)

    def _write(self, name: str, pieces: Iterator[bytes], out: Path, task: Task) -> Path:
        partial, final = out / f"{name}.partial", out / name
        try:
            with disk_errors("writing", partial), partial.open("wb") as file:
                for piece in pieces:
                    file.write(piece)
                    task.advance(len(piece))
                file.flush()
                os.fsync(file.fileno())
            wrong = scan_volumes({name: Place(partial, name)}, self.manifest, self.form, task)
            if wrong:
                raise IntegrityError(f"{name}: what was rebuilt is wrong: {wrong[0].line()}")
            with disk_errors("renaming", final):
                partial.replace(final)
        except BaseException:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise
        return final


def _edges(shares: Sequence[_Share]) -> list[int]:
    """Where damage begins or ends in any share."""
    return sorted({edge for share in shares for run in share.bad for edge in run})


def _stripes(shares: Sequence[_Share], size: int) -> Iterator[tuple[int, int]]:
    """Offsets and lengths; in none of them a share is damaged in part."""
    cuts = {edge for edge in _edges(shares) if edge < size}
    cuts |= set(range(0, size, stripe_size(len(shares))))
    for low, high in pairwise([*sorted(cuts), size]):
        yield low, high - low


def _opened(stack: ExitStack, share: _Share) -> Reader | None:
    return None if share.place is None else stack.enter_context(share.place.open())


def _decoded(
    code: Code, shares: Sequence[_Share], readers: Sequence[Reader | None], number: int, at: int,
    length: int, data: int,
) -> bytes:  # fmt: skip
    """A lost run of one volume, from as many other shares as the code needs."""
    there: dict[int, bytes] = {}
    for other, share in enumerate(shares):
        if len(there) < data and not share.lost(at, length):
            there[other] = share.read(readers[other], at, length)
    return code.decode(there, [number])[number]
