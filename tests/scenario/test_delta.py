"""Deltas: only what the site lacks is carried; import completes it from what is there, or refuses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bundler import wiring
from bundler.build.pipeline import BOOTSTRAP_FILE
from bundler.cli.app import run
from bundler.deploy.root import Root
from bundler.domain.manifest import Manifest
from bundler.errors import FormatError
from bundler.format import layout
from bundler.format.blocks import content_id
from bundler.format.codec import parse_manifest, to_bytes
from bundler.format.digests import sha256_file, sha256_hex
from bundler.format.rules import check_rules
from tests.fakes.gguf import gguf_bytes
from tests.fakes.small_bundle import SmallBundle

pytestmark = pytest.mark.slow

BIG = "models/toy/toy.gguf"


@pytest.fixture
def old(tmp_path: Path) -> SmallBundle:
    return SmallBundle(tmp_path / "old").build()


@pytest.fixture
def new(tmp_path: Path, old: SmallBundle) -> SmallBundle:
    """The same model with another text beside it."""
    made = SmallBundle(tmp_path / "new")
    made.prepare()
    (made.folder / "model" / "설명서.txt").write_text("새 설명\n", encoding="utf-8")
    made.build_only(base=old.out)
    return made


def manifest_of(small: SmallBundle) -> Manifest:
    return parse_manifest((small.out / layout.MANIFEST).read_bytes())


def bring(small: SmallBundle, root: Path, code: int = 0) -> None:
    words = ["import", str(small.out), "--root", str(root), "--key", str(small.public), "--quiet"]
    assert run(words) == code


def test_only_what_the_base_lacks_is_carried(old: SmallBundle, new: SmallBundle) -> None:
    manifest = manifest_of(new)
    assert manifest.base is not None
    assert manifest.base.manifest_sha256 == sha256_hex((old.out / layout.MANIFEST).read_bytes())
    held = {entry.path for entry in manifest.held}
    assert BIG in held
    assert "models/toy/설명서.txt" not in held
    assert not any("airbundle" in path or "uv-" in path for path in held)
    sizes = [sum(path.stat().st_size for path in small.volumes()) for small in (old, new)]
    assert sizes[1] < sizes[0] - 490_000
    assert run(["verify", str(new.out), "--key", str(new.public), "--quiet"]) == 0
    done = subprocess.run(
        [sys.executable, BOOTSTRAP_FILE, "verify", "--key", new.public, "--dir", new.out],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_import_completes_it_from_the_store_and_it_installs(
    old: SmallBundle, new: SmallBundle, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    bring(old, root)
    bring(new, root)
    assert run(["install", "--root", str(root), "--quiet"]) == 0
    [release] = (root / "releases").glob(
        f"small-{sha256_hex((new.out / layout.MANIFEST).read_bytes())[:12]}"
    )
    assert sha256_file(release / BIG) == sha256_file(new.folder / "model" / "toy.gguf")
    assert (release / "models/toy/설명서.txt").read_text(encoding="utf-8") == "새 설명\n"


def test_without_its_base_it_is_refused_and_nothing_is_written(
    old: SmallBundle, new: SmallBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    bring(new, root, code=17)
    said = capsys.readouterr().err
    base = manifest_of(new).base
    assert base is not None
    assert f"builds on {base.bundle_id}" in said
    assert f"Import {base.bundle_id} first" in said
    assert not (root / "bundles").exists()
    assert not (root / "store").exists()
    bring(old, root)
    stored = Root(root).object(
        content_id(next(e for e in manifest_of(old).entries if e.path == BIG))
    )
    stored.unlink()
    bring(new, root, code=17)
    assert "1 files" in capsys.readouterr().err


def test_a_delta_on_a_delta(old: SmallBundle, new: SmallBundle, tmp_path: Path) -> None:
    third = SmallBundle(tmp_path / "third")
    third.prepare()
    (third.folder / "model" / "toy.gguf").write_bytes(gguf_bytes(300_000, seed=7))
    third.build_only(base=new.out)
    assert BIG not in {entry.path for entry in manifest_of(third).held}
    root = tmp_path / "root"
    for small in (old, new, third):
        bring(small, root)
    assert run(["install", "--root", str(root), "--quiet"]) == 0
    assert run(["verify", "--quick", "--root", str(root), "--quiet"]) == 0


def test_two_builds_of_a_delta_are_identical(
    old: SmallBundle, new: SmallBundle, tmp_path: Path
) -> None:
    new.build_only(base=old.out, out=tmp_path / "again")
    for path in (tmp_path / "again").iterdir():
        assert path.read_bytes() == (new.out / path.name).read_bytes()


def test_manifests_that_hold_back_too_much_are_refused(new: SmallBundle) -> None:
    manifest = manifest_of(new)
    entries = {entry.path: entry for entry in manifest.entries}
    for path in (manifest.tool.uv_wheel, manifest.tool.requirements, layout.LOCK_PATH):
        bad = [
            entry.model_copy(update={"parts": ()}) if entry.path == path else entry
            for entry in entries.values()
        ]
        with pytest.raises(FormatError, match="has no parts"):
            check_rules(manifest.model_copy(update={"entries": tuple(bad)}))
    with pytest.raises(FormatError, match="has no parts"):
        check_rules(manifest.model_copy(update={"base": None}))


def test_a_bootstrap_does_not_take_an_absent_wheel_for_an_empty_one(
    new: SmallBundle, tmp_path: Path
) -> None:
    """A strange builder leaves out a wheel of the tool."""
    manifest = manifest_of(new)
    path = next(e.path for e in manifest.entries if e.path.startswith("wheels/airbundle-"))
    entries = tuple(
        e.model_copy(update={"parts": ()}) if e.path == path else e for e in manifest.entries
    )
    data = to_bytes(manifest.model_copy(update={"entries": entries}))
    (new.out / layout.MANIFEST).write_bytes(data)
    signature = wiring.signer(new.private).sign(data)
    (new.out / layout.SIGNATURE).write_bytes(signature)
    done = subprocess.run(
        [sys.executable, BOOTSTRAP_FILE, "install", "--key", new.public, "--dir", new.out,
         "--root", tmp_path / "root"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode in (16, 18), done.stderr
    assert not shutil.which("airbundle", path=str(tmp_path / "root" / "bin"))
