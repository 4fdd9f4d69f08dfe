"""Findings are a contract: stable codes, documented, none that nothing can emit."""

import re
from pathlib import Path

import pytest

from bundler.cli.app import run
from bundler.domain.catalogue import KINDS, finding
from bundler.domain.findings import Level

ROOT = Path(__file__).parents[2]


def sources() -> dict[str, str]:
    return {
        path.as_posix(): path.read_text()
        for path in (ROOT / "bundler").rglob("*.py")
        if path.name != "catalogue.py"
    }


def test_the_document_is_current() -> None:
    from scripts.gen_findings import render

    assert (ROOT / "docs" / "findings.md").read_text() == render()


def test_every_kind_is_emitted_somewhere_and_every_emitted_kind_exists() -> None:
    text = "\n".join(sources().values())
    assert not [code for code in KINDS if f'"{code}"' not in text]
    emitted = set(re.findall(r'\bfinding\(\s*"([a-z0-9-]+)"', text))
    assert emitted
    assert not emitted - set(KINDS)


def test_every_kind_is_produced_by_a_test() -> None:
    tests = "\n".join(
        path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)
    )
    assert not [code for code in KINDS if code not in tests]


def test_every_kind_says_what_to_do() -> None:
    assert all(kind.title and kind.meaning and kind.remedy for kind in KINDS.values())


def test_a_finding_takes_level_and_remedy_from_its_kind() -> None:
    found = finding("arch-unknown", "model", "not known")
    assert (found.level, found.fix) == (Level.ERROR, KINDS["arch-unknown"].remedy)


@pytest.mark.parametrize("code", sorted(KINDS))
def test_explain_prints_the_kind(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--explain", code]) == 0
    assert KINDS[code].remedy in " ".join(capsys.readouterr().out.split())


def test_explain_of_an_unknown_code_lists_the_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--explain", "no-such-code"]) == 2
    assert "arch-unknown" in capsys.readouterr().err


def test_every_kind_is_on_the_page() -> None:
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert [code for code in KINDS if f"### `{code}`" not in page] == []
