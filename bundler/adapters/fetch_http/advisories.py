"""What the package index itself knows of vulnerabilities: the `vulnerabilities` of its JSON API.

See "Known vulnerabilities" in the documentation of PyPI's JSON API. Mirrors often have no such API: then nothing is known, which is
not the same as no vulnerability.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import requests

from bundler.adapters.fetch_http.session import IndexSession, plain
from bundler.domain.hostindex import HostIndex
from bundler.domain.vulnerability import Advisory
from bundler.errors import SourceError
from bundler.format.untrusted import NotAnObject, parse_object, shown

_LARGEST = 64 * 2**20
_MOST_VALUES = 4_000_000


class IndexAdvisories:
    """Asks the host's default index about one package after another."""

    def __init__(self, index: HostIndex) -> None:
        self._session = IndexSession(index)
        self._base = (index.default_index or pips_own()).rstrip("/").removesuffix("/simple")
        self.source = f"the index {plain(self._base)}"

    def of(self, name: str, version: str) -> tuple[Advisory, ...]:
        """What it knows of a package.

        Raises:
            SourceError: it could not be asked, or has no such data.
        """
        url = f"{self._base}/pypi/{quote(name)}/{quote(version)}/json"
        if not url.startswith(("http://", "https://")):
            raise SourceError(f"{self.source}: no JSON API on it")
        try:
            with self._session.get(url, {"Accept": "application/json"}) as answer:
                if answer.status_code != 200:
                    raise SourceError(f"{plain(url)}: HTTP {answer.status_code}")
                data = answer.raw.read(_LARGEST + 1)
        except requests.RequestException as cause:
            raise SourceError(f"{plain(url)}: {shown(str(cause))}") from cause
        if len(data) > _LARGEST:
            raise SourceError(f"{plain(url)}: over {_LARGEST} bytes")
        try:
            stated = parse_object(data, values=_MOST_VALUES).get("vulnerabilities")
        except NotAnObject as cause:
            raise SourceError(f"{plain(url)}: {cause}") from cause
        if not isinstance(stated, list):
            raise SourceError(f"{plain(url)}: says nothing of vulnerabilities")
        return tuple(_advisories(stated))


def pips_own() -> str:
    """The index that pip asks when none is configured."""
    from pip._internal.models.index import PyPI

    return PyPI.simple_url


def _advisories(stated: list[Any]) -> Iterator[Advisory]:
    for one in stated:
        if not isinstance(one, dict) or not isinstance(one.get("id"), str):
            raise SourceError("the index's vulnerabilities are not objects with an id")
        if one.get("withdrawn"):
            continue
        names = [one["id"][:100], *_texts(one, "aliases")]
        first = next((name for name in names if name.startswith("CVE-")), names[0])
        said = one.get("summary") or one.get("details") or ""
        yield Advisory(
            id=shown(first),
            aliases=tuple(shown(name) for name in dict.fromkeys(names) if name != first),
            summary=shown(" ".join(str(said).split()), 300),
            fixed=tuple(map(shown, _texts(one, "fixed_in"))),
        )


def _texts(one: dict[str, Any], key: str) -> list[str]:
    value = one.get(key)
    return (
        [text[:100] for text in value if isinstance(text, str)] if isinstance(value, list) else []
    )
