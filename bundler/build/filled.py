"""What is known of the wheels only once they are here: size, XXH3 and licence go into the lock.

Each is read from the bytes that the lock names by SHA-256, so filling a filled lock changes nothing, and
bundles from either are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from email.message import Message

from bundler.build.fetch import Fetched
from bundler.build.wheelmeta import read_metadata
from bundler.domain.lock import Lock, LockedWheel
from bundler.format import layout

_MAX_LICENCE = 200
_UNKNOWN = {"", "unknown", "none", "n/a"}


def filled(lock: Lock, fetched: Iterable[Fetched]) -> Lock:
    """The lock with what the fetched wheels say.

    Raises:
        IntegrityError: a file is not a wheel.
    """
    files = {item.path: item for item in fetched if item.kind == "wheel"}
    return lock.model_copy(
        update={
            "engine_wheels": tuple(_filled(wheel, files) for wheel in lock.engine_wheels),
            "tool_wheels": tuple(_filled(wheel, files) for wheel in lock.tool_wheels),
        }
    )


def carried_over(new: Lock, last: Lock) -> Lock:
    """A new lock with what the last one knew of the same bytes."""
    known = {wheel.sha256: wheel for wheel in (*last.engine_wheels, *last.tool_wheels)}

    def with_known(wheel: LockedWheel) -> LockedWheel:
        before = known.get(wheel.sha256)
        if before is None:
            return wheel
        update = {"size": before.size, "xxh3": before.xxh3, "licence": before.licence}
        return wheel.model_copy(update=update | ({"size": wheel.size} if wheel.size else {}))

    return new.model_copy(
        update={
            "engine_wheels": tuple(map(with_known, new.engine_wheels)),
            "tool_wheels": tuple(map(with_known, new.tool_wheels)),
        }
    )


def _filled(wheel: LockedWheel, files: dict[str, Fetched]) -> LockedWheel:
    item = files[layout.wheel_path(wheel.filename)]
    digests = item.blob.digests
    return wheel.model_copy(
        update={
            "size": digests.size,
            "xxh3": digests.xxh3,
            "licence": licence_of(read_metadata(wheel.filename, item.blob.path)),
        }
    )


def licence_of(metadata: Message) -> str | None:
    """The licence that a wheel's metadata states; None when it states none in a line.

    `License-Expression` (PEP 639) first, then `License` when it is a line rather than the whole text,
    then the trove classifiers.
    """
    for field in ("License-Expression", "License"):
        stated = str(metadata.get(field) or "").strip()
        if stated.lower() not in _UNKNOWN and "\n" not in stated and len(stated) <= _MAX_LICENCE:
            return _printable(stated)
    classifiers = [str(text) for text in metadata.get_all("Classifier") or []]
    names = [
        text.rsplit("::", 1)[-1].strip()
        for text in classifiers
        if text.startswith("License ::") and text.strip() != "License :: OSI Approved"
    ]
    return _printable("; ".join(dict.fromkeys(names)))[:_MAX_LICENCE] if names else None


def _printable(text: str) -> str:
    """Others write this: nothing in it may steer a terminal."""
    return "".join(letter for letter in text if letter.isprintable())
