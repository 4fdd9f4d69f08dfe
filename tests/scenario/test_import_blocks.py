"""Imports block by block: what is asked for again, what a power cut leaves, what has drifted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from bundler import wiring
from bundler.cli.app import run
from bundler.cli.console import SilentProgress
from bundler.deploy.importing import import_bundle
from bundler.deploy.root import Root
from bundler.deploy.storing import StoreSink
from bundler.domain.manifest import Entry, Manifest
from bundler.format import layout
from bundler.format.blocks import content_id
from bundler.format.codec import parse_manifest
from bundler.format.digests import sha256_file
from bundler.format.spans import BlockSpan
from tests.fakes.small_bundle import SmallBundle

pytestmark = pytest.mark.slow

BIG = "models/toy/toy.gguf"


@pytest.fixture
def small(tmp_path: Path) -> SmallBundle:
    return SmallBundle(tmp_path / "made").build()


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(tmp_path / "root")


def manifest_of(small: SmallBundle) -> Manifest:
    return parse_manifest((small.out / layout.MANIFEST).read_bytes())


def entry_of(small: SmallBundle, path: str = BIG) -> Entry:
    return next(entry for entry in manifest_of(small).entries if entry.path == path)


def bring(small: SmallBundle, root: Root, *folders: Path) -> Any:
    return import_bundle(
        folders or (small.out,), root=root, trust=wiring.gate().site(root, keys=wiring.verifiers([small.public])),
        form=wiring.volume_format(), progress=SilentProgress(),
    )  # fmt: skip


def flip(small: SmallBundle, block: int) -> None:
    """One bit in that block of the big file."""
    start = 0
    for part in entry_of(small).parts:
        at = block * manifest_of(small).block_size - start
        if 0 <= at < part.size:
            path = small.out / part.volume
            data = bytearray(path.read_bytes())
            data[part.offset + at] ^= 1
            path.write_bytes(data)
        start += part.size


def test_only_the_damaged_block_is_asked_for_again(
    small: SmallBundle, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip(small, 3)
    size = manifest_of(small).block_size
    found = bring(small, root)
    (damage,) = found.findings
    assert damage.where.endswith(f"{BIG}: bytes {3 * size} to {4 * size - 1}")
    assert not found.complete
    flip(small, 3)
    written: list[tuple[str, int]] = []
    real = StoreSink.write

    def watch(self: StoreSink, span: BlockSpan, at: int, chunk: memoryview) -> None:
        written.append((span.entry.path, span.index))
        real(self, span, at, chunk)

    monkeypatch.setattr(StoreSink, "write", watch)
    assert bring(small, root).complete
    assert set(written) == {(BIG, 3)}
    assert sha256_file(root.object(content_id(entry_of(small)))) == entry_of(small).sha256


@pytest.mark.parametrize("damage", ["half a line", "another size", "a strange list"])
def test_a_list_that_a_power_cut_spoilt_is_not_believed(
    small: SmallBundle, root: Root, damage: str
) -> None:
    flip(small, 0)
    bring(small, root)
    flip(small, 0)
    partial = root.partial(content_id(entry_of(small)))
    listed = partial.with_name(partial.name + ".blocks")
    assert len(listed.read_text().split()) == len(entry_of(small).blocks) - 1
    if damage == "half a line":
        listed.write_text("1\n2\n1")
    elif damage == "another size":
        partial.write_bytes(partial.read_bytes()[:-1])
    else:
        listed.write_bytes(b"\xff\xff\n-1\n99999\n\xd9\xa1\n1.5\n")
    assert bring(small, root).complete
    assert sha256_file(root.object(content_id(entry_of(small)))) == entry_of(small).sha256


def test_many_small_files_hold_few_handles(tmp_path: Path, root: Root) -> None:
    small = SmallBundle(tmp_path / "made", volume_size=400_000)
    small.prepare()
    for number in range(700):
        (small.folder / "model" / f"n{number}.txt").write_bytes(b"%d" % number * 40)
    small.build_only()
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (400, before[1]))
    try:
        assert bring(small, root).complete
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for entry in manifest_of(small).entries:
        assert sha256_file(root.object(content_id(entry))) == entry.sha256


def test_the_same_content_under_two_names_is_stored_once(tmp_path: Path, root: Root) -> None:
    small = SmallBundle(tmp_path / "made")
    small.prepare()
    shutil.copy(small.folder / "model" / "toy.gguf", small.folder / "model" / "copy.bin")
    (small.folder / "model" / "copy.bin").rename(small.folder / "model" / "twin.txt")
    small.build_only()
    assert bring(small, root).complete
    one, two = entry_of(small), entry_of(small, "models/toy/twin.txt")
    assert content_id(one) == content_id(two)
    assert bring(small, root).missing_volumes == ()


def test_quick_finds_what_drifted(
    small: SmallBundle, root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    bring(small, root)
    words = ["verify", "--quick", "--root", str(root.path), "--quiet"]
    assert run(words) == 0
    assert "without drift" in capsys.readouterr().out
    stored = root.object(content_id(entry_of(small)))
    stored.chmod(0o644)
    data = bytearray(stored.read_bytes())
    data[len(data) // 2] ^= 1
    stored.write_bytes(data)
    assert run(words) == 7
    assert f"{BIG}: its stored copy changed" in capsys.readouterr().err
    stored.unlink()
    assert run(words) == 7
    assert f"{BIG}: its stored copy changed" in capsys.readouterr().err


def test_verify_without_a_folder_says_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify"]) not in (0, 1)
    assert "--quick" in capsys.readouterr().err


def test_quick_of_an_empty_root_says_so(root: Root) -> None:
    assert run(["verify", "--quick", "--root", str(root.path)]) == 17
