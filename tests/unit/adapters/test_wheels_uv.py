"""The resolver with the real uv against real indexes on loopback, made of hand-made wheels."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bundler import wiring
from bundler.adapters.wheels_uv.pins import read_origins
from bundler.adapters.wheels_uv.resolver import UvResolver
from bundler.build.tags import best_wheel
from bundler.domain.hostindex import HostIndex
from bundler.domain.lock import LockedWheel
from bundler.domain.sources import IndexRef
from bundler.domain.target import Target
from bundler.errors import ResolveError
from bundler.format.digests import sha256_hex
from bundler.ports import WheelRequest
from tests.fakes.sdists import make_sdist
from tests.fakes.simple_index import SimpleIndex, serving
from tests.fakes.wheels import make_wheel

TARGET = Target(python="3.12", glibc="2.28")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
NATIVE = f"cp{HERE.replace('.', '')}-cp{HERE.replace('.', '')}-linux_x86_64"


@pytest.fixture(autouse=True)
def _only_these_indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("UV_", "PIP_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.fixture
def main(tmp_path: Path) -> Iterator[SimpleIndex]:
    with serving(tmp_path / "main") as index:
        yield index


@pytest.fixture
def second(tmp_path: Path) -> Iterator[SimpleIndex]:
    with serving(tmp_path / "second") as index:
        yield index


def resolver(
    main: SimpleIndex | None = None, host: Target | None = None, **index: Any
) -> UvResolver:
    return UvResolver(
        runner=wiring.runner(),
        uv=wiring.uv_program(),
        python=sys.executable,
        index=HostIndex(default_index=main.url if main else None, **index),
        choose=best_wheel,
        host=host,
    )


def versions(wheels: tuple[LockedWheel, ...]) -> dict[str, str]:
    return {wheel.name: wheel.version for wheel in wheels}


def test_a_closure_with_size_digest_and_date(main: SimpleIndex) -> None:
    app = make_wheel(main.folder, "app", "1", {}, requires=("lib>=2",))
    make_wheel(main.folder, "lib", "1", {})
    make_wheel(main.folder, "lib", "2", {})
    closure = resolver(main).resolve(WheelRequest(("app",), TARGET))
    assert versions(closure) == {"app": "1", "lib": "2"}
    assert closure[0].size == app.stat().st_size
    assert closure[0].uploaded == "2026-01-02T03:04:05Z"
    assert not closure[0].built


class TestPins:
    """`torch` is pinned to the second index; the first offers a higher version of the same name."""

    @pytest.fixture(autouse=True)
    def _indexes(self, main: SimpleIndex, second: SimpleIndex) -> None:
        make_wheel(main.folder, "app", "1", {}, requires=("torch", "numpy"))
        make_wheel(main.folder, "numpy", "1", {})
        make_wheel(main.folder, "torch", "99", {})
        make_wheel(main.folder, "nvlib", "99", {})
        make_wheel(second.folder, "torch", "2+cu129", {}, requires=("numpy", "nvlib"))
        make_wheel(second.folder, "nvlib", "1", {})
        make_wheel(second.folder, "numpy", "99", {})

    def request(self, second: SimpleIndex, *packages: str, **changes: Any) -> WheelRequest:
        ref = IndexRef(url=second.url, packages=packages)
        return replace(WheelRequest(("app",), TARGET, indexes=(ref,)), **changes)

    def test_a_transitive_dependency_keeps_its_pin(
        self, main: SimpleIndex, second: SimpleIndex
    ) -> None:
        closure = resolver(main).resolve(self.request(second, "Torch", "nvlib"))
        assert versions(closure) == {"app": "1", "numpy": "1", "nvlib": "1", "torch": "2+cu129"}
        assert all(
            second.url.rpartition("/")[0] in w.url for w in closure if w.name in ("torch", "nvlib")
        )
        # The attacker's page is not even asked for; nor is the second index for what is not pinned.
        assert "torch" not in main.asked
        assert "numpy" not in second.asked

    def test_what_nothing_needs_is_not_carried(
        self, main: SimpleIndex, second: SimpleIndex
    ) -> None:
        make_wheel(second.folder, "spare", "1", {})
        closure = resolver(main).resolve(
            self.request(second, "torch", "nvlib", "spare", "nowhere-at-all")
        )
        assert set(versions(closure)) == {"app", "numpy", "nvlib", "torch"}

    def test_a_further_index_without_packages_is_asked_like_any_other(
        self, main: SimpleIndex, second: SimpleIndex
    ) -> None:
        closure = resolver(main).resolve(self.request(second))
        assert versions(closure) == {"app": "1", "numpy": "99", "torch": "99"}

    def test_a_pin_holds_against_indexes_of_this_host(
        self, main: SimpleIndex, second: SimpleIndex, tmp_path: Path
    ) -> None:
        with serving(tmp_path / "third") as third:
            make_wheel(third.folder, "torch", "98", {})
            closure = resolver(main, extra_indexes=(third.url,)).resolve(
                self.request(second, "torch", "nvlib")
            )
        assert versions(closure)["torch"] == "2+cu129"

    def test_a_higher_version_in_find_links_is_not_taken(
        self, main: SimpleIndex, second: SimpleIndex, tmp_path: Path
    ) -> None:
        make_wheel(tmp_path / "links", "torch", "97", {})
        closure = resolver(main, find_links=(str(tmp_path / "links"),)).resolve(
            self.request(second, "torch", "nvlib")
        )
        assert versions(closure)["torch"] == "2+cu129"

    def test_a_pinned_package_that_its_index_lacks_is_not_taken_from_another(
        self, main: SimpleIndex, second: SimpleIndex
    ) -> None:
        (second.folder / "nvlib-1-py3-none-any.whl").unlink()
        with pytest.raises(ResolveError, match="nvlib 99 came from"):
            resolver(main).resolve(self.request(second, "torch", "nvlib"))

    def test_one_package_pinned_to_two_indexes_is_a_contradiction(
        self, main: SimpleIndex, second: SimpleIndex
    ) -> None:
        twice = (
            IndexRef(url=main.url, packages=("torch",)),
            IndexRef(url=second.url, packages=("torch",)),
        )
        with pytest.raises(ResolveError, match="torch is pinned to two indexes"):
            resolver(main).resolve(WheelRequest(("app",), TARGET, indexes=twice))


def test_excluded_and_constrained(main: SimpleIndex) -> None:
    make_wheel(main.folder, "app", "1", {}, requires=("lib", "heavy"))
    for version in ("1", "2"):
        make_wheel(main.folder, "lib", version, {})
    request = WheelRequest(("app",), TARGET, exclude=("heavy",), constraints=("lib<2",))
    assert versions(resolver(main).resolve(request)) == {"app": "1", "lib": "1"}


def test_exclude_newer_means_the_whole_day_in_utc(main: SimpleIndex) -> None:
    for version, uploaded in (("1", "2026-03-20T23:59:00Z"), ("2", "2026-03-21T00:01:00Z")):
        path = make_wheel(main.folder, "lib", version, {})
        main.uploaded[path.name] = uploaded
    request = WheelRequest(("lib",), TARGET, exclude_newer="2026-03-20")
    assert versions(resolver(main).resolve(request)) == {"lib": "1"}
    with pytest.raises(ResolveError, match="exclude_newer: 2026-02-31"):
        resolver(main).resolve(replace(request, exclude_newer="2026-02-31"))


def test_a_local_wheel_has_no_date_and_is_taken_all_the_same(
    main: SimpleIndex, tmp_path: Path
) -> None:
    make_wheel(main.folder, "app", "1", {}, requires=("lib",))
    make_wheel(tmp_path / "own", "lib", "7", {})
    request = WheelRequest(
        ("app", "lib==7"), TARGET, find_links=(tmp_path / "own",), exclude_newer="2026-03-20"
    )
    assert versions(resolver(main).resolve(request)) == {"app": "1", "lib": "7"}


def test_the_wheel_with_the_higher_build_tag_is_taken(main: SimpleIndex) -> None:
    plain = make_wheel(main.folder, "vllm", "0.23.0", {}, tag="cp38-abi3-manylinux_2_28_x86_64")
    tagged = plain.with_name("vllm-0.23.0-2-cp38-abi3-manylinux_2_28_x86_64.whl")
    tagged.write_bytes(plain.read_bytes())
    (wheel,) = resolver(main).resolve(WheelRequest(("vllm==0.23.0",), TARGET))
    assert wheel.filename == tagged.name


def test_find_links_relative_to_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, main: SimpleIndex
) -> None:
    path = make_wheel(tmp_path / "work" / "links", "lib", "7", {})
    monkeypatch.chdir(tmp_path / "work")
    (wheel,) = resolver(main, find_links=("links",)).resolve(WheelRequest(("lib",), TARGET))
    assert wheel.url == path.as_uri()


def test_settings_of_a_project_where_one_stands_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, main: SimpleIndex
) -> None:
    make_wheel(main.folder, "lib", "1", {})
    make_wheel(main.folder, "lib", "2", {})
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "0"\n[tool.uv]\nconstraint-dependencies = ["lib<2"]\n'
    )
    monkeypatch.delenv("UV_NO_CONFIG")
    monkeypatch.chdir(tmp_path)
    assert versions(resolver(main).resolve(WheelRequest(("lib",), TARGET))) == {"lib": "2"}


@pytest.mark.parametrize("sha256", ["zz", "", "A" * 63])
def test_a_digest_that_is_none_is_one_line(main: SimpleIndex, sha256: str) -> None:
    make_wheel(main.folder, "lib", "1", {})
    main.stated_sha256 = sha256
    with pytest.raises(ResolveError, match="lib") as caught:
        resolver(main).resolve(WheelRequest(("lib",), TARGET))
    assert "\n" not in str(caught.value)


def test_a_digest_that_the_index_does_not_state_is_found(main: SimpleIndex) -> None:
    path = make_wheel(main.folder, "lib", "1", {})
    main.stated_sha256 = None
    (wheel,) = resolver(main).resolve(WheelRequest(("lib",), TARGET))
    assert wheel.sha256 == sha256_hex(path.read_bytes())


def test_a_requirement_with_an_address(main: SimpleIndex, tmp_path: Path) -> None:
    path = make_wheel(tmp_path / "own", "lib", "7", {})
    (wheel,) = resolver(main).resolve(WheelRequest((f"lib @ {path.as_uri()}",), TARGET))
    assert (wheel.version, wheel.url, wheel.filename) == ("7", path.as_uri(), path.name)


class TestOnlyLinks:
    """The closure's self-check: nothing but the given folders may help."""

    def test_no_index_and_no_setting_of_this_host_is_asked(
        self, main: SimpleIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_wheel(tmp_path / "bundle", "app", "1", {}, requires=("lib",))
        make_wheel(tmp_path / "links", "lib", "1", {})
        make_wheel(main.folder, "lib", "2", {})
        (tmp_path / "limits.txt").write_text("app<1\n")
        monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "links"))
        monkeypatch.setenv("UV_CONSTRAINT", str(tmp_path / "limits.txt"))
        monkeypatch.setenv("UV_INDEX", main.url)
        ask = resolver(main, find_links=(str(tmp_path / "links"),)).resolve
        request = WheelRequest(
            ("app",), TARGET, find_links=(tmp_path / "bundle",), only_links=True,
            indexes=(IndexRef(url=main.url, packages=("lib",)),), exclude_newer="2020-01-01",
        )  # fmt: skip
        with pytest.raises(ResolveError, match="lib"):
            ask(request)
        assert not main.asked
        make_wheel(tmp_path / "bundle", "lib", "1", {})
        assert versions(ask(request)) == {"app": "1", "lib": "1"}


