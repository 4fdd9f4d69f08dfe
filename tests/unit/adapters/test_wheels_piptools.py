"""The second resolver, with the real pip-tools against an index on loopback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bundler import wiring
from bundler.adapters.wheels_piptools import PipToolsResolver
from bundler.adapters.wheels_uv.resolver import UvResolver
from bundler.build.tags import best_wheel
from bundler.domain.hostindex import HostIndex
from bundler.domain.sources import IndexRef
from bundler.domain.target import Target
from bundler.errors import ResolveError
from bundler.ports import WheelRequest
from tests.fakes.sdists import make_sdist
from tests.fakes.simple_index import SimpleIndex, serving
from tests.fakes.wheels import make_wheel

HOST = Target.model_validate(
    {"python": f"{sys.version_info.major}.{sys.version_info.minor}", "glibc": "2.31"}
)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleIndex]:
    for name in list(os.environ):
        if name.startswith(("UV_", "PIP_")):
            monkeypatch.delenv(name)
    with serving(tmp_path / "index") as served:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
        monkeypatch.setenv("PIP_INDEX_URL", served.url)
        monkeypatch.setenv("UV_NO_CONFIG", "1")
        monkeypatch.setenv("UV_NO_CACHE", "1")
        yield served


def resolver(index: SimpleIndex | None = None, host: Target | None = HOST) -> PipToolsResolver:
    uv = UvResolver(
        runner=wiring.runner(), uv=wiring.uv_program(), python=sys.executable,
        index=HostIndex(default_index=index.url if index else None), choose=best_wheel,
    )  # fmt: skip
    return PipToolsResolver(runner=wiring.runner(), python=sys.executable, host=host, other=uv)


def test_it_gives_the_same_lock_as_uv(index: SimpleIndex, tmp_path: Path) -> None:
    make_wheel(index.folder, "app", "1", {}, requires=("lib>=2", "old; python_version < '3'"))
    for version in ("2", "3"):
        make_wheel(index.folder, "lib", version, {})
    make_wheel(tmp_path / "own", "mine", "7", {})
    request = WheelRequest(
        ("app", "mine==7"), HOST, find_links=(tmp_path / "own",), constraints=("lib<3",)
    )
    ours = resolver(index)
    closure = ours.resolve(request)
    assert [(wheel.name, wheel.version) for wheel in closure] == [
        ("app", "1"),
        ("lib", "2"),
        ("mine", "7"),
    ]
    assert ours._other is not None
    same = ours._other.resolve(request)
    told = [(w.filename, w.url, w.sha256, w.uploaded) for w in closure]
    assert told == [(w.filename, w.url, w.sha256, w.uploaded) for w in same]
    assert all(wheel.size for wheel in closure)


@pytest.mark.parametrize(
    "change",
    [
        {"python": "3.10" if HOST.python != "3.10" else "3.12"},
        {"arch": "aarch64"},
        {"glibc": "2.28"},
    ],
)
def test_any_other_target_is_refused(change: dict[str, str]) -> None:
    target = Target.model_validate(HOST.model_dump() | change)
    with pytest.raises(ResolveError, match="for this host alone") as caught:
        resolver().resolve(WheelRequest(("app",), target))
    assert "engine.resolver" in caught.value.hint


def test_a_host_that_is_no_possible_target_is_refused() -> None:
    with pytest.raises(ResolveError, match="no possible target"):
        resolver(host=None).resolve(WheelRequest(("app",), HOST))


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("exclude", {"exclude": ("x",)}),
        ("exclude_newer", {"exclude_newer": "2026-01-01"}),
        ("build_sdists", {"build_sdists": True}),
        ("indexes", {"indexes": (IndexRef(url="https://a/b", packages=("x",)),)}),
    ],
)
def test_what_it_cannot_do_is_refused(key: str, change: dict[str, Any]) -> None:
    with pytest.raises(ResolveError, match=rf"engine\.{key}.*cannot"):
        resolver().resolve(replace(WheelRequest(("app",), HOST), **change))


def test_a_package_that_exists_as_source_alone_is_refused_by_name(index: SimpleIndex) -> None:
    make_wheel(index.folder, "app", "1", {}, requires=("docopt",))
    make_sdist(index.folder, "docopt", "0.6.2")
    with pytest.raises(ResolveError, match="docopt: the index has no wheel") as caught:
        resolver(index).resolve(WheelRequest(("app",), HOST))
    assert caught.value.without_wheel == ("docopt",)


def test_a_contradiction_is_one_line(index: SimpleIndex) -> None:
    make_wheel(index.folder, "app", "1", {}, requires=("lib<2",))
    make_wheel(index.folder, "lib", "1", {})
    make_wheel(index.folder, "lib", "2", {})
    with pytest.raises(ResolveError, match="pip-tools: cannot resolve app, lib==2"):
        resolver(index).resolve(WheelRequest(("app", "lib==2"), HOST))


def test_only_links_asks_no_index(index: SimpleIndex, tmp_path: Path) -> None:
    make_wheel(index.folder, "lib", "1", {})
    make_wheel(tmp_path / "own", "app", "1", {}, requires=("lib",))
    request = WheelRequest(("app",), HOST, find_links=(tmp_path / "own",), only_links=True)
    with pytest.raises(ResolveError, match="lib"):
        resolver(index).resolve(request)
    assert not index.asked
