"""Downloader: HTTP(S) with resume, and `file:` addresses, through requests.

requests reads proxies and .netrc from the environment as pip does; certificates and trusted hosts
come from the host's pip and uv configuration, and so do credentials that an index address holds.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
import truststore
import urllib3

from bundler.errors import SourceError, disk_errors
from bundler.format.digests import CHUNK, read_chunks
from bundler.ports import HostIndex, Task

_ATTEMPTS = 4
_TIMEOUT_S = (15, 60)
_RETRY_STATUS = {408, 429, 500, 502, 503, 504}


class HttpDownloader:
    """Appends to a partial file from where it ends, and tries again after a broken connection."""

    def __init__(self, index: HostIndex) -> None:
        self._session = requests.Session()
        if index.cert:
            self._session.verify = str(index.cert)
        else:
            # As pip does since 24.2: a company's own authority is in the system's store.
            self._session.mount("https://", _SystemTrust())
        self._trusted = set(index.trusted_hosts)
        self._credentials = {
            parts.netloc.rpartition("@")[2]: (
                unquote(parts.username),
                unquote(parts.password or ""),
            )
            for parts in map(
                urlsplit,
                filter(None, (index.default_index, *index.extra_indexes, *index.uv_indexes)),
            )
            if parts.username
        }

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
        for attempt in range(_ATTEMPTS):
            try:
                if self._attempt(url, into, task):
                    return
                reason = "the server is busy"
            except (requests.RequestException, urllib3.exceptions.HTTPError) as cause:
                reason = str(cause) or type(cause).__name__
            time.sleep(min(2**attempt, 8) if attempt + 1 < _ATTEMPTS else 0)
        raise SourceError(f"{_plain(url)}: {reason}")

    def _attempt(self, url: str, into: Path, task: Task) -> bool:
        have = into.stat().st_size if into.exists() else 0
        parts = urlsplit(url)
        answer = self._session.get(
            url,
            headers={"Range": f"bytes={have}-", "Accept-Encoding": "identity"} if have else
            {"Accept-Encoding": "identity"},
            stream=True,
            timeout=_TIMEOUT_S,
            auth=self._credentials.get(parts.netloc),
            verify=False if parts.hostname in self._trusted else None,
        )  # fmt: skip
        with answer:
            if answer.status_code in _RETRY_STATUS:
                return False
            if answer.status_code == 416:
                # All is there already, or the file grew past what the server has: the digest tells.
                return True
            if answer.status_code not in (200, 206):
                raise SourceError(f"{_plain(url)}: HTTP {answer.status_code} {answer.reason}")
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


class _SystemTrust(requests.adapters.HTTPAdapter):
    """Checks certificates against the operating system's store."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Hand the system's trust to the connection pool."""
        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        super().init_poolmanager(*args, **kwargs, ssl_context=context)


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


def _plain(url: str) -> str:
    """The address without credentials."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
