"""What a rehearsal takes down, and that it ends with its block."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.deploy.root import Root
from bundler.errors import StateError
from bundler.format.atomic import remove, write_atomically
from bundler.format.rehearsal import Change, foreseen, in_earnest, instead, rehearsal, rehearsing


def test_writing_and_removing_are_taken_down(tmp_path: Path) -> None:
    there, fresh = tmp_path / "there", tmp_path / "sub" / "fresh"
    there.write_bytes(b"old")
    with rehearsal() as changes:
        write_atomically(there, b"new!")
        write_atomically(fresh, b"12")
        remove(there, "why")
        remove(tmp_path / "none")
        assert foreseen("remove", there)
    assert changes == [
        Change("replace", str(there), 4),
        Change("write", str(fresh), 2),
        Change("remove", str(there), None, "why"),
    ]
    assert there.read_bytes() == b"old"
    assert not fresh.parent.exists()


def test_it_ends_with_its_block_however_that_ends(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), rehearsal():
        raise ZeroDivisionError
    assert not rehearsing()
    assert not instead("write", tmp_path / "x")
    assert not foreseen("write", tmp_path / "x")
    write_atomically(tmp_path / "x", b"")
    assert (tmp_path / "x").is_file()


def test_the_cache_is_filled_in_earnest(tmp_path: Path) -> None:
    with rehearsal() as changes:
        with in_earnest():
            write_atomically(tmp_path / "fetched", b"1")
        assert rehearsing()
    assert not changes
    assert (tmp_path / "fetched").is_file()


def test_a_root_that_is_not_there_is_held_without_making_it(tmp_path: Path) -> None:
    root = Root(tmp_path / "root")
    with rehearsal(), root.alone(), root.without_bootstrap():
        assert root.make(root.path / "x") == root.path / "x"
    assert not root.path.exists()
    other = Root(root.path)
    with root.alone(), rehearsal(), pytest.raises(StateError, match="at work"), other.alone():
        pass
