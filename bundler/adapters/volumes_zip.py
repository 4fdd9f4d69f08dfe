"""VolumeFormat: stored (uncompressed) ZIP, ZIP64 where the sizes need it.

Written out here rather than with zipfile because both halves must predict every byte that is not
data: the packer to know each offset before it writes, the verifier to find a flipped bit in a header
and to read data without trusting a directory inside the archive. Field layout: PKWARE APPNOTE.TXT
6.3.10, sections 4.3.7, 4.3.12, 4.3.14-16 and 4.5.3. Times are fixed at 1980-01-01, modes at 0644.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from bundler.ports import Member, Region

_MAX32 = 0xFFFFFFFF
_MAX16 = 0xFFFF
_DATE_1980 = 0x0021
_MODE_0644 = 0o100644 << 16
_MADE_BY_UNIX = 3 << 8
_UTF8_FLAG = 0x0800


class ZipVolumes:
    """Predicts the bytes of a volume."""

    suffix = ".zip"

    def overhead(self, name: str) -> int:
        """Local header, directory entry and, at worst, both ZIP64 fields of one member."""
        return 30 + 20 + 46 + 28 + 2 * len(name.encode())

    def base_overhead(self) -> int:
        """End records of a volume, at worst."""
        return 56 + 20 + 22

    def layout(self, members: Sequence[Member]) -> tuple[Region, ...]:
        """Headers and data in order, then the directory; regions leave no gap."""
        regions: list[Region] = []
        directory: list[bytes] = []
        at = 0
        for number, member in enumerate(members):
            header = _local_header(member)
            regions.append(Region(at, len(header), literal=header, label=f"{member.name} (header)"))
            directory.append(_directory_entry(member, at))
            at += len(header)
            regions.append(Region(at, member.size, member=number, label=member.name))
            at += member.size
        start = at
        for member, record in zip(members, directory, strict=True):
            label = f"{member.name} (directory entry)"
            regions.append(Region(at, len(record), literal=record, label=label))
            at += len(record)
        end = _end_records(len(members), start, at - start)
        regions.append(Region(at, len(end), literal=end, label="end of the ZIP directory"))
        return tuple(regions)


def _flags(member: Member) -> int:
    return 0 if member.name.isascii() else _UTF8_FLAG


def _local_header(member: Member) -> bytes:
    name = member.name.encode()
    big = member.size >= _MAX32
    extra = struct.pack("<HHQQ", 1, 16, member.size, member.size) if big else b""
    size = _MAX32 if big else member.size
    return (
        struct.pack(
            "<4sHHHHHIIIHH",
            b"PK\x03\x04",
            45 if big else 20,
            _flags(member),
            0,
            0,
            _DATE_1980,
            member.crc32,
            size,
            size,
            len(name),
            len(extra),
        )
        + name
        + extra
    )


def _directory_entry(member: Member, offset: int) -> bytes:
    name = member.name.encode()
    big, far = member.size >= _MAX32, offset >= _MAX32
    fields = [member.size, member.size] * big + [offset] * far
    extra = struct.pack(f"<HH{len(fields)}Q", 1, 8 * len(fields), *fields) if fields else b""
    size = _MAX32 if big else member.size
    version = 45 if fields else 20
    return (
        struct.pack(
            "<4sHHHHHHIIIHHHHHII",
            b"PK\x01\x02",
            _MADE_BY_UNIX | version,
            45 if big else 20,
            _flags(member),
            0,
            0,
            _DATE_1980,
            member.crc32,
            size,
            size,
            len(name),
            len(extra),
            0,
            0,
            0,
            _MODE_0644,
            _MAX32 if far else offset,
        )
        + name
        + extra
    )


def _end_records(count: int, start: int, size: int) -> bytes:
    plain = struct.pack(
        "<4sHHHHIIH",
        b"PK\x05\x06",
        0,
        0,
        min(count, _MAX16),
        min(count, _MAX16),
        min(size, _MAX32),
        min(start, _MAX32),
        0,
    )
    if count < _MAX16 and size < _MAX32 and start < _MAX32:
        return plain
    zip64 = struct.pack(
        "<4sQHHIIQQQQ", b"PK\x06\x06", 44, _MADE_BY_UNIX | 45, 45, 0, 0, count, count, size, start
    )
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, start + size, 1)
    return zip64 + locator + plain
