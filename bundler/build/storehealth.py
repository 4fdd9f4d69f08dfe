"""A look at the download store, from sizes and notes alone: nothing is hashed and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

from bundler.domain.workplace import StoreHealth


def look_at_store(root: Path) -> StoreHealth:
    """Count what is there. Never raises: what could not be read stands in `fault`."""
    files = size = partial_files = partial_size = 0
    doubtful: list[str] = []
    try:
        for path in sorted(root.glob("objects/??/*")):
            if path.suffix == ".json":
                continue
            here = path.stat().st_size
            files, size = files + 1, size + here
            if _noted_size(path.with_name(f"{path.name}.json")) not in (here, None):
                doubtful.append(path.name)
        for path in root.glob("partial/**/*"):
            if path.is_file():
                partial_files, partial_size = partial_files + 1, partial_size + path.stat().st_size
    except OSError as error:
        return StoreHealth(path=str(root), fault=f"{error.filename}: {error.strerror}")
    return StoreHealth(
        path=str(root), files=files, bytes=size, partial_files=partial_files,
        partial_bytes=partial_size, doubtful=tuple(doubtful),
    )  # fmt: skip


def _noted_size(note: Path) -> int | None:
    """The size that the object's note states; None without one that can be read: the store then reads anew."""
    try:
        return int(json.loads(json.loads(note.read_bytes())["digests"])["size"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
