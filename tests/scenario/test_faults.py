"""Death and refusals at every write, rename and sync: the same command completes, byte by byte alike."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bundler.cli.app import run
from bundler.deploy.root import Root
from bundler.errors import BundlerError
from bundler.format import layout
from bundler.format.blocks import content_id
from bundler.format.codec import parse_manifest
from tests.fakes.faults import CRASHED, DIED, contents, in_child
from tests.fakes.small_bundle import SmallBundle

pytestmark = pytest.mark.slow

REFUSALS = {errno.ENOSPC: 6, errno.EIO: 20, errno.EROFS: 20, errno.EFBIG: 6}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallBundle:
    return SmallBundle(tmp_path_factory.mktemp("faults") / "made", parity=1).build()


def quiet(*words: str) -> Callable[[], int]:
    return lambda: run([*words, "--quiet"])


def importing(small: SmallBundle, root: Path) -> Callable[[], int]:
    return quiet("import", str(small.out), "--root", str(root), "--key", str(small.public))


def check_import(small: SmallBundle, root: Path) -> None:
    assert importing(small, root)() == 0
    manifest = parse_manifest((small.out / layout.MANIFEST).read_bytes())
    for entry in manifest.payload:
        stored = Root(root).object(content_id(entry))
        assert stored.stat().st_size == entry.size
    assert quiet("verify", "--quick", "--root", str(root))() == 0
    partial = root / "store" / "partial"
    assert not partial.exists() or list(partial.iterdir()) == []
    assert not list(root.rglob("*.new"))


def steps(total: int, every: bool) -> list[int]:
    """All boundaries, or a few spread over them."""
    return list(range(1, total + 1, 1 if every else max(1, total // 6)))


ALL = pytest.param(True, marks=pytest.mark.slow, id="every step")
SOME = pytest.param(False, id="some steps")


@pytest.mark.parametrize("every", [SOME, ALL])
def test_an_import_that_dies_anywhere_is_completed(
    small: SmallBundle, tmp_path: Path, every: bool
) -> None:
    code, total = in_child(importing(small, tmp_path / "count"), 0, None)
    assert code == 0
    assert total > 50
    for at in steps(total, every):
        root = tmp_path / str(at)
        code, _ = in_child(importing(small, root), at, None)
        # Threads may reach the boundary in another order: then it has ended before.
        assert code in (DIED, 0), at
        check_import(small, root)
        shutil.rmtree(root)


@pytest.mark.parametrize("every", [SOME, ALL])
@pytest.mark.parametrize("fault", REFUSALS)
def test_an_import_that_is_refused_anywhere_says_so_and_is_completed(
    small: SmallBundle, tmp_path: Path, fault: int, every: bool
) -> None:
    _, total = in_child(importing(small, tmp_path / "count"), 0, None)
    for at in steps(total, every)[:: 1 if not every else 6]:
        root = tmp_path / f"{at}"
        code, _ = in_child(importing(small, root), at, fault)
        # What only tidies up may fail without harm.
        assert code in (REFUSALS[fault], 0), at
        check_import(small, root)
        shutil.rmtree(root)


def copying(small: SmallBundle, medium: Path) -> Callable[[], int]:
    return quiet("copy", str(small.out), "--to", str(medium), "--key", str(small.public))


@pytest.mark.parametrize("every", [SOME, ALL])
@pytest.mark.parametrize("fault", [None, errno.ENOSPC, errno.EIO])
def test_a_copy_that_dies_or_is_refused_anywhere_is_completed(
    small: SmallBundle, tmp_path: Path, fault: int | None, every: bool
) -> None:
    listed = small.out.with_name(f"{small.out.name}.shipping.json")
    (tmp_path / "count").mkdir()
    code, total = in_child(copying(small, tmp_path / "count"), 0, None)
    assert code == 0
    listed.unlink()
    for at in steps(total, every)[:: 1 if not every else 2]:
        medium = tmp_path / str(at)
        medium.mkdir()
        code, _ = in_child(copying(small, medium), at, fault)
        assert code != CRASHED, at
        assert code in ((DIED, 0) if fault is None else (*REFUSALS.values(), 7, 0)), at
        assert copying(small, medium)() == 0
        assert contents(medium) == contents(small.out), at
        shutil.rmtree(medium)
        listed.unlink()


@pytest.mark.parametrize("every", [SOME, ALL])
@pytest.mark.parametrize("fault", [None, errno.ENOSPC, errno.EIO])
def test_a_build_that_dies_or_is_refused_anywhere_is_completed(
    small: SmallBundle, tmp_path: Path, fault: int | None, every: bool
) -> None:
    lock = small.lock()
    wanted = contents(small.out)

    def building(out: Path) -> Callable[[], int]:
        def build() -> int:
            try:
                small.build_only(lock=lock, out=out)
            except BundlerError as error:
                return error.exit_code
            return 0

        return build

    code, total = in_child(building(tmp_path / "count"), 0, None)
    assert code == 0
    for at in steps(total, every)[:: 1 if not every else 2]:
        out = tmp_path / str(at)
        code, _ = in_child(building(out), at, fault)
        assert code != CRASHED, at
        assert code in ((DIED, 0) if fault is None else (*REFUSALS.values(), 0)), at
        if not out.exists():
            assert building(out)() == 0, at
        assert contents(out) == wanted, at
        assert not out.with_name(f"{out.name}.partial").exists()
        shutil.rmtree(out)
