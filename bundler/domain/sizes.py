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

# The largest volume for each medium. FAT32 holds files up to 2**32 - 1 bytes; an optical disc or a
# stick is given by its nominal capacity less 2 % for the file system and the small files beside.
MEDIA: dict[str, int] = {
    "fat32": 2**32 - 1,
    "exfat": 2**40,
    "dvd": int(4_700_000_000 * 0.98),
    "dvd-dl": int(8_500_000_000 * 0.98),
    "bd25": int(25_000_000_000 * 0.98),
    "bd50": int(50_000_000_000 * 0.98),
    "16GB-usb": int(16_000_000_000 * 0.98),
    "32GB-usb": int(32_000_000_000 * 0.98),
    "64GB-usb": int(64_000_000_000 * 0.98),
}


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
