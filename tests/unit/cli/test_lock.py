"""`airbundle lock`, with the real uv against an index on loopback."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from bundler.cli.app import run
from bundler.format.codec import parse_lock
from tests.fakes.sdists import make_sdist
from tests.fakes.simple_index import SimpleIndex, serving
from tests.fakes.wheels import make_wheel

# Real resolutions and builds, many of them.
pytestmark = pytest.mark.slow

SPEC = """
name: toy
target: {python: "3.12"}
engine: {name: llama.cpp, package: toy-engine, version: "1.0"}
models: [{source: local, name: m, path: model}]
services: [{name: s, model: m}]
"""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleIndex]:
    for name in list(os.environ):
        if name.startswith(("UV_", "PIP_")):
            monkeypatch.delenv(name)
    with serving(tmp_path / "index") as served:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", served.url)
        monkeypatch.setenv("UV_NO_CONFIG", "1")
        monkeypatch.setenv("UV_NO_CACHE", "1")
        for requirement in map(Requirement, requires("airbundle") or ()):
            if requirement.marker is None:
                make_wheel(served.folder, requirement.name, "99", {})
        tag = "cp38-abi3-manylinux_2_31_x86_64"
        make_wheel(served.folder, "toy-engine", "1.0", {}, requires=("lib", "old"), tag=tag)
        make_wheel(served.folder, "lib", "1", {})
        make_wheel(served.folder, "old", "1", {})
        yield served


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "m.gguf").write_bytes(b"x" * 10)
    path = tmp_path / "toy.yaml"
    path.write_text(SPEC)
    return path


def lock(capsys: pytest.CaptureFixture[str], *argv: object) -> dict[str, Any]:
    assert run(["lock", *map(str, argv), "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_the_first_lock_has_nothing_to_compare_with_and_finds_the_glibc(
    index: SimpleIndex, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = lock(capsys, spec)
    assert first["written"]
    assert first["drift"] is None
    assert first["target"]["glibc"] == "2.31"
    written = parse_lock(Path(first["lock"]).read_bytes(), "lock")
    assert written.target.glibc == "2.31"
    assert [wheel.name for wheel in written.engine_wheels] == ["lib", "old", "toy-engine"]
    assert Path(first["requirements"]).read_text().startswith("lib==1 --hash=sha256:")


def test_a_lock_that_belongs_to_the_spec_is_kept(
    index: SimpleIndex, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(lock(capsys, spec)["lock"]).read_bytes()
    make_wheel(index.folder, "lib", "2", {})
    index.asked.clear()
    again = lock(capsys, spec)
    assert not again["written"]
    assert Path(again["lock"]).read_bytes() == before
    assert not index.asked


def test_an_update_shows_the_drift_and_writes_unless_it_is_a_dry_run(
    index: SimpleIndex, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(lock(capsys, spec)["lock"])
    before = path.read_bytes()
    make_wheel(index.folder, "lib", "2", {}, requires=("fresh",))
    make_wheel(index.folder, "fresh", "1", {})
    make_wheel(index.folder, "old", "1", {"rebuilt.py": b""})
    (spec.parent / "model" / "m.gguf").write_bytes(b"y" * 20)
    shown = lock(capsys, spec, "--update", "--dry-run")
    assert [(c["part"], c["name"], c["what"]) for c in shown["drift"]["changes"]] == [
        ("engine", "fresh", "added"),
        ("engine", "lib", "version"),
        ("engine", "old", "file"),
        ("model", "m", "file"),
    ]
    assert path.read_bytes() == before
    written = lock(capsys, spec, "--update")
    assert written["drift"] == shown["drift"]
    assert path.read_bytes() != before
    assert not lock(capsys, spec, "--update")["drift"]["changes"]


def test_the_words_for_people(
    index: SimpleIndex, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for argv in ([], [], ["--update"]):
        assert run(["lock", str(spec), "-q", *argv]) == 0
        said.append(capsys.readouterr().out)
    assert "nothing to compare with" in said[0]
    assert "glibc 2.31" in said[0]
    assert "kept as it is" in said[1]
    assert "no drift" in said[2]
    make_wheel(index.folder, "lib", "2", {})
    assert run(["lock", str(spec), "-q", "--update", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "1 change(s)" in out
    assert "not written" in out


def test_a_changed_spec_gets_a_new_lock_with_its_drift(
    index: SimpleIndex, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_wheel(index.folder, "lib", "2", {})
    lock(capsys, spec)
    spec.write_text(SPEC.replace('version: "1.0"', 'version: "1.0", constraints: ["lib<2"]'))
    changed = lock(capsys, spec)
    assert changed["written"]
    assert [(c["name"], c["old"], c["new"]) for c in changed["drift"]["changes"]] == [
        ("lib", "2", "1")
    ]


def test_sources_are_built_into_the_cache(
    index: SimpleIndex, spec: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    make_wheel(index.folder, "lib", "2", {}, requires=("docopt",))
    make_sdist(index.folder, "docopt", "0.6.2")
    spec.write_text(SPEC.replace('version: "1.0"', 'version: "1.0", requirements: ["lib==2"]'))
    assert run(["lock", str(spec), "-q", "--json"]) == 4
    assert "docopt==0.6.2: the index has no wheel of it at all" in capsys.readouterr().out
    spec.write_text(spec.read_text().replace("requirements:", "build_sdists: true, requirements:"))
    made = lock(capsys, spec)
    wheels = parse_lock(Path(made["lock"]).read_bytes(), "lock").engine_wheels
    (built,) = [wheel for wheel in wheels if wheel.built]
    assert built.name == "docopt"
    assert built.url.startswith((tmp_path / "cache" / "built").as_uri())


@pytest.mark.parametrize("key", ["requirements", "constraints", "exclude"])
def test_an_option_line_is_no_requirement(
    index: SimpleIndex, spec: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    spec.write_text(
        SPEC.replace('version: "1.0"', f'version: "1.0", {key}: ["--index-url http://x"]')
    )
    assert run(["lock", str(spec), "-q", "--json"]) == 3
    assert f"engine.{key}" in capsys.readouterr().out
    assert not index.asked
