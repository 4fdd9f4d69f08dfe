"""Every command line of README and docs/ parses: commands and options exist, arguments have the right form."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

from bundler.bootstrap import airbundle_bootstrap
from bundler.cli.app import make_app
from tests.fakes.documented import Line, every_line

# Programs of the host or of others; what is neither theirs nor ours is a misspelling.
OTHERS = {
    "ansible-playbook", "cd", "chmod", "clamscan", "cp", "curl", "eval", "HF_ENDPOINT=http://10.0.0.5:8099", "kubectl", "openssl",
    "pip", "scp", "sh", "sha256sum", "sudo", "unzip", "vi",
}  # fmt: skip


@pytest.fixture(scope="module")
def parse() -> Callable[[list[str]], str]:
    """The real command tree whose commands do nothing; gives what it complains of."""
    tree = typer.main.get_command(make_app([]))

    def idle(command: Any) -> None:
        for inner in getattr(command, "commands", {}).values():
            idle(inner)
        if not getattr(command, "commands", None):
            command.callback = lambda **_: None

    idle(tree)

    def complaint(words: list[str]) -> str:
        try:
            tree.main(args=list(words), prog_name="airbundle", standalone_mode=False)
        except SystemExit as end:
            # --install-completion does its work at once, in the home of this test.
            return "" if end.code in (0, None) else str(end.code)
        except Exception as error:
            # Typer's usage errors; which class they are has changed between its versions.
            if hasattr(error, "format_message"):
                return str(error.format_message())
            raise
        return ""

    return complaint


@pytest.mark.parametrize("line", every_line(), ids=lambda one: f"{one.page}: {one.text[:60]}")
def test_it_parses(
    line: Line, parse: Callable[[list[str]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in line.commands():
        program = Path(words[0]).name
        if program == "airbundle":
            assert parse(words[1:]) == "", line.text
        elif program == "python3":
            assert Path(words[1]).name == "airbundle-bootstrap.py", line.text
            monkeypatch.setattr(sys, "argv", words[1:])
            airbundle_bootstrap.parse_arguments()
        else:
            assert words[0] in OTHERS, line.text


@pytest.mark.parametrize(
    "words",
    [["plann", "x"], ["plan", "x", "--kee"], ["receipt", "verify"], ["accept", "--from", "x"]],
)
def test_what_does_not_exist_does_not_parse(
    words: list[str], parse: Callable[[list[str]], str]
) -> None:
    assert parse(words)
