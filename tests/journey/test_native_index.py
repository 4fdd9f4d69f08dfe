"""Objects of real wheels from the package index, compared with what binutils reads in them."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from bundler import wiring
from bundler.adapters.fetch_http.download import HttpDownloader
from bundler.adapters.fetch_http.wheels import WheelArchives
from bundler.adapters.host_index import read_host_index
from bundler.build.elf import read_wheel
from bundler.cli.console import SilentProgress
from bundler.domain.lock import LockedWheel
from bundler.domain.target import Target
from bundler.ports import WheelRequest
from tests.journey.test_index import resolve

pytestmark = pytest.mark.index
TARGET = Target(python="3.12", glibc="2.31")


def located(requirement: str) -> LockedWheel:
    name = requirement.partition("==")[0]
    return next(item for item in resolve(WheelRequest((requirement,), TARGET)) if item.name == name)


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf here")
@pytest.mark.parametrize("requirement", ["numpy==2.2.6", "uv==0.9.17", "sentencepiece==0.2.1"])
def test_real_objects_are_read_as_readelf_reads_them(requirement: str, tmp_path: Path) -> None:
    wheel = located(requirement)
    place = tmp_path / wheel.filename
    with SilentProgress().task("fetch", 0) as task:
        HttpDownloader(read_host_index(wiring.runner())).download(wheel.url, place, task)
    found = read_wheel(place, "x86_64", tmp_path)
    needed, glibc = set(), set()
    with zipfile.ZipFile(place) as archive:
        for info in archive.infolist():
            data = b"" if info.is_dir() else archive.read(info)
            if data[:4] != b"\x7fELF":
                continue
            (tmp_path / "object").write_bytes(data)
            text = subprocess.run(
                ["readelf", "-WVd", tmp_path / "object"], capture_output=True, text=True, check=True
            ).stdout
            needed |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))
            wanted = text.partition("Version needs section")[2]
            glibc |= set(re.findall(r"Name: GLIBC_(2\.[0-9.]+)\s+Flags: none", wanted))
    assert found.objects
    assert not found.unreadable
    assert set(found.needed) == needed
    newest = max(glibc, key=lambda version: tuple(map(int, version.split("."))))
    assert found.newest["GLIBC"].version == newest


def test_one_source_of_vllm_s_wheel_costs_little() -> None:
    wheel = located("vllm==0.17.1")
    reader = WheelArchives(read_host_index(wiring.runner()), lambda _: None)
    with reader.open(wheel) as archive:
        assert b"VLLM_USE_DEEP_GEMM" in archive.read("vllm/envs.py")
        file = archive.fp.raw  # type: ignore[union-attr]
        assert file.transferred < 8_000_000
        print(file.transferred, "of", wheel.size)
    assert (wheel.size or 0) > 400_000_000
