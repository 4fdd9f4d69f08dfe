"""Finished volumes -> parity files, stripe by stripe."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bundler.build.fetch import Fetched
from bundler.build.store import Blob
from bundler.domain.manifest import MAX_SHARES, ParitySet
from bundler.errors import disk_errors
from bundler.format import layout
from bundler.format.erasure import code_of
from bundler.format.ingest import digest_file
from bundler.format.places import Place, read_padded
from bundler.format.sealing import sealed_size
from bundler.format.stripes import stripe_size
from bundler.ports import Task, VolumeFormat


def parity_room(bundle: str, form: VolumeFormat) -> int:
    """What a parity volume has beside its data: data volumes are smaller by as much."""
    return form.base_overhead() + form.overhead(layout.parity_path(bundle, 999))


def usable_limit(
    limit: int, bundle: str, form: VolumeFormat, *, parity: bool, sealable: bool
) -> int:
    """Most bytes of a data volume, so that its parity and its sealed form stay within the limit."""
    room = limit - (parity_room(bundle, form) if parity else 0)
    return room - (sealed_size(limit) - limit if sealable else 0)


def parity_sets(bundle: str, volumes: Sequence[str], count: int) -> tuple[ParitySet, ...]:
    """Which volumes protect each other: all of them, or several sets where a code has too few shares."""
    if not count or not volumes:
        return ()
    most = len(volumes) if count == 1 else MAX_SHARES - count
    groups = -(-len(volumes) // most)
    size = -(-len(volumes) // groups)
    sets = []
    for number in range(groups):
        first = number * count
        sets.append(
            ParitySet(
                code="xor" if count == 1 else "zfec",
                volumes=tuple(volumes[number * size : (number + 1) * size]),
                parity=tuple(layout.parity_path(bundle, first + i) for i in range(1, count + 1)),
            )
        )
    return tuple(sets)


def write_parity(one: ParitySet, work: Path, block_size: int, task: Task) -> list[Fetched]:
    """The parity files of a set, in the work folder beside its volumes.

    Raises:
        HostError: the code is not installed here.
        SpaceError, FileAccessError: of the disk.
    """
    code = code_of(one.code, len(one.volumes), len(one.parity))
    places = [work / name for name in one.volumes]
    outs = [work / (path.rpartition("/")[2] + ".raw") for path in one.parity]
    longest = max(place.stat().st_size for place in places)
    step = stripe_size(len(places) + len(outs))
    with ExitStack() as stack, disk_errors("writing", outs[0]):
        sources = [stack.enter_context(Place(place, place.name).open()) for place in places]
        targets = [stack.enter_context(out.open("wb")) for out in outs]
        for at in range(0, longest, step):
            length = min(step, longest - at)
            shares = [read_padded(source, at, length) for source in sources]
            for target, share in zip(targets, code.encode(shares), strict=True):
                target.write(share)
            task.advance(length * len(places))
    return [
        Fetched(path, "parity", "airbundle", Blob(out, digest_file(out, block_size)))
        for path, out in zip(one.parity, outs, strict=True)
    ]
