"""The manual page, made from the command tree: man(7) macros, which groff and mandoc both read.

click-man makes such pages of click's commands, but typer has carried its own copy of click since 0.26, whose
classes it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from bundler.cli.examples import EXAMPLES

_HEAD = "air-gapped LLM bundles: build, carry, verify, install, serve, measure"
_FILES = (
    ("~/airbundle", "Installation root, where --root and AIRBUNDLE_ROOT say nothing."),
    ("~/.cache/airbundle", "Downloaded files (--cache, AIRBUNDLE_CACHE)."),
)
_VARIABLES = (
    ("AIRBUNDLE_ROOT", "Installation root."),
    ("AIRBUNDLE_CACHE", "Store of downloaded files."),
    ("AIRBUNDLE_POLICY", "The site's policy."),
    ("AIRBUNDLE_VOLUME_KEY", "Key of sealed volumes."),
    ("HF_ENDPOINT, HF_TOKEN", "The Hub and its token, as its own client reads them."),
    ("NO_COLOR", "Plain lines without colours, as in a pipe."),
)


def manual(root: Any, version: str) -> str:
    """The whole page, roff.

    Args:
        root: typer's group of all commands.
        version: of airbundle.
    """
    return "\n".join(_lines(root, version)) + "\n"


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command that can be run, with its words: `trust use`."""
    for name, command in group.commands.items():
        words = f"{path} {name}".strip()
        if hasattr(command, "commands"):
            yield from commands(command, words)
        else:
            yield words, command


def _lines(root: Any, version: str) -> Iterator[str]:
    # No date: the same commands give the same page.
    yield f'.TH AIRBUNDLE 1 "" "airbundle {_plain(version)}" "User Commands"'
    yield ".SH NAME"
    yield f"airbundle \\- {_text(_HEAD)}"
    yield ".SH SYNOPSIS"
    yield ".B airbundle"
    yield ".RI [ options ]"
    yield ".I command"
    yield ".RI [ arguments ]"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(root.help or "")
    yield ".SH OPTIONS"
    yield from _options(root)
    yield ".SH COMMANDS"
    for words, command in commands(root):
        yield from _command(words, command)
    yield ".SH EXIT STATUS"
    for code, meaning in _codes():
        yield from _entry(code, meaning)
    yield ".SH ENVIRONMENT"
    for name, meaning in _VARIABLES:
        yield from _entry(name, meaning)
    yield ".SH FILES"
    for name, meaning in _FILES:
        yield from _entry(name, meaning)


def _command(words: str, command: Any) -> Iterator[str]:
    yield f'.SS "{_text(words)}"'
    usage = " ".join(
        ["airbundle", words, *([] if not command.params else ["[OPTIONS]"]), *_arguments(command)]
    )
    yield f".B {_text(usage)}"
    yield ".PP"
    yield from _paragraphs(command.help or "")
    yield from _options(command)
    if words in EXAMPLES:
        yield ".PP"
        yield "Example:"
        yield ".PP"
        yield ".nf"
        yield ".RS"
        yield _text(EXAMPLES[words])
        yield ".RE"
        yield ".fi"


def _arguments(command: Any) -> Iterator[str]:
    for one in command.params:
        if one.param_type_name == "argument":
            name = (one.metavar or one.name).upper()
            shown = name if one.required else f"[{name}]"
            yield f"{shown}..." if one.nargs != 1 else shown


def _options(command: Any) -> Iterator[str]:
    for one in command.params:
        if getattr(one, "hidden", False):
            continue
        if one.param_type_name == "argument":
            yield from _entry((one.metavar or one.name).upper(), one.help or "")
            continue
        names = ", ".join((*one.opts, *one.secondary_opts))
        value = "" if one.is_flag else f" {_value(one)}"
        default = one.default
        said = one.help or ""
        if (
            isinstance(default, (str, int, float))
            and not isinstance(default, bool)
            and default != ""
        ):
            said += f" Default: {default}."
        if getattr(one, "required", False):
            said += " Required."
        yield from _entry(names + value, said)


def _value(one: Any) -> str:
    """What an option takes: its choices, else a word for it."""
    stated = getattr(getattr(one, "type_descriptor", None), "annotation", None)
    choices = get_args(stated) if get_origin(stated) is Literal else ()
    return "|".join(map(str, choices)) if choices else str(one.metavar or one.name.upper())


def _codes() -> Iterator[tuple[str, str]]:
    from bundler import errors

    yield "0", "Done, or the judgement is PASS."
    yield str(errors.EXIT_FAIL), "A judgement is FAIL: looked at, and not as it must be."
    yield str(errors.EXIT_INCONCLUSIVE), "INCONCLUSIVE or NOT COMPARABLE."
    yield str(errors.EXIT_INTERRUPTED), "Interrupted; the same command goes on."
    kinds = (one for one in vars(errors).values() if isinstance(one, type))
    found = {one.exit_code: one for one in kinds
             if issubclass(one, errors.BundlerError) and one is not errors.BundlerError}  # fmt: skip
    for code, kind in sorted(found.items()):
        yield str(code), (kind.__doc__ or "").strip().splitlines()[0]


def _entry(name: str, meaning: str) -> Iterator[str]:
    yield ".TP"
    yield f".B {_text(name)}"
    yield _text(" ".join(meaning.split())) or "\\&"


def _paragraphs(text: str) -> Iterator[str]:
    blocks = [" ".join(block.split()) for block in text.strip().split("\n\n") if block.strip()]
    for at, block in enumerate(blocks):
        if at:
            yield ".PP"
        yield _text(block)


def _text(text: str) -> str:
    """Text that roff takes for text: no escapes, no requests, hyphens that can be copied."""
    safe = _plain(text).replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    safe = (
        safe.replace("'", "\\(aq").replace("`", "\\(ga").replace("~", "\\(ti").replace("^", "\\(ha")
    )
    return f"\\&{safe}" if safe.startswith(".") else safe


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
