"""Pure: file sizes and a volume limit -> which bytes of which file go to which volume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bundler.errors import SpaceError
from bundler.format import layout
from bundler.ports import VolumeFormat

# The longest suffix that a member name can get.
_LONGEST = ".part99999of99999"


@dataclass(frozen=True)
class Slice:
    """A run of a file's bytes: file number, where it starts in the file, how long it is."""

    file: int
    start: int
    size: int


@dataclass
class _Filling:
    room: int
    slices: list[Slice] = field(default_factory=list)


def plan_volumes(
    files: Sequence[tuple[str, int]], limit: int, form: VolumeFormat, block_size: int
) -> tuple[tuple[Slice, ...], ...]:
    """Fill volumes in the order of the files, about equally.

    A file is cut only where a block ends, and a file of one block never: it moves to the next volume
    whole, so that small files stay usable straight from a stick. As many volumes as the limit asks
    for, and then none much smaller than the others: a last volume of a few bytes is one more thing to
    carry, and parity costs as much as the largest.

    Args:
        files: path in the bundle and size in bytes.
        limit: most bytes in one volume.
        form: the volume format, for its overhead.
        block_size: bytes of a block.

    Raises:
        SpaceError: the limit leaves no room for data.
    """
    costs = [form.overhead(path + _LONGEST) for path, _ in files]
    base = form.base_overhead()
    for (path, _), cost in zip(files, costs, strict=True):
        if limit - base < cost + block_size:
            raise SpaceError(
                f"volumes of {limit} bytes are too small for {path}",
                hint="Give a larger volumes.size.",
            )
    sizes = [size for _, size in files]
    best = _fill(sizes, costs, limit - base, block_size)
    low, high = max(costs, default=0) + block_size, limit - base
    # The smallest capacity that needs no more volumes: none is left with a small rest.
    while len(best) > 1 and high - low > block_size:
        middle = (low + high) // 2
        tried = _fill(sizes, costs, middle, block_size)
        if len(tried) <= len(best):
            best, high = tried, middle
        else:
            low = middle
    return tuple(tuple(volume.slices) for volume in best)


def plan_apart(
    files: Sequence[tuple[str, int]],
    apart: frozenset[str],
    limit: int,
    form: VolumeFormat,
    block_size: int,
) -> tuple[int, tuple[tuple[Slice, ...], ...]]:
    """As `plan_volumes`, with the files of some paths in volumes of their own, which come first.

    Returns:
        How many volumes those are, and all volumes.
    """
    numbers = [
        [number for number, (path, _) in enumerate(files) if (path in apart) == wanted]
        for wanted in (True, False)
    ]
    planned = [
        tuple(
            tuple(Slice(group[piece.file], piece.start, piece.size) for piece in volume)
            for volume in plan_volumes([files[at] for at in group], limit, form, block_size)
        )
        for group in numbers
    ]
    return len(planned[0]), (*planned[0], *planned[1])


def _fill(
    sizes: Sequence[int], costs: Sequence[int], capacity: int, block_size: int
) -> list[_Filling]:
    volumes: list[_Filling] = []
    here = _Filling(0)
    for number, (size, cost) in enumerate(zip(sizes, costs, strict=True)):
        start = 0
        while True:
            room, left = here.room - cost, size - start
            take = left if left <= room else room - room % block_size if left > block_size else 0
            if take > 0 or left == 0 <= room:
                here.slices.append(Slice(number, start, take))
                here.room -= take + cost
                start += take
                if start >= size:
                    break
            here = _Filling(capacity)
            volumes.append(here)
    return volumes


def member_names(
    files: Sequence[tuple[str, int]], volumes: Sequence[Sequence[Slice]]
) -> dict[Slice, str]:
    """Name of each slice inside its volume."""
    by_file: dict[int, list[Slice]] = {}
    for volume in volumes:
        for piece in volume:
            by_file.setdefault(piece.file, []).append(piece)
    return {
        piece: layout.member_name(files[number][0], index, len(pieces))
        for number, pieces in by_file.items()
        for index, piece in enumerate(pieces, 1)
    }
