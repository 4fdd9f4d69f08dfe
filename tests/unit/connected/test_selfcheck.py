"""The closure proves itself: real uv, hand-made wheels, no index."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

from bundler import wiring
from bundler.adapters.wheels_uv.resolver import UvResolver
from bundler.build.fetch import Fetched
from bundler.build.selfcheck import check_closures
from bundler.build.store import Blob
from bundler.build.tags import best_wheel
from bundler.build.toolwheel import tool_version
from bundler.domain.hostindex import HostIndex
from bundler.domain.lock import Lock, LockedWheel
from bundler.domain.spec import BundleSpec
from bundler.domain.target import Target
from bundler.errors import ResolveError
from bundler.format import layout
from bundler.format.ingest import digest_file
from bundler.ports import WheelRequest
from tests.fakes.wheels import make_wheel

TARGET = Target.model_validate({"python": "3.12", "glibc": "2.31"})


class Closure:
    """An engine closure and a tool closure of one wheel, in a folder."""

    def __init__(self, folder: Path, **engine: Any) -> None:
        self.folder = folder
        self.spec = BundleSpec.model_validate(
            {
                "name": "b",
                "target": {"python": "3.12", "glibc": "2.31"},
                "models": [{"source": "local", "path": "m"}],
                "engine": {"name": "llama.cpp", "version": "1.0", "package": "eng", **engine},
            }
        )
        self.engine: list[Path] = []
        self.tool = [make_wheel(folder / "tool", "airbundle", tool_version(), {})]

    def add(self, name: str, version: str = "1.0", **rest: Any) -> Path:
        path = make_wheel(self.folder / "wheels", name, version, {}, **rest)
        self.engine.append(path)
        return path

    def check(self, resolver: object | None = None) -> None:
        def locked(path: Path) -> LockedWheel:
            name, version = path.name.split("-")[:2]
            return LockedWheel(
                name=name.replace("_", "-"), version=version, filename=path.name,
                url=path.as_uri(), sha256=digest_file(path).sha256,
            )  # fmt: skip

        lock = Lock(
            spec_sha256="0" * 64, created="2026-01-01T00:00:00Z", airbundle_version=tool_version(),
            target=TARGET, engine_name="llama.cpp", engine_version="1.0",
            engine_wheels=tuple(map(locked, self.engine)),
            tool_wheels=tuple(map(locked, self.tool)),
        )  # fmt: skip
        fetched = [
            Fetched(layout.wheel_path(path.name), "wheel", "", Blob(path, digest_file(path)))
            for path in [*self.engine, *self.tool]
        ]
        index = HostIndex(
            default_index="http://127.0.0.1:9/simple", extra_indexes=("http://127.0.0.1:9/x",)
        )
        real = UvResolver(
            runner=wiring.runner(), uv=wiring.uv_program(), python=sys.executable,
            index=index, choose=best_wheel,
        )  # fmt: skip
        work = self.folder / "work"
        check_closures(self.spec, lock, self.folder, fetched, resolver or real, work)  # type: ignore[arg-type]
        assert not work.exists()


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead proxy: whoever asks the network fails."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")


def test_a_whole_closure_passes(tmp_path: Path) -> None:
    closure = Closure(tmp_path)
    closure.add("eng", requires=("dep>=1",))
    closure.add("dep", "2.0")
    closure.check()


def test_a_gap_is_named(tmp_path: Path) -> None:
    closure = Closure(tmp_path)
    closure.add("eng", requires=("dep>=1",))
    with pytest.raises(ResolveError, match=r"eng 1\.0 is not complete by itself.*dep"):
        closure.check()


def test_a_gap_of_an_extra_is_named(tmp_path: Path) -> None:
    closure = Closure(tmp_path, extras=["fast"])
    closure.add("eng", requires=("dep>=1; extra == 'fast'",))
    with pytest.raises(ResolveError, match="dep"):
        closure.check()


def test_a_dependency_of_another_platform_is_no_gap(tmp_path: Path) -> None:
    closure = Closure(tmp_path)
    closure.add("eng", requires=("dep; sys_platform == 'win32'", "old; python_version < '3.12'"))
    closure.check()


def test_what_the_spec_excludes_is_no_gap(tmp_path: Path) -> None:
    closure = Closure(tmp_path, exclude=["dep"])
    closure.add("eng", requires=("dep>=1",))
    closure.check()


def test_a_wheel_for_another_platform_is_a_gap(tmp_path: Path) -> None:
    closure = Closure(tmp_path)
    closure.add("eng", requires=("dep>=1",))
    closure.add("dep", tag="cp312-cp312-manylinux_2_39_x86_64")
    with pytest.raises(ResolveError, match="dep"):
        closure.check()


def test_a_version_that_does_not_fit_is_a_gap(tmp_path: Path) -> None:
    closure = Closure(tmp_path)
    closure.add("eng", requires=("dep>=3",))
    closure.add("dep", "2.0")
    with pytest.raises(ResolveError, match="dep"):
        closure.check()


def test_what_nothing_needs_is_named(tmp_path: Path) -> None:
    closure = Closure(tmp_path)
    closure.add("eng")
    closure.add("stray")
    with pytest.raises(ResolveError, match="stray: carried, but nothing needs it"):
        closure.check()


def test_the_tool_s_closure_is_checked_as_well(tmp_path: Path) -> None:
    closure = Closure(tmp_path)
    closure.add("eng")
    closure.tool = [
        make_wheel(tmp_path / "t2", "airbundle", tool_version(), {}, requires=("pydantic",))
    ]
    with pytest.raises(ResolveError, match=r"airbundle .* is not complete by itself.*pydantic"):
        closure.check()


def test_no_index_is_asked(tmp_path: Path) -> None:
    asked: list[WheelRequest] = []

    class Spy:
        def resolve(self, request: WheelRequest) -> tuple[LockedWheel, ...]:
            asked.append(request)
            raise ResolveError("enough")

    closure = Closure(tmp_path, index="https://example.invalid/simple", exclude_newer="2026-01-01")
    closure.add("eng")
    with pytest.raises(ResolveError):
        closure.check(Spy())
    assert asked[0].only_links
    assert asked[0].index is None
    assert asked[0].exclude_newer is None
    assert dataclasses.asdict(asked[0])["indexes"] == ()
