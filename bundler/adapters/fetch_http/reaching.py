"""Asks servers whether they are there, with the host's certificates and proxies, within a few seconds."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import requests

from bundler.adapters.fetch_http.advisories import pips_own
from bundler.adapters.fetch_http.session import IndexSession, plain
from bundler.domain.hostindex import HostIndex
from bundler.domain.workplace import Answer
from bundler.format.untrusted import shown

# A package that every index has.
_ASKED_FOR = "pip/"


class Reach:
    """Asks with the settings that downloads have."""

    def __init__(self, index: HostIndex, timeout_s: float) -> None:
        self._index = index
        self._session = IndexSession(index, (timeout_s, timeout_s))

    def indexes(self) -> tuple[Answer, ...]:
        """Every index and find-links address that pip and uv are configured with. Never raises."""
        configured = self._index
        urls = [] if configured.no_index else [configured.default_index or pips_own()]
        urls += configured.extra_indexes
        found = [self._place("index", url, _ASKED_FOR) for url in dict.fromkeys(urls)]
        return (*found, *(self._place("find-links", link) for link in configured.find_links))

    def ask(self, what: str, url: str, headers: dict[str, str] | None = None) -> Answer:
        """Ask one address. Never raises: why there was no answer stands in it."""
        began = time.monotonic()
        try:
            with self._session.get(url, headers or {}) as answer:
                return Answer(
                    what=what, url=plain(url), status=answer.status_code,
                    seconds=time.monotonic() - began, date=_utc(answer.headers.get("Date", "")),
                )  # fmt: skip
        except (requests.RequestException, ValueError) as error:
            return Answer(what=what, url=plain(url), fault=shown(plain_words(error, url))[:300])

    def _place(self, what: str, link: str, asked_for: str = "") -> Answer:
        """A server's address, a `file:` address or a folder: pip takes all three."""
        if urlsplit(link).scheme in ("http", "https"):
            return self.ask(what, f"{link.rstrip('/')}/{asked_for}" if asked_for else link)
        path = Path(unquote(urlsplit(link).path) if link.startswith("file:") else link)
        there = path.exists()
        return Answer(
            what=what, url=str(path), status=200 if there else None,
            fault="" if there else "no such file or folder",
        )  # fmt: skip


def plain_words(error: Exception, url: str) -> str:
    """An error's words without the address's credentials."""
    netloc = urlsplit(url).netloc
    return str(error).replace(netloc, netloc.rpartition("@")[2])


def _utc(text: str) -> str:
    try:
        return parsedate_to_datetime(text).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (TypeError, ValueError, IndexError):
        return ""
