"""Media with bad manners: short reads and writes, FAT's limits, no writing at all.

A compiled shim stands between the whole process and the kernel, so it meets C code as well as Python's.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bundler import wiring
from bundler.deploy.root import Root
from bundler.format import layout
from bundler.format.blocks import content_id
from bundler.format.codec import parse_manifest
from bundler.format.digests import sha256_file
from tests.fakes.faults import contents
from tests.fakes.small_bundle import SmallBundle

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here")
    out = tmp_path_factory.mktemp("shim") / "medium.so"
    source = Path(__file__).parent.parent / "fakes" / "medium.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", out, source, "-ldl"], check=True)
    return out


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> SmallBundle:
    return SmallBundle(tmp_path_factory.mktemp("media") / "made", parity=1).build()


@pytest.fixture
def small(made: SmallBundle, tmp_path: Path) -> SmallBundle:
    return made.copy(tmp_path / "supplier")


class Medium:
    """A folder, and commands that meet it through the shim."""

    def __init__(self, shim: Path, folder: Path, **manners: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.env = {**os.environ, "LD_PRELOAD": str(shim), "MEDIUM": str(folder), **manners}

    def do(self, *words: object, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "bundler", *map(str, words)],
            env=self.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == code, done.stderr
        return done.stderr


def check_store(small: SmallBundle, root: Path) -> None:
    manifest = parse_manifest((small.out / layout.MANIFEST).read_bytes())
    for entry in manifest.payload:
        assert sha256_file(Root(root).object(content_id(entry))) == entry.sha256


def test_short_reads_and_writes_change_nothing(
    small: SmallBundle, shim: Path, tmp_path: Path
) -> None:
    medium = Medium(shim, tmp_path / "m", SHORT="1")
    stick, root, out = (medium.folder / name for name in ("stick", "root", "out"))
    stick.mkdir()
    (medium.folder / "probe").write_bytes(bytes(5000))
    asked = "import os, sys; print(len(os.pread(os.open(sys.argv[1], os.O_RDONLY), 5000, 0)))"
    got = subprocess.check_output(
        [sys.executable, "-c", asked, medium.folder / "probe"], env=medium.env
    )
    assert int(got) == 997
    key = ("--key", small.public, "--quiet")
    medium.do("copy", small.out, "--to", stick, *key)
    assert contents(stick) == contents(small.out)
    medium.do("verify", stick, *key)
    medium.do("import", stick, "--root", root, *key)
    check_store(small, root)
    medium.do("verify", "--quick", "--root", root, "--quiet")
    lost = stick / small.volumes()[1].name
    lost.unlink()
    medium.do("repair", stick, "--out", out, *key)
    assert (out / lost.name).read_bytes() == (small.out / lost.name).read_bytes()
    secret = tmp_path / "site.volumes.key"
    medium.do("keygen", "--volumes", "--out", tmp_path / "site")
    sealed = medium.folder / "sealed"
    sealed.mkdir()
    medium.do("copy", small.out, "--to", sealed, "--seal", secret, *key)
    medium.do("verify", sealed, "--volume-key", secret, *key)
    # And the bootstrap, which has its own reading.
    shutil.copytree(small.out, medium.folder / "whole", dirs_exist_ok=True)
    done = subprocess.run(
        [sys.executable, small.out / layout.BOOTSTRAP, "verify", "--key", small.public, "--dir",
         medium.folder / "whole"],
        env=medium.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_build_onto_a_medium_with_short_writes(
    small: SmallBundle, shim: Path, tmp_path: Path, made: SmallBundle
) -> None:
    """Through the pipeline itself, in a process that the shim holds."""
    code = (
        "import sys; from pathlib import Path; from tests.fakes.small_bundle import SmallBundle;"
        "small = SmallBundle(Path(sys.argv[1]), parity=1);"
        "small.build_only(lock=small.lock(), out=Path(sys.argv[2]))"
    )
    medium = Medium(shim, tmp_path / "m", SHORT="1")
    subprocess.run(
        [sys.executable, "-c", code, made.folder, medium.folder / "bundle"], env=medium.env, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert contents(medium.folder / "bundle") == contents(made.out)


def test_a_fat_stick_takes_a_copy_and_gives_it_back(
    small: SmallBundle, shim: Path, tmp_path: Path
) -> None:
    medium = Medium(shim, tmp_path / "stick", FAT="1", FAT_LIMIT=str(2**32 - 1))
    key = ("--key", small.public, "--quiet")
    medium.do("copy", small.out, "--to", medium.folder, *key)
    assert contents(medium.folder) == contents(small.out)
    medium.do("import", medium.folder, "--root", tmp_path / "root", *key)
    check_store(small, tmp_path / "root")


def test_a_file_that_fat_cannot_hold_is_an_error_and_leaves_nothing(
    small: SmallBundle, shim: Path, tmp_path: Path
) -> None:
    limit = max(path.stat().st_size for path in small.volumes()) - 10
    medium = Medium(shim, tmp_path / "stick", FAT="1", FAT_LIMIT=str(limit))
    said = medium.do(
        "copy", small.out, "--to", medium.folder, "--key", small.public, "--quiet", code=6
    )
    assert "File too large" in said
    assert not list(medium.folder.glob("*.partial"))
    whole = {path.name for path in small.volumes() if path.stat().st_size <= limit}
    assert {path.name for path in medium.folder.glob("*.zip")} <= whole


def test_a_read_only_medium_is_imported_from_and_not_written_to(
    small: SmallBundle, shim: Path, tmp_path: Path
) -> None:
    medium = Medium(shim, tmp_path / "stick", READ_ONLY="1")
    shutil.copytree(small.out, medium.folder, dirs_exist_ok=True)
    before = contents(medium.folder)
    key = ("--key", small.public, "--quiet")
    medium.do("verify", medium.folder, *key)
    medium.do("import", medium.folder, "--root", tmp_path / "root", *key)
    assert contents(medium.folder) == before
    for words in (
        ("import", small.out, "--root", medium.folder / "root", *key),
        ("copy", small.out, "--to", medium.folder, *key),
        ("sign", medium.folder, "--key", small.private, "--replace"),
        ("approve", medium.folder, "--by", "x", "--sign-with", other(tmp_path), *key),
    ):
        said = medium.do(*words, code=20)
        assert "Read-only file system" in said
        assert contents(medium.folder) == before


def other(folder: Path) -> Path:
    wiring.generate_keys(folder / "r.key.pem", folder / "r.pub.pem")
    return folder / "r.key.pem"
