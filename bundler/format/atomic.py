"""Small files that are there whole or not at all, and leave nothing beside them when they fail."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file durably; who reads it meanwhile finds the old one or the new one.

    Raises:
        OSError: it cannot be written; what was there before is unharmed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Other processes and threads may write the same file.
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
