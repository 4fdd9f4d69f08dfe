"""The predicted bytes are a ZIP that stock tools read."""

import struct
import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.adapters.volumes_zip import ZipVolumes
from bundler.ports import Member

FORM = ZipVolumes()


def write(path: Path, files: dict[str, bytes]) -> None:
    members = [Member(name, len(data), zlib.crc32(data)) for name, data in files.items()]
    data = list(files.values())
    with path.open("wb") as out:
        for region in FORM.layout(members):
            assert out.tell() == region.offset
            out.write(region.literal if region.member is None else data[region.member])


def test_unzip_and_zipfile_accept_it(tmp_path: Path) -> None:
    path = tmp_path / "v.zip"
    files = {
        "a/b.txt": b"hello",
        "모델/설명.txt": "안녕".encode(),
        "empty": b"",
        "z.part1of2": b"\0" * 9999,
    }
    write(path, files)
    done = subprocess.run(["unzip", "-t", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {i.filename: archive.read(i) for i in archive.infolist()} == files
        assert all(i.compress_type == zipfile.ZIP_STORED for i in archive.infolist())
        assert {i.date_time for i in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {i.external_attr >> 16 for i in archive.infolist()} == {0o100644}


names = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20)


@given(st.dictionaries(names, st.binary(max_size=50), max_size=8))
def test_regions_leave_no_gap_and_overhead_is_an_upper_bound(files: dict[str, bytes]) -> None:
    members = [Member(name, len(data), zlib.crc32(data)) for name, data in files.items()]
    at = 0
    for region in FORM.layout(members):
        assert region.offset == at
        at += region.size
    bound = FORM.base_overhead() + sum(FORM.overhead(m.name) + m.size for m in members)
    assert at <= bound


@pytest.mark.parametrize("size", [2**32 - 2, 2**32 - 1, 2**32, 5 * 2**30])
def test_sizes_and_offsets_over_4_gib_use_zip64(tmp_path: Path, size: int) -> None:
    path = tmp_path / "big.zip"
    members = [Member("big.bin", size, 0), Member("after.txt", 5, zlib.crc32(b"after"))]
    regions = FORM.layout(members)
    with path.open("wb") as out:
        for region in regions:
            out.seek(region.offset)
            if region.member is None:
                out.write(region.literal)
            elif region.member == 1:
                out.write(b"after")
        out.truncate(regions[-1].offset + regions[-1].size)
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("big.bin").file_size == size
        assert archive.read("after.txt") == b"after"
    listing = subprocess.run(["unzip", "-l", path], capture_output=True, text=True)
    # Info-ZIP 6.0 takes the one size that equals the ZIP64 marker for a damaged field, and only warns.
    assert listing.returncode == (1 if size == 2**32 - 1 else 0)
    assert str(size) in listing.stdout


@pytest.mark.slow
def test_more_members_than_16_bits_hold(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    write(path, {f"f{n}": b"" for n in range(70_000)})
    with zipfile.ZipFile(path) as archive:
        assert len(archive.infolist()) == 70_000
    assert struct.unpack("<H", path.read_bytes()[-12:-10])[0] == 0xFFFF
