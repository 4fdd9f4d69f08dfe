"""API keys of services that listen on more than loopback: made here, kept here, in no bundle and no record.

An engine gets its key through its environment, since a command line can be read by every user of the host.
"""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit

from bundler.deploy.root import Root
from bundler.domain.spec import Service
from bundler.errors import disk_errors


def make_key(root: Root, service: Service) -> str:
    """The service's key; made when it has none yet, readable by this user alone.

    Raises:
        SpaceError, FileAccessError: of the disk.
    """
    path = root.api_key(service.port)
    if not (key := _read(root, service.port)):
        key = secrets.token_urlsafe(32)
        root.write(path, f"{key}\n".encode(), mode=0o600)
    return key


def key_for(root: Root, url: str) -> str:
    """The key of the service that listens at an address; empty when it has none.

    Raises:
        FileAccessError: it is there and cannot be read.
    """
    port = urlsplit(url).port
    return _read(root, port) if port else ""


def _read(root: Root, port: int) -> str:
    path = root.api_key(port)
    if not path.is_file():
        return ""
    with disk_errors("reading", path):
        return path.read_text(encoding="ascii", errors="replace").strip()
