"""Wheels that the target's Python may not have are found before the trip."""

from pathlib import Path

import pytest

from bundler.build.fetch import Fetched
from bundler.build.store import Blob
from bundler.build.wheelcheck import check_wheels
from bundler.domain.target import Target
from bundler.errors import IntegrityError, ResolveError
from bundler.format.ingest import digest_file
from tests.fakes.wheels import make_wheel

TARGET = Target(python="3.12", glibc="2.31")


def fetched(path: Path) -> Fetched:
    return Fetched(f"wheels/{path.name}", "wheel", "test", Blob(path, digest_file(path)))


@pytest.mark.parametrize("wanted", [None, ">=3.9", ">=3.10,<3.13", ">=3.12.4", "==3.12.*", "odd"])
def test_a_wheel_for_the_targets_python_passes(tmp_path: Path, wanted: str | None) -> None:
    wheel = make_wheel(tmp_path, "x", "1", {"x.py": b""}, requires_python=wanted)
    check_wheels([fetched(wheel)], TARGET)


def test_wheels_that_refuse_the_targets_python_are_all_named(tmp_path: Path) -> None:
    wheels = [
        make_wheel(tmp_path, name, "1", {f"{name}.py": b""}, requires_python=wanted)
        for name, wanted in (("a", "<3.12"), ("b", ">=3.8"), ("c", ">=3.13"))
    ]
    with pytest.raises(ResolveError, match=r"CPython 3\.12: a-1.*\(<3\.12\), c-1.*\(>=3\.13\)"):
        check_wheels([fetched(wheel) for wheel in wheels], TARGET)


def test_a_file_that_is_no_wheel_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x-1-py3-none-any.whl"
    path.write_bytes(b"PK not a wheel")
    with pytest.raises(IntegrityError, match=r"x-1-py3-none-any\.whl: is no wheel"):
        check_wheels([fetched(path)], TARGET)
