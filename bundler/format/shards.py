"""Pure: file sizes and a volume limit -> which bytes of which file go to which volume."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from bundler.errors import SpaceError
from bundler.format import layout
from bundler.ports import VolumeFormat

# A file up to this size is never cut: it moves to the next volume whole, so that small files stay
# usable straight from a stick. At most this much room, or a quarter of the volume, is left unused.
KEEP_WHOLE = 64 * 2**20


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
    files: Sequence[tuple[str, int]], limit: int, form: VolumeFormat
) -> tuple[tuple[Slice, ...], ...]:
    """Fill volumes in the order of the files.

    Args:
        files: path in the bundle and size in bytes.
        limit: most bytes in one volume.
        form: the volume format, for its overhead.

    Raises:
        SpaceError: the limit leaves no room for data.
    """
    capacity = limit - form.base_overhead()
    keep_whole = min(KEEP_WHOLE, limit // 4)
    volumes = [_Filling(capacity)]
    for number, (path, size) in enumerate(files):
        # `.partNNNNofNNNN` is the longest suffix that a member name can get.
        cost = form.overhead(path + ".part99999of99999")
        if capacity <= cost + 1:
            raise SpaceError(
                f"volumes of {limit} bytes are too small for {path}",
                hint="Give a larger volumes.size.",
            )
        start = 0
        while True:
            here = volumes[-1]
            left = size - start
            room = here.room - cost
            if left <= room or (room > 0 and left > keep_whole):
                take = min(left, room)
                here.slices.append(Slice(number, start, take))
                here.room -= take + cost
                start += take
                if start >= size:
                    break
            volumes.append(_Filling(capacity))
    return tuple(tuple(volume.slices) for volume in volumes if volume.slices)


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
