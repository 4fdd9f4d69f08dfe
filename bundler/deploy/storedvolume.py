"""A volume made again from what was imported of it: repair needs no stick that has gone back already."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.root import Root
from bundler.deploy.storing import StoreSink
from bundler.domain.manifest import Manifest
from bundler.errors import disk_errors
from bundler.format.blocks import content_id
from bundler.format.places import Place, Reader
from bundler.format.spans import BlockSpan, Predicted, Span, placed_parts, volume_spans
from bundler.ports import VolumeFormat


@dataclass(frozen=True)
class StoredPlace(Place):
    """A volume whose every block is in a root's store; `path` is the root, for errors."""

    root: Root | None = None
    spans: tuple[Span, ...] = ()

    def size(self) -> int:
        """Bytes of the volume."""
        return self.spans[-1].offset + self.spans[-1].size

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Read from it.

        Raises:
            FileAccessError: the operating system refuses.
        """
        with ExitStack() as stack:
            yield _StoredReader(self, stack)


class _StoredReader:
    def __init__(self, place: StoredPlace, stack: ExitStack) -> None:
        self._spans = [span for span in place.spans if span.size]
        self._starts = [span.offset for span in self._spans]
        self._root = place.root
        self._stack = stack
        self._open: tuple[str, int] = ("", -1)

    def read_into(self, buffer: memoryview, at: int) -> int:
        """See `Reader`."""
        number = bisect_right(self._starts, at) - 1
        span = self._spans[number]
        left = span.offset + span.size - at
        if left <= 0:
            return 0
        piece = buffer[: min(len(buffer), left)]
        if isinstance(span, Predicted):
            start = at - span.offset
            piece[:] = span.literal[start : start + len(piece)]
            return len(piece)
        return os.preadv(self._handle(span), [piece], span.start + at - span.offset)

    def _handle(self, span: BlockSpan) -> int:
        name = content_id(span.entry)
        if self._open[0] != name and self._root is not None:
            self._stack.close()
            path = _file(self._root, name)
            with disk_errors("opening", path):
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._stack.callback(os.close, handle)
            self._open = (name, handle)
        return self._open[1]


def stored_volumes(root: Root, manifest: Manifest, form: VolumeFormat) -> dict[str, StoredPlace]:
    """The volumes of which the root has every block. They are checked as any other.

    Raises:
        FormatError: see `volume_spans`.
    """
    sink = StoreSink(root, manifest)
    parts = placed_parts(manifest)
    payload = {entry.path for entry in manifest.payload}
    found: dict[str, StoredPlace] = {}
    for volume in manifest.volumes:
        spans = volume_spans(volume, parts[volume.name], form, manifest.block_size)
        blocks = [span for span in spans if isinstance(span, BlockSpan)]
        if all(b.entry.path in payload and not sink.lacks(b.entry, b.index) for b in blocks):
            found[volume.name] = StoredPlace(root.path, volume.name, None, root, spans)
    return found


def _file(root: Root, name: str) -> Path:
    whole = root.object(name)
    return whole if whole.is_file() else root.partial(name)
