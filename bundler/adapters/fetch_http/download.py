"""Downloader: HTTP(S) with resume, and `file:` addresses, through requests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import requests
import urllib3

from bundler.adapters.fetch_http.session import ATTEMPTS, RETRY_STATUS, IndexSession, pause_s, plain
from bundler.domain.hostindex import HostIndex
from bundler.errors import SourceError, disk_errors
from bundler.format.digests import CHUNK, read_chunks
from bundler.ports import Task


class HttpDownloader:
    """Appends to a partial file from where it ends, and tries again after a broken connection."""

    def __init__(self, index: HostIndex) -> None:
        self._session = IndexSession(index)

    def download(self, url: str, into: Path, task: Task) -> None:
        """Complete the file `into`.

        Raises:
            SourceError: the address answers with an error, or the connection breaks again and again.
            SpaceError: the disk is full.
        """
        try:
            urlsplit(url)
        except ValueError as cause:
            raise SourceError(f"{url!r} is no address: {cause}") from cause
        if url.startswith("file:"):
            self._copy(Path(unquote(urlsplit(url).path)), into, task)
            return
        reason = ""
        for attempt in range(ATTEMPTS):
            try:
                if self._attempt(url, into, task):
                    return
                reason = "the server is busy"
            except (requests.RequestException, urllib3.exceptions.HTTPError) as cause:
                reason = str(cause) or type(cause).__name__
            time.sleep(pause_s(attempt))
        raise SourceError(f"{plain(url)}: {reason}")

    def _attempt(self, url: str, into: Path, task: Task) -> bool:
        have = into.stat().st_size if into.exists() else 0
        with self._session.get(url, {"Range": f"bytes={have}-"} if have else {}) as answer:
            if answer.status_code in RETRY_STATUS:
                return False
            if answer.status_code == 416:
                # All is there already, or the file grew past what the server has: the digest tells.
                return True
            if answer.status_code not in (200, 206):
                raise SourceError(f"{plain(url)}: HTTP {answer.status_code} {answer.reason}")
            if answer.status_code == 200 and have:
                task.advance(-have)
            mode = "ab" if answer.status_code == 206 else "wb"
            with disk_errors("writing", into):
                file = into.open(mode, buffering=0)
            with file:
                for chunk in _body(answer):
                    # Not around the loop: requests' own errors are OSErrors too.
                    with disk_errors("writing", into):
                        file.write(chunk)
                    task.advance(len(chunk))
        return True

    @staticmethod
    def _copy(source: Path, into: Path, task: Task) -> None:
        if not source.is_file():
            raise SourceError(f"{source}: no such file")
        have = into.stat().st_size if into.exists() else 0
        with disk_errors("writing", into), into.open("ab") as file:
            for chunk in read_chunks(source, have):
                file.write(chunk)
                task.advance(len(chunk))


class _Incomplete(requests.RequestException):
    """The body ended before the promised length."""


def _body(answer: requests.Response) -> Iterator[bytes]:
    """Pieces as they arrive: of a larger one, all would be lost when the line is cut."""
    promised = answer.headers.get("Content-Length")
    got = 0
    while chunk := answer.raw.read1(CHUNK):
        got += len(chunk)
        yield chunk
    if promised is not None and got < int(promised):
        raise _Incomplete(f"the connection ended after {got} of {promised} bytes")
