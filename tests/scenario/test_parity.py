"""Parity: what is lost comes back byte by byte, and what cannot come back is said before the work."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from bundler import wiring
from bundler.cli.app import run
from bundler.cli.console import SilentProgress
from bundler.deploy.verify import verify
from bundler.errors import FormatError
from bundler.format import erasure, layout
from bundler.format.codec import parse_manifest, to_bytes
from bundler.format.rules import check_rules
from tests.fakes.small_bundle import SmallBundle

pytestmark = pytest.mark.slow


def built(folder: Path, parity: int, volume_size: int = 200_000) -> SmallBundle:
    if parity > 1:
        pytest.importorskip("zfec")
    return SmallBundle(folder, parity=parity, volume_size=volume_size).build()


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> SmallBundle:
    return built(tmp_path_factory.mktemp("one") / "made", 1)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> SmallBundle:
    return built(tmp_path_factory.mktemp("two") / "made", 2, 400_000)


def repair(small: SmallBundle, out: Path, *folders: Path, code: int = 0) -> None:
    places = [str(folder) for folder in folders or (small.out,)]
    words = ["repair", *places, "--out", str(out), "--key", str(small.public), "--quiet"]
    assert run(words) == code


def original(small: SmallBundle) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in small.volumes()}


def rebuilt(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir()} if out.exists() else {}


@pytest.mark.parametrize("parity", [0, 1, 2, 3])
def test_parity_volumes_are_as_the_spec_says_and_no_volume_is_over_the_limit(
    tmp_path: Path, parity: int
) -> None:
    small = built(tmp_path / "made", parity)
    names = [path.name for path in small.volumes() if ".par" in path.name]
    assert names == [f"small.par{number:03d}.zip" for number in range(1, parity + 1)]
    assert max(path.stat().st_size for path in small.volumes()) <= small.volume_size
    assert run(["verify", str(small.out), "--key", str(small.public), "--quiet"]) == 0
    root = ["--root", str(tmp_path / "root"), "--key", str(small.public), "--quiet"]
    for path in small.volumes():
        if ".par" in path.name:
            path.unlink()
    # What is only there for the journey is not asked for behind it.
    assert run(["import", str(small.out), *root]) == 0
    assert run(["install", "--root", str(tmp_path / "root"), "--quiet"]) == 0


def test_two_builds_with_parity_are_identical(tmp_path: Path) -> None:
    small = built(tmp_path / "made", 1)
    small.build_only(out=tmp_path / "again")
    for path in (tmp_path / "again").iterdir():
        assert path.read_bytes() == (small.out / path.name).read_bytes()


def test_any_one_lost_volume_comes_back(one: SmallBundle, tmp_path: Path) -> None:
    whole = original(one)
    for name in whole:
        small = one.copy(tmp_path / name)
        (small.out / name).unlink()
        repair(small, tmp_path / name / "out")
        assert rebuilt(tmp_path / name / "out") == {name: whole[name]}


@pytest.mark.slow
def test_any_two_lost_volumes_come_back(two: SmallBundle, tmp_path: Path) -> None:
    whole = original(two)
    for pair in itertools.combinations(whole, 2):
        place = tmp_path / "-".join(pair)
        small = two.copy(place)
        for name in pair:
            (small.out / name).unlink()
        repair(small, place / "out")
        assert rebuilt(place / "out") == {name: whole[name] for name in pair}


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 12))]
)
def test_damage_of_every_kind_comes_back(two: SmallBundle, tmp_path: Path, seed: int) -> None:
    """Flips anywhere, headers and directories included, truncations, swaps: up to two volumes."""
    noise = random.Random(seed)
    whole = original(two)
    small = two.copy(tmp_path)
    first, second = noise.sample(sorted(whole), 2)
    for name in (first, second):
        data = bytearray(whole[name])
        kind = noise.choice(["flip", "cut", "lengthen", "delete", "zeros"])
        if kind == "flip":
            data[noise.randrange(len(data))] ^= 1 << noise.randrange(8)
        elif kind == "cut":
            del data[noise.randrange(len(data)) :]
        elif kind == "lengthen":
            data += b"more"
        elif kind == "zeros":
            data = bytearray(len(data))
        (small.out / name).write_bytes(data)
        if kind == "delete":
            (small.out / name).unlink()
    if noise.random() < 0.2:
        (small.out / first).write_bytes(whole[second])
        (small.out / second).write_bytes(whole[first])
    repair(small, tmp_path / "out")
    found = rebuilt(tmp_path / "out")
    assert set(found) == {first, second}
    assert all(found[name] == whole[name] for name in found)


def test_more_volumes_than_parity_come_back_when_their_damage_lies_apart(
    one: SmallBundle, tmp_path: Path
) -> None:
    whole = original(one)
    small = one.copy(tmp_path)
    step = parse_manifest((small.out / layout.MANIFEST).read_bytes()).block_size
    harmed = [name for name in whole if ".vol" in name][:3]
    for number, name in enumerate(harmed):
        data = bytearray(whole[name])
        data[(4 * number + 2) * step] ^= 1
        (small.out / name).write_bytes(data)
    repair(small, tmp_path / "out")
    assert rebuilt(tmp_path / "out") == {name: whole[name] for name in harmed}


def test_too_much_is_said_before_anything_is_written(
    one: SmallBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = one.copy(tmp_path)
    lost = sorted(original(small))[:2]
    for name in lost:
        (small.out / name).unlink()
    repair(small, tmp_path / "out", code=7)
    said = capsys.readouterr().err
    assert "cannot be rebuilt: 2 volumes" in said
    assert all(name in said for name in lost)
    assert "Copy at least 1 of them again" in said
    assert not (tmp_path / "out").exists()


def test_sound_bundles_and_those_without_parity_are_answered(
    one: SmallBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repair(one, tmp_path / "out")
    assert "nothing is lost or damaged" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    plain = SmallBundle(tmp_path / "plain").build()
    repair(plain, tmp_path / "out", code=17)
    assert "no parity" in capsys.readouterr().err


def test_volumes_may_lie_in_several_folders(one: SmallBundle, tmp_path: Path) -> None:
    whole = original(one)
    small = one.copy(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    names = sorted(whole)
    (small.out / names[0]).rename(other / names[0])
    (small.out / names[1]).unlink()
    repair(small, tmp_path / "out", small.out, other)
    assert rebuilt(tmp_path / "out") == {names[1]: whole[names[1]]}


@pytest.mark.parametrize("whole", [True, False], ids=["whole volumes", "one of them damaged"])
def test_what_was_imported_stands_for_sticks_that_have_gone_back(
    one: SmallBundle, tmp_path: Path, whole: bool
) -> None:
    """Volumes one after the other on one stick; the third is lost, and only parity is still there."""
    wanted = original(one)
    small, root = one.copy(tmp_path), tmp_path / "root"
    words = ["--root", str(root), "--key", str(small.public), "--quiet"]
    lost = small.volumes()[3]
    lost.unlink()
    assert run(["import", str(small.out), *words]) == 16
    for path in small.volumes():
        if ".par" not in path.name:
            path.unlink()
    if not whole:
        stored = next(path for path in root.glob("store/*/*") if path.stat().st_size > 100_000)
        stored.chmod(0o644)
        data = bytearray(stored.read_bytes())
        data[50_000] ^= 1
        stored.write_bytes(data)
    out = tmp_path / "out"
    repair(small, out, code=7)
    assert not out.exists()
    found = run(["repair", str(small.out), "--out", str(out), *words])
    if whole:
        assert found == 0
        assert rebuilt(out) == {lost.name: wanted[lost.name]}
        assert run(["import", str(small.out), str(out), *words]) == 0
    else:
        # Drift in the store is damage like any other: here at another place than what is lost, or not.
        assert found in (0, 7)
        assert all(data == wanted[name] for name, data in rebuilt(out).items())


def test_without_zfec_it_says_where_to_repair(
    two: SmallBundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    small = two.copy(tmp_path)
    small.volumes()[0].unlink()

    def absent(name: str) -> object:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(erasure, "import_module", absent)
    repair(small, tmp_path / "out", code=18)
    assert "airbundle[parity]" in capsys.readouterr().err
    assert not list((tmp_path / "out").iterdir())


def test_manifests_that_lie_about_parity_are_refused(one: SmallBundle) -> None:
    manifest = parse_manifest((one.out / layout.MANIFEST).read_bytes())
    [known] = manifest.parity
    lies = [
        {"parity": ()},
        {"parity": (known, known)},
        {"parity": (known.model_copy(update={"volumes": known.volumes[1:]}),)},
        {"parity": (known.model_copy(update={"volumes": (*known.volumes, "none.zip")}),)},
        {"parity": (known.model_copy(update={"parity": ("parity/none",)}),)},
        {"parity": (known.model_copy(update={"code": "zfec"}),)},
    ]
    for lie in lies:
        with pytest.raises(FormatError, match=r"parity|xor"):
            check_rules(manifest.model_copy(update=lie))
    assert parse_manifest(to_bytes(manifest)) == manifest


@pytest.mark.slow
def test_a_thousand_faults_are_found_named_and_repaired(two: SmallBundle, tmp_path: Path) -> None:
    """Single bits, truncations, deletions and swaps, in one volume or two at once."""
    noise = random.Random(2026)
    whole = original(two)
    small = two.copy(tmp_path)
    names = sorted(whole)
    for round_ in range(1000):
        harmed = set(noise.sample(names, noise.choice([1, 1, 1, 2])))
        kind = noise.choice(["bit", "bit", "bit", "bit", "truncation", "deletion", "swap"])
        if kind == "swap" and len(harmed) == 2:
            first, second = sorted(harmed)
            (small.out / first).write_bytes(whole[second])
            (small.out / second).write_bytes(whole[first])
        for name in harmed if kind != "swap" else ():
            data = bytearray(whole[name])
            at = noise.randrange(len(data))
            if kind == "bit":
                data[at] ^= 1 << noise.randrange(8)
            elif kind == "truncation":
                del data[at:]
            (small.out / name).write_bytes(data)
            if kind == "deletion":
                (small.out / name).unlink()
        if kind == "swap" and len(harmed) == 1:
            harmed = set()
        result = verify(
            small.out, trust=wiring.gate().site(None, keys=wiring.verifiers([small.public])), form=wiring.volume_format(),
            progress=SilentProgress(),
        )  # fmt: skip
        named = {finding.where.partition(": ")[0] for finding in result.findings}
        assert named | set(result.missing) == harmed, (round_, kind)
        if round_ % 10 == 0:
            out = tmp_path / "out" / str(round_)
            repair(small, out)
            assert rebuilt(out) == {name: whole[name] for name in harmed}, (round_, kind)
        for name in harmed:
            (small.out / name).write_bytes(whole[name])
