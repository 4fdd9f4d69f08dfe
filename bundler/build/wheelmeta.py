"""The METADATA inside a wheel that lies here."""

from __future__ import annotations

import email.parser
from email.message import Message
from pathlib import Path

from bundler.errors import IntegrityError
from bundler.format.wheelzip import DAMAGE, open_wheel

_MAX_METADATA = 4 * 2**20


def read_metadata(name: str, path: Path) -> Message:
    """The headers of a wheel's METADATA, of which no more than 4 MiB are read.

    Raises:
        IntegrityError: the file is not a wheel, although it has the digest that the lock names.
    """
    try:
        with open_wheel(path) as wheel:
            inside = next(
                info
                for info in wheel.infolist()
                if info.filename.count("/") == 1 and info.filename.endswith(".dist-info/METADATA")
            )
            text = wheel.open(inside).read(_MAX_METADATA).decode("utf-8", "replace")
    except (*DAMAGE, StopIteration) as cause:
        raise IntegrityError(
            f"{name}: is no wheel: {str(cause) or 'it has no METADATA'}",
            hint="The index or find-links page serves a broken file; tell its owner.",
        ) from cause
    return email.parser.HeaderParser().parsestr(text)
