"""A stranger's archive: opened with its directory checked, or refused in one kind of error."""

import contextlib
import io
import struct
import warnings
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.format.wheelzip import DAMAGE, open_wheel


def packed(packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        for name in ("a/b.py", "설명.txt", "c.so"):
            archive.writestr(zipfile.ZipInfo(name), name.encode() * 50, packing)
    return buffer.getvalue()


def directory(data: bytes) -> int:
    """Where the first record of the central directory starts."""
    return data.index(b"PK\x01\x02")


def read_all(data: bytes) -> None:
    with open_wheel(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            info.is_dir()
            archive.read(info)


def test_a_wheel_opens_and_reads() -> None:
    with open_wheel(io.BytesIO(packed())) as archive:
        assert archive.read("c.so") == b"c.so" * 50


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_packings_are_refused(packing: int) -> None:
    with pytest.raises(zipfile.BadZipFile, match="packed as no wheel is"):
        open_wheel(io.BytesIO(packed(packing)))


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (8, struct.pack("<H", 1)),  # encrypted
        (42, struct.pack("<L", 0xFFFF)),  # lies behind the directory
        (28, struct.pack("<H", 0)),  # no name: its bytes are then the next record
        (46, b"\0"),  # a name that ends before it starts
    ],
)
def test_directories_that_lie_are_damage(offset: int, value: bytes) -> None:
    data = bytearray(packed())
    at = directory(bytes(data)) + offset
    data[at : at + len(value)] = value
    with pytest.raises(DAMAGE):
        read_all(bytes(data))


@settings(max_examples=500, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=6),
    cut=st.one_of(st.none(), st.integers(0, 2000)),
)
def test_no_bent_archive_raises_anything_else(
    changes: list[tuple[int, int]], cut: int | None
) -> None:
    data = bytearray(packed())
    for at, value in changes:
        data[at % len(data)] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile's own, of extra fields
        with contextlib.suppress(DAMAGE):
            read_all(bytes(data[:cut]))
