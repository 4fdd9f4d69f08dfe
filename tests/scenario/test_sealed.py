"""Sealed volumes on their way: copied, lost, verified, imported, repaired; keys never in the bundle."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bundler.cli.app import run
from bundler.format import layout
from bundler.format.codec import parse_manifest
from bundler.format.sealing import SUFFIX, VolumeKey
from tests.fakes.small_bundle import SmallBundle


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SmallBundle:
    return SmallBundle(
        tmp_path_factory.mktemp("sealed"), sealable=True, parity=1, volume_size=300_000
    ).build()


@pytest.fixture
def small(made: SmallBundle, tmp_path: Path) -> SmallBundle:
    return made.copy(tmp_path)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    assert run(["keygen", "--volumes", "--out", str(tmp_path / "site")]) == 0
    return tmp_path / "site.volumes.key"


def do(*words: object, code: int = 0) -> None:
    assert run([str(word) for word in words]) == code


def copy_to(
    small: SmallBundle, key: Path, *sticks: Path, code: int = 0, part: bool = False
) -> None:
    for stick in sticks:
        stick.mkdir(exist_ok=True)
    media = [word for stick in sticks for word in ("--to", stick)]
    more = ["--part"] if part else []
    do("copy", small.out, *media, "--seal", key, "--key", small.public, "--quiet", *more, code=code)


def test_nothing_but_what_starts_the_tool_is_readable_on_the_medium(
    made: SmallBundle, small: SmallBundle, key: Path, tmp_path: Path
) -> None:
    stick = tmp_path / "stick"
    copy_to(small, key, stick)
    manifest = parse_manifest((small.out / layout.MANIFEST).read_bytes())
    opens = [volume.open for volume in manifest.volumes]
    assert opens == sorted(opens, reverse=True)
    assert set(opens) == {True, False}
    inside = {
        entry.path for entry in manifest.entries for part in entry.parts
        if (stick / part.volume).exists()
    }  # fmt: skip
    assert all(path.startswith(("wheels/airbundle-", "wheels/uv-")) or path == layout.TOOL_REQUIREMENTS
               for path in inside)  # fmt: skip
    secret = (made.folder / "model" / "toy.gguf").read_bytes()[-64:]
    assert not any(secret in path.read_bytes() for path in stick.iterdir())
    assert not any(
        VolumeKey.read(key).secret in path.read_bytes() or
        VolumeKey.read(key).secret.hex().encode() in path.read_bytes()
        for folder in (stick, small.out) for path in folder.iterdir()
    )  # fmt: skip
    # At the gate, stock tools still see whether the medium is as it was written.
    sums = subprocess.run(["sha256sum", "-c", "--quiet", layout.CHECKSUMS], cwd=stick, check=False)
    assert sums.returncode == 0
    shipped = json.loads((small.folder / "bundle.shipping.json").read_bytes())
    assert shipped["to_come"] == []
    assert sum(file["name"].endswith(SUFFIX) for file in shipped["media"][0]["volumes"]) >= 3


def test_a_sealed_bundle_is_verified_and_imported_with_its_key(
    small: SmallBundle, key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stick = tmp_path / "stick"
    copy_to(small, key, stick)
    for command in (["verify", stick], ["import", stick, "--root", tmp_path / "root"]):
        words = [*command, "--key", small.public, "--quiet"]
        do(*words, code=19)
        assert "--volume-key" in capsys.readouterr().err
        do("keygen", "--volumes", "--out", tmp_path / f"other-{command[0]}")
        do(*words, "--volume-key", tmp_path / f"other-{command[0]}.volumes.key", code=19)
        assert "opens none" in capsys.readouterr().err
        do(*words, "--volume-key", key)
    do("install", "--root", tmp_path / "root", "--quiet")


def test_a_damaged_sealed_volume_is_named_and_the_rest_comes_in(
    small: SmallBundle, key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stick, root = tmp_path / "stick", tmp_path / "root"
    copy_to(small, key, stick)
    victim = sorted(stick.glob(f"*{SUFFIX}"))[1]
    good = victim.read_bytes()
    victim.write_bytes(good[:5000] + bytes([good[5000] ^ 1]) + good[5001:])
    words = ("--key", small.public, "--volume-key", key, "--quiet")
    do("verify", stick, *words, code=7)
    said = capsys.readouterr().err
    assert victim.name.removesuffix(SUFFIX) in said
    assert "sealed with another key" in said
    do("import", stick, "--root", root, *words, code=7)
    victim.write_bytes(good)
    for other in stick.glob("*.zip*"):
        if other != victim:
            other.unlink()
    do("import", stick, "--root", root, *words)


def test_parity_rebuilds_from_sealed_volumes(small: SmallBundle, key: Path, tmp_path: Path) -> None:
    stick, out = tmp_path / "stick", tmp_path / "rebuilt"
    copy_to(small, key, stick)
    victim = sorted(stick.glob(f"*.vol*{SUFFIX}"))[0]
    victim.unlink()
    words = ("--key", small.public, "--volume-key", key, "--quiet")
    do("repair", stick, "--out", out, *words)
    name = victim.name.removesuffix(SUFFIX)
    assert (out / name).read_bytes() == (small.out / name).read_bytes()
    do("import", stick, out, "--root", tmp_path / "root", *words)


def test_a_rerun_writes_only_what_is_missing(small: SmallBundle, key: Path, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    copy_to(small, key, stick)
    before = {path.name: path.stat().st_mtime_ns for path in stick.glob("*.zip*")}
    victim = sorted(stick.glob(f"*{SUFFIX}"))[0]
    victim.unlink()
    copy_to(small, key, stick)
    after = {path.name: path.stat().st_mtime_ns for path in stick.glob("*.zip*")}
    assert {name for name in before if before[name] != after[name]} == {victim.name}


def test_what_lies_there_open_is_not_left_beside(
    small: SmallBundle, key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    do("copy", small.out, "--to", stick, "--key", small.public, "--quiet")
    copy_to(small, key, stick, code=17)
    assert "unsealed" in capsys.readouterr().err
    assert not list(stick.glob(f"*{SUFFIX}"))


def test_the_bootstrap_starts_from_the_open_volume(
    small: SmallBundle, key: Path, tmp_path: Path
) -> None:
    stick = tmp_path / "stick"
    copy_to(small, key, stick)
    script = stick / layout.BOOTSTRAP
    done = subprocess.run(
        ["python3", script, "verify", "--key", small.public],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "sealed volume" in done.stdout
    assert "not part" not in done.stderr
    # Without volumes of its own the tool is sealed too, and a bare host is told so.
    whole = replace(small, sealable=False, parity=0, folder=tmp_path / "whole")
    shutil.copytree(small.folder / "keys", whole.folder / "keys")
    whole.build()
    other = tmp_path / "other"
    copy_to(whole, key, other)
    done = subprocess.run(
        ["python3", other / layout.BOOTSTRAP, "install", "--key", whole.public, "--root", tmp_path / "r"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 16
    assert "sealed" in done.stderr


def test_a_good_copy_on_another_stick_is_taken_and_damage_is_no_wrong_key(
    small: SmallBundle, key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stick, bad = tmp_path / "stick", tmp_path / "bad"
    copy_to(small, key, stick)
    bad.mkdir()
    names = [path.name for path in stick.glob(f"*.vol*{SUFFIX}")]
    for name in names:
        (bad / name).write_bytes(b"")
    (bad / names[0].removesuffix(SUFFIX)).write_bytes(b"cut")
    words = ("--key", small.public, "--volume-key", key, "--quiet")
    do("import", bad, stick, "--root", tmp_path / "root", *words)
    # Where nothing better is there, it is damage, and the folder is named.
    for name in names:
        (stick / name).write_bytes(b"")
    do("verify", stick, *words, code=7)
    assert "truncated" in capsys.readouterr().err
    do("import", bad, stick, "--root", tmp_path / "other", *words, code=7)
    assert f"was read from {bad}" in " ".join(capsys.readouterr().err.split())
