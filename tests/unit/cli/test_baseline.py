"""`airbundle baseline` over runs on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bundler.cli.app import run as command
from bundler.format.codec import to_bytes
from bundler.format.profiles import load_profiles
from tests.unit.accept.known import run


@pytest.fixture
def do(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*words: object, code: int = 0) -> str:
        found = command([str(word) for word in words])
        captured = capsys.readouterr()
        assert found == code, captured.out + captured.err
        return captured.out + captured.err

    return call


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Folders of two runs: the second one with tokens twice as far apart."""
    made = []
    for number, gap_s in enumerate((0.01, 0.02)):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        (folder / "record.json").write_bytes(
            to_bytes(run(gap_s=gap_s, began=f"2026-01-0{number + 1}T00:00:00Z"))
        )
        made.append(folder)
    return made


def test_runs_become_a_profile_that_is_listed_and_compared(
    two: list[Path], tmp_path: Path, do: Any
) -> None:
    out = tmp_path / "root" / "profiles" / "mine.yaml"
    said = do("baseline", "record", *two, "--out", out, "--name", "ours")
    assert "2 of 10 runs" in said
    [profile] = load_profiles(out)
    assert (profile.name, profile.kind) == ("ours", "measured")
    listed = json.loads(do("baseline", "list", "--root", tmp_path / "root", "--json"))
    assert listed[0]["name"] == "ours"
    assert "field-h200-30b-fp8-triton" in {one["name"] for one in listed}
    assert "ours" in do("baseline", "list", "--root", tmp_path / "root")
    [pair] = json.loads(do("baseline", "compare", out, two[1], "--json"))
    assert (pair["a"], pair["b"], pair["differs"]) == ("ours", "chat", [])
    assert {row["outcome"] for row in pair["figures"]} == {"within"}  # of its own two runs


def test_two_runs_are_compared_for_people_and_for_machines(two: list[Path], do: Any) -> None:
    [pair] = json.loads(do("baseline", "compare", *two, "--json"))
    rows = {row["metric"]: row for row in pair["figures"]}
    assert rows["tpot_ms_p50"]["ratio"] == 2
    assert rows["tpot_ms_p50"]["outcome"] == "worse"
    assert "worse" in do("baseline", "compare", *two)


def test_what_cannot_be_recorded_leaves_no_file(two: list[Path], tmp_path: Path, do: Any) -> None:
    out = tmp_path / "p.yaml"
    assert "given twice" in do("baseline", "record", two[0], two[0], "--out", out, code=17)
    assert "no such run" in do("baseline", "record", tmp_path, "--out", out, code=17)
    (tmp_path / "bad.json").write_text("{}")
    do("baseline", "record", tmp_path / "bad.json", "--out", out, code=9)
    assert do("baseline", "record", two[0], "--out", out, "--name", "a\nb", code=2)
    assert not out.exists()
    out.write_text("mine")
    assert "is there already" in do("baseline", "record", two[0], "--out", out, code=17)
    assert out.read_text() == "mine"


def test_a_bad_profile_of_the_root_is_named(tmp_path: Path, do: Any) -> None:
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "x.yaml").write_text("profiles: 1\n")
    assert "x.yaml: profiles: " in do("baseline", "list", "--root", tmp_path, code=9)
