"""Byte sizes: how people write them, and what the media that they carry can hold."""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS = {
    "": 1, "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip
# Bounded, so that no text makes a number that takes long or overflows.
_SIZE = re.compile(
    r"(?P<figure>[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE]\+?[0-9]{1,2})?)\s*(?P<unit>[A-Za-z]*)"
)

# Bytes of a block of a file; the manifest says which power of two.
MIN_BLOCK, MAX_BLOCK = 2**12, 2**26
# FAT32 holds files up to 2**32 - 1 bytes.
_FAT32 = 2**32 - 1
# A disc or a stick is given by its nominal capacity less 2 % for the file system and the small files.
_USABLE = 0.98
MEDIA: dict[str, int] = {
    "fat32": _FAT32,
    "exfat": 2**40,
    "cd": int(700_000_000 * _USABLE),
    "dvd": int(4_700_000_000 * _USABLE),
    "dvd-dl": int(8_500_000_000 * _USABLE),
    "bd25": int(25_000_000_000 * _USABLE),
    "bd50": int(50_000_000_000 * _USABLE),
    "bd100": int(100_000_000_000 * _USABLE),
}
# `16GB-usb`: a stick of that nominal size, formatted as it is sold.
STICK = r"[1-9][0-9]{0,3}GB-usb"
MEDIUM_PATTERN = rf"^({'|'.join(MEDIA)}|{STICK})$"


def medium_limit(name: str) -> int:
    """The largest volume for a medium.

    Volumes for a stick are such that a whole number of them fills it, each small enough for FAT32:
    a 16 GB stick takes four of 3.9 GB.

    Raises:
        ValueError: no such medium.
    """
    if name in MEDIA:
        return MEDIA[name]
    if not re.fullmatch(STICK, name):
        known = ", ".join(MEDIA)
        raise ValueError(f"{name[:40]!r} is no medium; there are {known}, and sticks as 16GB-usb")
    room = int(int(name.removesuffix("GB-usb")) * 10**9 * _USABLE)
    return room // -(-room // _FAT32)


def parse_size(text: str) -> int:
    """Bytes in `text`: a number, or a number with a unit (`4GB`, `3.9 GiB`).

    Raises:
        ValueError: the text is not a size.
    """
    match = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(match["unit"].upper()) if match else None
    if match is None or unit is None:
        raise ValueError(
            f"{text[:40]!r} is not a size; write for example 4GB, 3.9GiB or 4000000000"
        )
    return int(Decimal(match["figure"]) * unit)


def human(size: int | float) -> str:
    """A size as people read it, in binary units: `4.8 GiB`."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
