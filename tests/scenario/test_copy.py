"""`airbundle copy`: real folders, real tmpfs media of a given size, the real kernel's mount table."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bundler.build import mediumwriter
from bundler.cli.app import run
from bundler.format import layout
from bundler.format.diskfile import DiskFile
from tests.fakes.small_bundle import SmallBundle

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


@pytest.fixture
def small(tmp_path: Path) -> SmallBundle:
    return SmallBundle(tmp_path / "made").build()


@pytest.fixture
def stick(tmp_path: Path) -> Iterator[Any]:
    """Makes media: a tmpfs of so many KiB each."""
    mounted: list[Path] = []

    def make(kib: int) -> Path:
        place = tmp_path / f"stick {len(mounted)}"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "stick", place], check=True)
        mounted.append(place)
        return place

    yield make
    for place in mounted:
        subprocess.run(["umount", place], check=True)


def copy(small: SmallBundle, *folders: Path, code: int = 0, part: bool = False) -> None:
    words = ["copy", str(small.out), "--key", str(small.public), "--quiet"]
    for folder in folders:
        words += ["--to", str(folder)]
    assert run([*words, *(["--part"] if part else [])]) == code


def shipping(small: SmallBundle) -> dict[str, Any]:
    path = small.out.with_name(f"{small.out.name}.shipping.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def volumes_in(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.zip")}


def test_one_medium_gets_all_and_verifies(small: SmallBundle, tmp_path: Path) -> None:
    medium = tmp_path / "medium"
    medium.mkdir()
    copy(small, medium)
    assert {p.name for p in medium.iterdir()} == {p.name for p in small.out.iterdir()}
    assert run(["verify", str(medium), "--key", str(small.public), "--quiet"]) == 0
    listed = shipping(small)
    assert listed["to_come"] == []
    assert [file["name"] for file in listed["media"][0]["volumes"]] == sorted(volumes_in(medium))
    assert listed["media"][0]["medium"]["file_system"]


@needs_root
def test_volumes_are_spread_over_sticks_and_each_can_be_imported_alone(
    small: SmallBundle, stick: Any, tmp_path: Path
) -> None:
    sticks = [stick(3000), stick(3000)]
    count = len(small.volumes())
    assert count > 3
    copy(small, *sticks)
    assert all(volumes_in(one) for one in sticks)
    assert sum(len(volumes_in(one)) for one in sticks) == count
    for one in sticks:
        for name in (layout.MANIFEST, layout.SIGNATURE, layout.BOOTSTRAP, layout.READ_ME):
            assert (one / name).is_file()
    root = ["--root", str(tmp_path / "root"), "--key", str(small.public), "--quiet"]
    assert run(["import", str(sticks[1]), *root]) == 16
    assert run(["import", str(sticks[0]), *root]) == 0


@needs_root
def test_media_that_are_too_small_are_refused_before_the_first_byte(
    small: SmallBundle, stick: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    one = stick(1500)
    copy(small, one, code=6)
    said = capsys.readouterr().err
    assert "do not fit" in said
    assert "--part" in said
    assert list(one.iterdir()) == []
    tiny = stick(64)
    copy(small, tiny, code=6, part=True)
    assert list(tiny.iterdir()) == []


@needs_root
def test_part_goes_on_with_the_next_stick(
    small: SmallBundle, stick: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = stick(1500), tmp_path / "second"
    second.mkdir()
    copy(small, first, part=True)
    assert "still to come" in capsys.readouterr().out
    assert volumes_in(first)
    copy(small, second)
    assert volumes_in(first) | volumes_in(second) == {path.name for path in small.volumes()}
    assert not volumes_in(first) & volumes_in(second)
    assert shipping(small)["to_come"] == []


def test_a_second_run_reads_back_and_writes_nothing(
    small: SmallBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    medium = tmp_path / "medium"
    medium.mkdir()
    copy(small, medium)

    def write(*_: Any) -> None:
        raise AssertionError("written again")

    monkeypatch.setattr(mediumwriter.MediumWriter, "_write", write)
    copy(small, medium)


def test_a_damaged_copy_is_written_anew(small: SmallBundle, tmp_path: Path) -> None:
    medium = tmp_path / "medium"
    medium.mkdir()
    copy(small, medium)
    victim = sorted(medium.glob("*.zip"))[0]
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    copy(small, medium)
    assert victim.read_bytes() == (small.out / victim.name).read_bytes()


def test_a_medium_that_loses_data_is_named_and_leaves_no_volume(
    small: SmallBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    medium = tmp_path / "medium"
    medium.mkdir()
    real = DiskFile.write

    def loses(self: DiskFile, data: memoryview, at: int) -> None:
        copied = memoryview(bytearray(data))
        copied[len(copied) // 2] ^= 1
        real(self, copied, at)

    monkeypatch.setattr(DiskFile, "write", loses)
    copy(small, medium, code=7)
    assert "does not give back" in capsys.readouterr().err
    assert not list(medium.glob("*.zip*"))


def test_a_damaged_source_is_not_blamed_on_the_medium(
    small: SmallBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    medium = tmp_path / "medium"
    medium.mkdir()
    victim = small.volumes()[0]
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 1
    victim.write_bytes(data)
    copy(small, medium, code=7)
    said = capsys.readouterr().err
    assert victim.name in said
    assert "give back" not in said


def test_another_bundle_s_folder_is_not_overwritten(small: SmallBundle, tmp_path: Path) -> None:
    medium = tmp_path / "medium"
    medium.mkdir()
    (medium / layout.MANIFEST).write_bytes(b"{}")
    copy(small, medium, code=17)
    assert (medium / layout.MANIFEST).read_bytes() == b"{}"


def test_odd_places_are_one_line(small: SmallBundle, tmp_path: Path) -> None:
    medium = tmp_path / "medium"
    medium.mkdir()
    copy(small, tmp_path / "none", code=17)
    copy(small, small.out, code=17)
    copy(small, medium, medium, code=17)
    missing = small.volumes()[0]
    missing.unlink()
    copy(small, medium, code=16)
    assert list(medium.iterdir()) == []


def test_an_interrupted_copy_leaves_no_half_volume_and_goes_on(
    small: SmallBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    medium = tmp_path / "medium"
    medium.mkdir()
    second = small.volumes()[1].name
    real = mediumwriter.MediumWriter._write

    def interrupted(self: Any, volume: Any, place: Any, task: Any) -> str:
        found = real(self, volume, place, task)
        if volume.name == second:
            raise KeyboardInterrupt
        return found

    with monkeypatch.context() as patch:
        patch.setattr(mediumwriter.MediumWriter, "_write", interrupted)
        copy(small, medium, code=130)
    assert volumes_in(medium) == {small.volumes()[0].name}
    assert not list(medium.glob("*.partial"))
    assert second in shipping(small)["to_come"]
    (medium / f"{second}.partial").write_bytes(b"left by a kill -9")
    copy(small, medium)
    assert not list(medium.glob("*.partial"))
    shutil.rmtree(small.out)
    assert run(["verify", str(medium), "--key", str(small.public), "--quiet"]) == 0