@pytest.mark.slow
class TestSourceOnly:
    """Packages that exist as source alone."""

    @pytest.fixture(autouse=True)
    def _index(self, main: SimpleIndex) -> None:
        make_wheel(main.folder, "app", "1", {}, requires=("docopt", "wget", "lib"))
        make_wheel(main.folder, "lib", "1", {}, tag="cp312-cp312-manylinux_2_34_x86_64")
        make_sdist(main.folder, "docopt", "0.6.2")
        make_sdist(main.folder, "wget", "3.2")

    def test_all_are_refused_by_name_with_the_ways_out(self, main: SimpleIndex) -> None:
        with pytest.raises(
            ResolveError,
            match=r"docopt==0\.6\.2, wget==3\.2: the index has no wheel of them at all",
        ) as caught:
            resolver(main).resolve(WheelRequest(("app",), TARGET))
        error = caught.value
        assert "lib==1: the index has no wheel for linux x86_64" in str(error)
        assert "engine.wheels" in error.hint
        assert "build_sdists" in error.hint
        assert set(error.without_wheel) == {"docopt==0.6.2", "wget==3.2", "lib==1"}

    @pytest.mark.parametrize("tag", ["cp310-cp310-manylinux_2_17_x86_64", "cp314-cp314-win_amd64"])
    def test_wheels_for_another_python_or_system_are_not_source_alone(
        self, main: SimpleIndex, tag: str
    ) -> None:
        make_wheel(main.folder, "docopt", "0.6.2", {}, tag=tag)
        with pytest.raises(
            ResolveError, match=r"docopt==0\.6\.2: the index has no wheel for linux"
        ):
            resolver(main).resolve(WheelRequest(("docopt==0.6.2",), TARGET))

    def test_they_are_built_when_that_is_allowed_and_kept(
        self, main: SimpleIndex, tmp_path: Path
    ) -> None:
        request = WheelRequest(
            ("app",), replace_glibc("2.34"), build_sdists=True, built_into=tmp_path / "built"
        )
        first = resolver(main).resolve(request)
        assert {wheel.name for wheel in first if wheel.built} == {"docopt", "wget"}
        kept = [Path(wheel.url.removeprefix("file://")) for wheel in first if wheel.built]
        assert all(path.is_file() and tmp_path / "built" in path.parents for path in kept)
        times = [path.stat().st_mtime_ns for path in kept]
        assert resolver(main).resolve(request) == first
        assert [path.stat().st_mtime_ns for path in kept] == times

    def test_a_wheel_of_ones_own_is_the_other_way_out(
        self, main: SimpleIndex, tmp_path: Path
    ) -> None:
        for name, version in (("docopt", "0.6.2"), ("wget", "3.2")):
            make_wheel(tmp_path / "own", name, version, {})
        request = WheelRequest(("app",), replace_glibc("2.34"), find_links=(tmp_path / "own",))
        assert set(versions(resolver(main).resolve(request))) == {"app", "docopt", "wget", "lib"}

    def test_a_build_that_fails_is_named_with_its_last_lines(
        self, main: SimpleIndex, tmp_path: Path
    ) -> None:
        make_sdist(main.folder, "broken", "1", broken=True)
        request = WheelRequest(("broken",), TARGET, build_sdists=True, built_into=tmp_path / "b")
        with pytest.raises(ResolveError, match="broken 1: building its wheel failed") as caught:
            resolver(main).resolve(request)
        assert any("this compiler is not there" in line for line in caught.value.details)
        assert not list((tmp_path / "b").iterdir())

    def test_machine_code_is_built_for_a_target_like_this_host_alone(
        self, main: SimpleIndex, tmp_path: Path
    ) -> None:
        make_sdist(main.folder, "native", "1", tag=NATIVE)
        here = Target.model_validate({"python": HERE, "glibc": "2.36"})
        request = WheelRequest(("native",), here, build_sdists=True, built_into=tmp_path / "b")
        (wheel,) = resolver(main, host=here).resolve(request)
        assert wheel.built
        for target in (TARGET, replace_glibc("2.35", here)):
            with pytest.raises(ResolveError, match="does not fit linux x86_64"):
                resolver(main, host=here).resolve(replace(request, target=target))


def replace_glibc(glibc: str, target: Target = TARGET) -> Target:
    return target.with_glibc(glibc)


def test_uv_s_statement_is_read_whatever_its_shape() -> None:
    text = (
        "app==1                    # via x (a/pyproject.toml), -r in.txt\n"
        "    # from http://127.0.0.1:1/simple\n"
        "torch[opt]==2+cu ; x == 'y'  # via app[extra]\n"
        "    # from https://user:****@host/simple/\n"
        "local @ file:///a/b.whl\n"
        "nonsense\n    # from\n"
    )
    found = read_origins(text)
    assert {name: origin.index for name, origin in found.items()} == {
        "app": "http://127.0.0.1:1/simple", "torch": "https://user:****@host/simple/", "local": "",
    }  # fmt: skip
    assert found["torch"].parents == ("app",)
