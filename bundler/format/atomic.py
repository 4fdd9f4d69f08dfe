"""Small files that are there whole or not at all, and leave nothing beside them when they fail."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bundler.format.rehearsal import instead

_TEMPORARY = re.compile(r"(.+)\.([0-9]+)\.[0-9]+\.new")


def write_atomically(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a file durably; who reads it meanwhile finds the old one or the new one.

    Args:
        path: where to.
        data: all of it.
        mode: permissions from its first byte on, less the umask.

    Raises:
        OSError: it cannot be written; what was there before is unharmed.
    """
    if instead("write", path, len(data)):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_behind(path)
    # Other processes and threads may write the same file.
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def remove(path: Path, why: str = "") -> None:
    """Remove a file or a link, if it is there.

    Raises:
        OSError: it cannot be removed.
    """
    if os.path.lexists(path) and not instead("remove", path, why=why):
        path.unlink(missing_ok=True)


def left_behind(folder: Path) -> Iterator[Path]:
    """Temporary files in a folder of writers that were killed; a living one may still be at its own."""
    for path in folder.glob("*.new"):
        found = _TEMPORARY.fullmatch(path.name)
        if found and not Path(f"/proc/{found[2]}").exists():
            yield path


def _remove_left_behind(path: Path) -> None:
    for other in left_behind(path.parent):
        found = _TEMPORARY.fullmatch(other.name)
        if found and found[1] == path.name:
            with suppress(OSError):
                other.unlink()
