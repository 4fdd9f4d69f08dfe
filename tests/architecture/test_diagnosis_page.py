"""The page of known engine failures is true, and every row is proven by a sample."""

from pathlib import Path

from bundler.deploy.diagnosis import SIGNATURES
from tests.unit.deploy.enginelogs import SAMPLES

ROOT = Path(__file__).parents[2]


def test_the_page_is_current() -> None:
    from scripts.gen_diagnosis import render

    assert (ROOT / "docs" / "diagnosis.md").read_text(encoding="utf-8") == render()


def test_names_are_unique_and_every_row_says_what_to_do_and_who_prints_it() -> None:
    assert len({row.name for row in SIGNATURES}) == len(SIGNATURES)
    assert all(row.meaning and row.fix and row.upstream for row in SIGNATURES)


def test_every_row_has_a_sample() -> None:
    assert {row.name for row in SIGNATURES} == {name for name, _, _ in SAMPLES}
