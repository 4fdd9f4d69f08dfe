"""Which names and texts others can take: Windows and FAT as file names, Linux for a new process."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from bundler.domain.sizes import human

# pydantic's `$` is the very end; Python's would let a newline follow, hence `fullmatch` below.
NAME_PATTERN = r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?$"
MAX_FILENAME_BYTES = 200
# Linux takes no longer string than 128 KiB to a new process, and a quarter of the stack for all.
MAX_TEXT_BYTES = 32 * 1024
MAX_TEXTS_BYTES = 512 * 1024
# Names that Windows keeps for devices, and characters that it forbids: a bundle may be read there.
# `format.safepath` refuses the same when it packs; here it is said before anything is downloaded.
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE | re.DOTALL)
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\/]')
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def no_device(name: str) -> str:
    """Give the name back unless Windows keeps it."""
    if _DEVICE.fullmatch(name):
        raise ValueError(f"{name!r} is a device name on Windows; give another")
    return name


def fault_of_filename(name: str) -> str:
    """Why a file of this name cannot be in a bundle; empty when it can."""
    if name in ("", ".", ".."):
        return "empty, `.` or `..`"
    if _FORBIDDEN.search(name):
        return "has a character that Windows forbids"
    if unicodedata.normalize("NFC", name) != name:
        return "not in Unicode normal form NFC"
    if _bytes(name) > MAX_FILENAME_BYTES:
        return f"over {MAX_FILENAME_BYTES} bytes"
    if name[-1] in ". ":
        return "has a dot or a space at the end"
    return "a device name on Windows" if _DEVICE.fullmatch(name) else ""


def is_name(text: str) -> bool:
    """Whether a folder or a file in a bundle may be called so."""
    return bool(re.fullmatch(NAME_PATTERN, text)) and not _DEVICE.fullmatch(text)


def is_variable(text: str) -> bool:
    """Whether an environment variable may be called so."""
    return bool(_ENV_NAME.fullmatch(text))


def check_passable(texts: Mapping[str, str]) -> None:
    """Refuse what a new process cannot be given; the keys are what errors call the texts.

    The operating system ends each string at a NUL, and bounds the length of one and of all.
    """
    for what, text in texts.items():
        if "\0" in text:
            raise ValueError(f"{what} has a NUL character in it")
        if _bytes(text) > MAX_TEXT_BYTES:
            raise ValueError(f"{what} is over {human(MAX_TEXT_BYTES)}")
    if sum(map(_bytes, texts.values())) > MAX_TEXTS_BYTES:
        raise ValueError(f"together over {human(MAX_TEXTS_BYTES)}")


def refuse_twins(what: str, names: Iterable[str]) -> None:
    """Refuse two names that are one where case is ignored."""
    seen: set[str] = set()
    for name in names:
        if name.casefold() in seen:
            raise ValueError(f"{what}: {name!r} occurs twice; give each its own name")
        seen.add(name.casefold())


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def at_port(host: str, port: int) -> str:
    """`host:port`, an IPv6 address in brackets (RFC 3986)."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
