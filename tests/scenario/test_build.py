"""The connected half, with real files: bytes, stock tools, resume."""

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from bundler.adapters.volumes_zip import ZipVolumes
from bundler.build.pack import Packer
from bundler.cli.console import SilentProgress
from bundler.errors import FormatError, IntegrityError, KeyFileError, StateError
from bundler.format import layout
from bundler.format.codec import parse_manifest
from tests.fakes.small_bundle import SmallBundle


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_two_builds_from_one_lock_are_byte_identical(tmp_path: Path) -> None:
    first = SmallBundle(tmp_path)
    first.prepare()
    lock = first.lock()
    first.build_only(lock=lock, out=tmp_path / "one")
    first.build_only(lock=lock, out=tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_stock_tools_accept_the_bundle(small: SmallBundle) -> None:
    volumes = small.volumes()
    assert len(volumes) >= 3
    for volume in volumes:
        assert volume.stat().st_size <= small.volume_size
        for command in (["unzip", "-tq", volume], [sys.executable, "-m", "zipfile", "-t", volume]):
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
    sums = subprocess.run(["sha256sum", "-c", layout.CHECKSUMS], cwd=small.out, capture_output=True)
    assert sums.returncode == 0, sums.stdout
    listed = {
        line.split("  ")[1] for line in (small.out / layout.CHECKSUMS).read_text().splitlines()
    }
    assert listed == {path.name for path in small.out.iterdir()} - {layout.CHECKSUMS}
    checked = subprocess.run(
        ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", small.public,
         "-sigfile", layout.SIGNATURE, "-in", layout.MANIFEST],
        cwd=small.out, capture_output=True, text=True,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_volumes_hold_readable_names_and_the_files_whole_or_in_order(small: SmallBundle) -> None:
    manifest = parse_manifest((small.out / layout.MANIFEST).read_bytes())
    paths = {entry.path for entry in manifest.entries}
    assert {"models/toy/toy.gguf", "models/toy/설명서.txt", "lock.json", "spec.json"} <= paths
    model = next(entry for entry in manifest.entries if entry.path == "models/toy/toy.gguf")
    joined = b""
    for part in model.parts:
        with zipfile.ZipFile(small.out / part.volume) as archive:
            joined += archive.read(part.member)
    assert len(model.parts) >= 3
    assert len(joined) == model.size == 500_000


def test_no_path_of_this_machine_is_in_the_bundle(tmp_path: Path) -> None:
    small = SmallBundle(tmp_path / "a very telling folder").build()
    for path in small.out.iterdir():
        assert b"telling folder" not in path.read_bytes(), path.name


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    small = SmallBundle(tmp_path).build()
    with pytest.raises(StateError, match="exists already"):
        small.build_only()


def test_a_source_that_changed_since_the_lock_is_refused_and_nothing_is_left(
    tmp_path: Path,
) -> None:
    small = SmallBundle(tmp_path)
    small.prepare()
    lock = small.lock()
    model = small.folder / "model" / "toy.gguf"
    model.write_bytes(model.read_bytes()[:-1] + b"!")
    with pytest.raises(IntegrityError, match=r"toy\.gguf"):
        small.build_only(lock=lock)
    assert not small.out.exists()


def test_a_missing_private_key_is_named(tmp_path: Path) -> None:
    small = SmallBundle(tmp_path)
    small.prepare()
    small.private.unlink()
    with pytest.raises(KeyFileError, match=r"k\.key\.pem"):
        small.build_only()


KILLED = """
import sys
from pathlib import Path
from tests.fakes.small_bundle import SmallBundle
small = SmallBundle(Path(sys.argv[1]), volume_size=70_000)
small.prepare()
print("ready", flush=True)
small.build_only()
"""


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.01, 0.03, 0.06, 0.1, 0.2])
def test_a_build_killed_at_any_moment_completes_on_rerun(tmp_path: Path, delay: float) -> None:
    work = tmp_path / "work"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, work], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "."},
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    small = SmallBundle(work, volume_size=70_000)
    if not small.out.exists():
        small.build_only()
    fresh = SmallBundle(tmp_path / "fresh", volume_size=70_000)
    fresh.prepare()
    for name in ("k.key.pem", "k.pub.pem"):
        (fresh.folder / "keys" / name).write_bytes((small.folder / "keys" / name).read_bytes())
    fresh.build_only()
    assert contents(small.out) == contents(fresh.out)
    assert not list(work.glob("*.partial"))


def test_a_second_build_to_the_same_folder_is_refused(tmp_path: Path) -> None:
    small = SmallBundle(tmp_path)
    small.prepare()
    packer = Packer(
        out=small.out, limit=10**6, form=ZipVolumes(), progress=SilentProgress(), bundle="small"
    )
    with packer.alone(), pytest.raises(StateError, match="another build writes here"):
        small.build_only()
    small.build_only()


def test_a_strangers_folder_beside_out_is_not_emptied(tmp_path: Path) -> None:
    small = SmallBundle(tmp_path)
    small.prepare()
    precious = tmp_path / "bundle.partial" / "precious.txt"
    precious.parent.mkdir()
    precious.write_text("x")
    with pytest.raises(StateError, match=r"bundle\.partial"):
        small.build_only()
    assert precious.read_text() == "x"


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b'{"a": 1}', b"\xff"])
def test_a_damaged_note_beside_a_stored_file_means_fetching_again(
    tmp_path: Path, damage: bytes
) -> None:
    small = SmallBundle(tmp_path)
    small.prepare()
    lock = small.lock()
    small.build_only(lock=lock, out=tmp_path / "one")
    sides = list((small.folder / "cache" / "objects").rglob("*.json"))
    assert sides
    for side in sides:
        kept = side.read_bytes()
        side.write_bytes(damage or kept.replace(b"0", b"1"))
    small.build_only(lock=lock, out=tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("where", ["half", "the end", "metadata"])
def test_a_damaged_store_is_never_signed_and_mends_itself(tmp_path: Path, where: str) -> None:
    small = SmallBundle(tmp_path)
    small.prepare()
    lock = small.lock()
    small.build_only(lock=lock, out=tmp_path / "one")
    sides = list((small.folder / "cache" / "objects").rglob("*.json"))
    assert sides
    for side in sides:
        stored = side.with_suffix("")
        data = bytearray(stored.read_bytes())
        inside = data.find(b".dist-info/METADATA")
        if where == "metadata" and inside < 0:
            continue
        at = {"half": len(data) // 2, "the end": len(data) - 30, "metadata": inside + 40}[where]
        data[at] ^= 1
        stored.chmod(0o644)
        stored.write_bytes(bytes(data))
        with pytest.raises(IntegrityError, match="damaged; it was removed"):
            small.build_only(lock=lock, out=tmp_path / "two")
        assert not (tmp_path / "two").exists()
        assert not stored.exists()
        small.build_only(lock=lock, out=tmp_path / "two")
        assert contents(tmp_path / "one") == contents(tmp_path / "two")
        shutil.rmtree(tmp_path / "two")


def test_names_of_parts_that_clash_with_files_are_refused(tmp_path: Path) -> None:
    small = SmallBundle(tmp_path)
    small.prepare()
    (small.folder / "model" / "toy.gguf.part1of3").write_bytes(b"x")
    with pytest.raises(FormatError, match="part1of3"):
        small.build_only()
