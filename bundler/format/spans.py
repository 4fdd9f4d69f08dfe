"""Where every byte of a volume comes from: predicted bytes, and blocks of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bundler.domain.manifest import Block, Entry, Manifest, Part, VolumeEntry
from bundler.errors import FormatError
from bundler.format.blocks import block_count
from bundler.ports import Member, VolumeFormat


@dataclass(frozen=True)
class PlacedPart:
    """A part, its entry, and where in the entry's file it starts."""

    entry: Entry
    part: Part
    start: int


@dataclass(frozen=True)
class Predicted:
    """A run of a volume's bytes that follows from the manifest."""

    offset: int
    size: int
    label: str
    literal: bytes


@dataclass(frozen=True)
class BlockSpan:
    """Where a block of a file lies in a volume.

    `index` is the block's number in its file, `start` where it begins there.
    """

    offset: int
    size: int
    label: str
    entry: Entry
    index: int
    start: int

    @property
    def block(self) -> Block:
        """What the manifest says of the block."""
        return self.entry.blocks[self.index]


Span = Predicted | BlockSpan


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


def volume_spans(
    volume: VolumeEntry, parts: Sequence[PlacedPart], form: VolumeFormat, block_size: int
) -> tuple[Span, ...]:
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
    spans: list[Span] = []
    for region in regions:
        if region.member is None:
            spans.append(Predicted(region.offset, region.size, region.label, region.literal or b""))
        else:
            spans += _block_spans(parts[region.member], block_size)
    return tuple(spans)


def block_numbers(placed: PlacedPart, block_size: int) -> range:
    """Numbers of the blocks in a part."""
    first = placed.start // block_size
    return range(first, first + block_count(placed.part.size, block_size))


def _block_spans(placed: PlacedPart, block_size: int) -> Iterator[BlockSpan]:
    """The blocks of a part; an empty file's part has its one empty block."""
    entry, part = placed.entry, placed.part
    for at in range(0, max(part.size, 1), block_size):
        start = placed.start + at
        size = min(block_size, part.size - at)
        whole = len(entry.blocks) == 1
        label = part.member if whole else f"{entry.path}: bytes {start} to {start + size - 1}"
        index = start // block_size
        yield BlockSpan(part.offset + at, size, label, entry, index, start)
