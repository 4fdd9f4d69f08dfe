"""Exit codes are a contract: unique, never 1 or 2, documented."""

from pathlib import Path

import pytest

import bundler.errors as errors
from bundler.cli.app import run
from bundler.errors import BundlerError

ROOT = Path(__file__).parents[2]


def all_errors() -> list[type[BundlerError]]:
    found, todo = [], list(BundlerError.__subclasses__())
    while todo:
        kind = todo.pop()
        found.append(kind)
        todo += kind.__subclasses__()
    return [kind for kind in found if kind.__module__ == "bundler.errors"]


def test_codes_are_unique_and_never_taken_by_python_or_typer() -> None:
    codes = [kind.exit_code for kind in all_errors()]
    codes += [errors.EXIT_OK, errors.EXIT_FAIL, errors.EXIT_INCONCLUSIVE, errors.EXIT_INTERRUPTED]
    assert len(codes) == len(set(codes))
    assert not {1, 2} & set(codes)
    assert max(code for code in codes if code != 130) < 126


def test_every_error_says_what_to_do() -> None:
    assert all(kind.default_hint for kind in all_errors())


def test_the_document_is_current() -> None:
    from scripts.gen_exit_codes import render

    assert (ROOT / "docs" / "exit-codes.md").read_text() == render()


def test_the_json_schema_for_editors_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    assert (ROOT / "docs" / "spec.schema.json").read_text() == capsys.readouterr().out
