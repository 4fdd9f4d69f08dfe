"""What pip and uv are configured with on the connected host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class HostIndex:
    """The package indexes, find-links and certificates that pip and uv use on this host.

    `uv_indexes` are those that uv asks of its own accord; they are here for their credentials alone.
    """

    default_index: str | None = None
    extra_indexes: tuple[str, ...] = ()
    uv_indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    cert: Path | None = None
    trusted_hosts: tuple[str, ...] = ()
    no_index: bool = False
