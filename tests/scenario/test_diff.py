"""`airbundle diff`: what a second bundle changes, from real bundles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bundler.cli.app import run
from bundler.format import layout
from tests.fakes.small_bundle import SmallBundle
from tests.fakes.wheels import make_wheel


@pytest.fixture
def old(tmp_path: Path) -> SmallBundle:
    return SmallBundle(tmp_path / "old").build()


def changes(old: Path, new: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["diff", str(old), str(new), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_bundle_differs_in_nothing_from_itself(
    old: SmallBundle, capsys: pytest.CaptureFixture[str]
) -> None:
    found = changes(old.out, old.out / layout.MANIFEST, capsys)
    assert (found["changes"], found["new_bytes"]) == ([], 0)
    assert found["kept_bytes"] > 500_000
    assert run(["diff", str(old.out), str(old.out)]) == 0
    assert "nothing differs" in capsys.readouterr().out


def test_packages_models_settings_and_files_are_named(
    old: SmallBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = SmallBundle(tmp_path / "new", args=("--slow",), parity=1)
    new.prepare()
    (new.folder / "wheels" / "toy_dependency-2.0-py3-none-any.whl").unlink()
    make_wheel(new.folder / "wheels", "toy-dependency", "2.1", {"toy_dependency.py": b"X = 2\n"})
    (new.folder / "model" / "설명서.txt").write_text("새 설명\n", encoding="utf-8")
    (new.folder / "model" / "extra.json").write_bytes(b"{}")
    new.build_only()
    found = changes(old.out, new.out, capsys)
    rows = {(c["part"], c["name"]): (c["what"], c["old"], c["new"]) for c in found["changes"]}
    what, before, after = rows["package", "toy-dependency"]
    assert (what, before[:3], after[:3]) == ("changed", "2.0", "2.1")
    assert rows["service", "toy.settings.args"] == ("added", "", "--slow")
    assert rows["model", "toy/설명서.txt"][0] == "changed"
    assert rows["model", "toy/extra.json"][0] == "added"
    assert not [name for part, name in rows if "toy.gguf" in name or "parity" in name]
    assert 0 < found["new_bytes"] < found["kept_bytes"]
    assert run(["diff", str(old.out), str(new.out)]) == 0
    assert "toy-dependency" in capsys.readouterr().out


def test_what_is_no_bundle_is_one_line(
    old: SmallBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diff", str(old.out), str(tmp_path / "none")]) == 16
    (tmp_path / "x.json").write_bytes(b"{}")
    assert run(["diff", str(tmp_path / "x.json"), str(old.out)]) == 9
    assert len(capsys.readouterr().err.strip().splitlines()) == 4
