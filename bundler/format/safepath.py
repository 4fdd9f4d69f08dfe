"""Path rules, applied when packing and again before anything is written on the closed side.

A path in a bundle is relative, POSIX, NFC, free of `..`, control characters and names that Windows or
FAT refuse, and no two paths are the same when case is ignored: a stick may be FAT, and a reviewer may
open it on Windows.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from bundler.errors import FormatError

MAX_PATH_BYTES = 1024
MAX_COMPONENT_BYTES = 240
_RESERVED = re.compile(r"^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$", re.IGNORECASE)
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')


def check_path(path: str) -> str:
    """Give the path back when it may be in a bundle.

    Raises:
        FormatError: it may not; the message says why.
    """
    reason = _reason_against(path)
    if reason:
        raise FormatError(f"path {path!r} is refused: {reason}", hint="Rename the file.")
    return path


def check_paths(paths: Iterable[str]) -> None:
    """Check each path, and that no two clash on a case-insensitive file system.

    Raises:
        FormatError: a path is refused, or two of them clash, or one is a folder of another.
    """
    seen: dict[str, str] = {}
    folders: set[str] = set()
    for path in paths:
        check_path(path)
        key = path.casefold()
        if key in seen:
            raise FormatError(
                f"paths {seen[key]!r} and {path!r} are one name where case is ignored",
                hint="Rename one of the files.",
            )
        seen[key] = path
        parts = key.split("/")
        folders.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
    both = folders & seen.keys()
    if both:
        raise FormatError(f"{seen[min(both)]!r} is a file and a folder", hint="Rename one of them.")


def _reason_against(path: str) -> str:
    if not path or len(path.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES:
        return f"empty or over {MAX_PATH_BYTES} bytes"
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return "not valid UTF-8"
    if unicodedata.normalize("NFC", path) != path:
        return "not in Unicode normal form NFC"
    if path.startswith("/") or _FORBIDDEN.search(path):
        return "absolute, or with a character that Windows forbids"
    return next(filter(None, map(_reason_against_component, path.split("/"))), "")


def _reason_against_component(part: str) -> str:
    if part in ("", ".", ".."):
        return "with an empty, `.` or `..` component"
    if len(part.encode()) > MAX_COMPONENT_BYTES:
        return f"with a component over {MAX_COMPONENT_BYTES} bytes"
    if part[-1] in ". ":
        return "with a component that ends in a dot or a space"
    if _RESERVED.match(part):
        return f"with the device name {part!r}"
    return ""
