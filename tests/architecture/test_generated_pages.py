"""Pages that are made from the code are current."""

from pathlib import Path

from bundler.cli.app import HOMES

DOCS = Path(__file__).parents[2] / "docs"


def test_the_command_line_is_current_and_whole() -> None:
    from scripts.gen_cli import render

    page = render()
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == page, "python -m scripts.gen_cli"
    assert not [name for name in HOMES if f"### `airbundle {name}`" not in page]


def test_the_spec_is_current() -> None:
    from scripts.gen_spec import render

    assert (DOCS / "spec.md").read_text(encoding="utf-8") == render(), "python -m scripts.gen_spec"
