"""WheelReader: a wheel as an archive, without bringing all of it.

Of a wheel on an index only the blocks that are read are asked for, by HTTP ranges (RFC 9110, 14):
its central directory and a handful of sources are about a megabyte of vLLM's 433.
"""

from __future__ import annotations

import io
import re
import time
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import unquote, urlsplit

import requests
import urllib3

from bundler.adapters.fetch_http.session import ATTEMPTS, RETRY_STATUS, IndexSession, pause_s, plain
from bundler.domain.hostindex import HostIndex
from bundler.domain.lock import LockedWheel
from bundler.domain.sizes import human
from bundler.errors import SourceError, disk_errors
from bundler.format.untrusted import shown
from bundler.format.wheelzip import DAMAGE, open_wheel

_BLOCK = 256 * 1024
# A member that is read is small; its blocks are kept, so that a seek back asks for nothing.
_KEPT_BLOCKS = 64
# Looking into a wheel takes some megabytes; a directory that lies about its size would take all.
_MOST = 256 * 2**20
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


class WheelArchives:
    """Opens wheels: from the store when they are there, else where the lock says that they lie.

    Args:
        index: certificates and credentials of this host.
        stored: gives the file that holds the bytes of a SHA-256, or None.
    """

    def __init__(self, index: HostIndex, stored: Callable[[str], Path | None]) -> None:
        self._session = IndexSession(index)
        self._stored = stored

    @contextmanager
    def open(self, wheel: LockedWheel) -> Iterator[zipfile.ZipFile]:
        """The wheel as an archive.

        Raises:
            SourceError: it cannot be had, it is no archive, or its server gives no ranges.
        """
        with self._file(wheel) as file:
            try:
                archive = open_wheel(file)
            except zipfile.BadZipFile as cause:
                raise _broken(wheel, cause) from cause
            try:
                with archive:
                    yield archive
            # Only what damage does: other errors are those of the code that reads.
            except DAMAGE as cause:
                raise _broken(wheel, cause) from cause

    @contextmanager
    def _file(self, wheel: LockedWheel) -> Iterator[BinaryIO]:
        path = self._stored(wheel.sha256)
        if path is None and wheel.url.startswith("file:"):
            path = Path(unquote(urlsplit(wheel.url).path))
            if not path.is_file():
                raise SourceError(f"{wheel.filename}: {path}: no such file")
        if path is None and wheel.url == "archive":
            raise SourceError(
                f"{wheel.filename}: is not in the store",
                hint="`airbundle build` makes it from the engine's archive and looks then.",
            )
        if path is None:
            try:
                urlsplit(wheel.url)
            except ValueError as cause:
                raise SourceError(
                    f"{wheel.filename}: {wheel.url!r} is no address: {cause}"
                ) from cause
            remote = RangeFile(self._session, wheel.url)
            # Buffered: zipfile reads a few bytes at a time.
            yield cast(BinaryIO, io.BufferedReader(remote, _BLOCK))
            return
        with disk_errors("reading", path), path.open("rb") as file:
            yield file


def _broken(wheel: LockedWheel, cause: Exception) -> SourceError:
    return SourceError(
        f"{wheel.filename}: is no wheel: {shown(str(cause))}",
        hint="The index or find-links page serves a broken file; tell its owner.",
    )


class RangeFile(io.RawIOBase):
    """A file on a server, read by ranges. Counts what it brought in `transferred`, bytes."""

    def __init__(self, session: IndexSession, url: str) -> None:
        super().__init__()
        self._session = session
        self._url = url
        self._at = 0
        self._size = 0
        self._etag: str | None = None
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self.transferred = 0
        # The end first: the central directory lies there, and the answer states the whole size.
        tail = self._fetch(None)
        start = self._size - len(tail)
        for block in range(-(-start // _BLOCK), -(-self._size // _BLOCK)):
            self._blocks[block] = tail[block * _BLOCK - start : (block + 1) * _BLOCK - start]

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is asked for."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        """Where it is."""
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Read up to the end of a block."""
        if self._at >= self._size:
            return 0
        number, skip = divmod(self._at, _BLOCK)
        piece = self._block(number)[skip : skip + len(buffer)]
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            last = min((number + 1) * _BLOCK, self._size) - 1
            self._blocks[number] = self._fetch((number * _BLOCK, last))
            if len(self._blocks) > _KEPT_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return self._blocks[number]

    def _fetch(self, wanted: tuple[int, int] | None) -> bytes:
        """First and last byte of what is wanted; None for the last block's worth."""
        if self.transferred > _MOST:
            raise SourceError(f"{plain(self._url)}: over {human(_MOST)} to look into one wheel")
        asked = f"bytes=-{_BLOCK}" if wanted is None else f"bytes={wanted[0]}-{wanted[1]}"
        reason = ""
        for attempt in range(ATTEMPTS):
            try:
                with self._session.get(self._url, {"Range": asked}) as answer:
                    if answer.status_code not in RETRY_STATUS:
                        return self._body(answer, wanted)
                    reason = f"HTTP {answer.status_code} {answer.reason}"
            except (requests.RequestException, urllib3.exceptions.HTTPError) as cause:
                reason = str(cause) or type(cause).__name__
            time.sleep(pause_s(attempt))
        raise SourceError(f"{plain(self._url)}: {reason}")

    def _body(self, answer: requests.Response, wanted: tuple[int, int] | None) -> bytes:
        where = plain(self._url)
        if answer.status_code == 200:
            raise SourceError(
                f"{where}: the server gives no ranges, so that the wheel cannot be looked into",
                hint="`airbundle build` fetches it whole and looks then.",
            )
        if answer.status_code != 206:
            raise SourceError(f"{where}: HTTP {answer.status_code} {answer.reason}")
        stated = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        first, last, size = map(int, stated.groups()) if stated else (0, 0, 0)
        etag = answer.headers.get("ETag")
        if not size or (self._size and (size, etag) != (self._size, self._etag)):
            raise SourceError(f"{where}: the file changed while it was read, or states no size")
        if (first, last) != (wanted or (max(0, size - _BLOCK), size - 1)):
            raise SourceError(f"{where}: the server sent another range than asked")
        # One byte more than a block shows a server that sends without end.
        data: bytes = answer.raw.read(_BLOCK + 1)
        self.transferred += len(data)
        if len(data) > _BLOCK:
            raise SourceError(f"{where}: the server sent more than was asked for")
        if len(data) != last + 1 - first:
            # Without a stated length a cut line looks like an end.
            raise requests.ConnectionError(f"the connection ended after {len(data)} bytes")
        self._size, self._etag = size, etag
        return data
