"""Every command of the tree keeps the same promises: help, an example, --json, plain text, --dry-run."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from typer.main import get_command

from bundler.cli.app import HOMES, make_app, run
from bundler.cli.examples import EXAMPLES
from bundler.cli.man_cmds import page
from bundler.cli.manpage import commands

COMMANDS: dict[str, Any] = dict(commands(get_command(make_app([]))))

# Nothing on a disk or in a process is changed by these.
READ_ONLY = {
    "doctor", "inspect", "diff", "schema", "verify", "status", "logs", "kernels", "releases", "preflight",
    "trust show", "audit verify", "audit show", "receipt verify", "baseline compare", "baseline list",
}  # fmt: skip
# What they write is their answer, and there is nothing to foresee but by doing it.
ACTS = {
    "plan": "it is itself the look ahead; writes a lock only where --lock names one",
    "accept": "it measures, and keeps what it measured",
    "demo": "walks the whole road in a folder of its own",
    "run": "becomes the engine, for systemd or a container",
    "serve": "serves until it is ended, read-only",
}
# Their result is no record: a stream, a page, another program.
NO_JSON = {"run", "serve", "demo", "logs", "schema", "man"}


def options(command: Any) -> set[str]:
    return {name for one in command.params for name in one.opts}


def test_the_tree_is_whole() -> None:
    assert {words.split()[0] for words in COMMANDS} == set(HOMES)
    assert set(EXAMPLES) == set(COMMANDS)


@pytest.mark.parametrize("words", COMMANDS)
def test_help_says_what_it_does_and_shows_an_example(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words.split(), "--help", "--verbose"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert COMMANDS[words].help.split("\n")[0][:40] in said
    assert f"Example: airbundle {words}" in said
    assert "\x1b" not in said
    for one in COMMANDS[words].params:
        assert one.help or one.name in ("help",), f"{words}: {one.name} has no help"


@pytest.mark.parametrize("words", COMMANDS)
def test_examples_name_options_that_exist(words: str) -> None:
    named = {word for word in shlex.split(EXAMPLES[words].split("|")[0]) if word.startswith("--")}
    assert named <= options(COMMANDS[words])


@pytest.mark.parametrize("words", COMMANDS)
def test_what_gives_results_gives_them_to_machines(words: str) -> None:
    assert ("--json" in options(COMMANDS[words])) is (words not in NO_JSON)


@pytest.mark.parametrize("words", COMMANDS)
def test_quiet_has_its_short_form(words: str) -> None:
    assert ("--quiet" in options(COMMANDS[words])) is ("-q" in options(COMMANDS[words]))


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_is_read_only_or_can_be_rehearsed(words: str) -> None:
    rehearsed = "--dry-run" in options(COMMANDS[words])
    assert [rehearsed, words in READ_ONLY, words in ACTS].count(True) == 1, words


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1", "FORCE_COLOR": "1"}, {}])
def test_no_escape_codes_where_they_are_not_wanted(
    setting: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    for words in (["keygen", "--dry-run"], ["plan", "--explain", "jit-nvcc"], ["--help"], ["verify"],
                  ["plan", "none.yaml"]):  # fmt: skip
        run(words)
    seen = capsys.readouterr()
    assert "\x1b" not in seen.out + seen.err


def test_colours_come_back_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    run(["plan", "none.yaml"])
    assert "\x1b" in capsys.readouterr().err


def test_the_manual_page_has_every_command_and_option() -> None:
    text = page()
    plain = text.replace("\\-", "-")
    for words, command in COMMANDS.items():
        assert f'.SS "{words}"' in plain
        for name in options(command):
            if name.startswith("--"):
                assert name in plain
    requests = {line.split()[0] for line in text.splitlines() if line.startswith(".")}
    assert requests <= {
        ".TH",
        ".SH",
        ".SS",
        ".B",
        ".RI",
        ".I",
        ".PP",
        ".TP",
        ".nf",
        ".fi",
        ".RS",
        ".RE",
    }
    assert not re.search(r"^'", text, re.MULTILINE)
