"""A pack takes another's place whole, whenever its writer dies or the disk refuses."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from bundler.errors import BundlerError
from bundler.format.reviewpack import BUNDLE, SUMS
from bundler.review.pack import write_pack
from tests.fakes.faults import CRASHED, DIED, in_child

pytestmark = pytest.mark.slow


def pack(text: bytes) -> dict[str, bytes]:
    return {BUNDLE: b"of a bundle\n", "review.html": text, "licences/wheel-a/01-LICENSE.txt": text}


def write(out: Path, text: bytes) -> int:
    try:
        write_pack(pack(text), out, None)
    except BundlerError:
        return 1
    return 0


@pytest.mark.parametrize("fault", [None, errno.ENOSPC])
def test_another_pack_is_there_whole_or_the_one_before(tmp_path: Path, fault: int | None) -> None:
    out = tmp_path / "review"
    at = passed = 0
    while passed == at:
        at += 1
        write(out, b"old")
        code, passed = in_child(lambda: write(out, b"new"), at, fault)
        passed = at if code == DIED else min(passed, at)
        assert code != CRASHED
        if out.exists():
            found = {path.name for path in out.rglob("*") if path.is_file()}
            assert found == {BUNDLE, "review.html", "01-LICENSE.txt", SUMS}, at
        else:
            assert fault is None
        # The same command again goes through, and leaves nothing beside it.
        assert write(out, b"again") == 0
        assert (out / "review.html").read_bytes() == b"again"
        assert [path.name for path in tmp_path.iterdir()] == ["review"], at
    assert at > 5
