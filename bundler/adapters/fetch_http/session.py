"""One HTTP session, set up as pip and uv are on this host.

requests reads proxies and .netrc from the environment as pip does; certificates and trusted hosts
come from the host's pip and uv configuration, and so do credentials that an index address holds.
"""

from __future__ import annotations

import ssl
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
import truststore

from bundler.domain.hostindex import HostIndex

ATTEMPTS = 4
RETRY_STATUS = {408, 429, 500, 502, 503, 504}
_TIMEOUT_S = (15.0, 60.0)


class IndexSession:
    """GET with the host's certificates, trusted hosts and credentials."""

    def __init__(self, index: HostIndex, timeout_s: tuple[float, float] = _TIMEOUT_S) -> None:
        """`timeout_s` is for the connection, and for each wait after it."""
        self._timeout_s = timeout_s
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

    def get(self, url: str, headers: dict[str, str]) -> requests.Response:
        """A streamed answer, never compressed on the way: a range would count other bytes."""
        parts = urlsplit(url)
        return self._session.get(
            url,
            headers={"Accept-Encoding": "identity", **headers},
            stream=True,
            timeout=self._timeout_s,
            auth=self._credentials.get(parts.netloc),
            verify=False if parts.hostname in self._trusted else None,
        )


class _SystemTrust(requests.adapters.HTTPAdapter):
    """Checks certificates against the operating system's store."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Hand the system's trust to the connection pool."""
        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        super().init_poolmanager(*args, **kwargs, ssl_context=context)


def plain(url: str) -> str:
    """The address without credentials."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def pause_s(attempt: int) -> float:
    """Seconds before the attempt after this one; none after the last."""
    return float(min(2**attempt, 8)) if attempt + 1 < ATTEMPTS else 0.0
