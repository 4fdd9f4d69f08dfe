"""Small files that are there whole or not at all, and leave nothing beside them when they fail."""

from __future__ import annotations

import glob
import os
import threading
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a file durably; who reads it meanwhile finds the old one or the new one.

    Args:
        path: where to.
        data: all of it.
        mode: permissions from its first byte on, less the umask.

    Raises:
        OSError: it cannot be written; what was there before is unharmed.
    """
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


def _remove_left_behind(path: Path) -> None:
    """What a kill -9 left of an earlier try; a living process may still be at its own."""
    for other in path.parent.glob(f"{glob.escape(path.name)}.*.new"):
        number = other.name[len(path.name) + 1 :].partition(".")[0]
        if number.isdigit() and not Path(f"/proc/{number}").exists():
            with suppress(OSError):
                other.unlink()
