"""Typer's help and usage errors in Korean: the same texts, put in place before they are drawn."""

from __future__ import annotations

import re
from typing import Any

from bundler.cli.korean import translate, word

# Typer's own words, by the names of its constants; one that a version lacks is passed over.
_TYPER = {
    "DEPRECATED_STRING": "(사용 중단 예정) ",
    "DEFAULT_STRING": "[기본값: {}]",
    "ENVVAR_STRING": "[환경 변수: {}]",
    "REQUIRED_LONG_STRING": "[필수]",
    "ARGUMENTS_PANEL_TITLE": "인자",
    "OPTIONS_PANEL_TITLE": "옵션",
    "COMMANDS_PANEL_TITLE": "명령",
}


def paragraphs(text: str) -> list[str]:
    """A help text's paragraphs, each in one line: the units that are translated."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]


def in_korean(command: Any) -> Any:
    """The command and all below it, so that each translates its help when it is asked for it.

    Args:
        command: a click command or group, as Typer makes it; changed in place.
    """
    shown = command.format_help

    def format_help(ctx: Any, formatter: Any) -> None:
        _dress(command)
        shown(ctx, formatter)

    command.format_help = format_help
    for below in getattr(command, "commands", {}).values():
        in_korean(below)
    return command


def _dress(command: Any) -> None:
    """Put Korean into a command, the heads of those below it, and Typer's own words."""
    from rich.text import Text
    from typer import rich_utils

    Text.rstrip_end = _rstrip_end  # type: ignore[method-assign,assignment]
    for constant, korean in _TYPER.items():
        if hasattr(rich_utils, constant):
            setattr(rich_utils, constant, korean)
    usage, help_option = command.get_usage, command.get_help_option

    def korean_option(ctx: Any) -> Any:
        option = help_option(ctx)
        if option is not None:
            option.help = translate(option.help or "")
        return option

    command.get_usage = lambda ctx: _usage(usage(ctx))
    command.get_help_option = korean_option
    for param in command.params:
        _dress_param(param)
    if command.epilog:
        command.epilog = command.epilog.replace("Example:", "예:", 1)
    for one in (command, *getattr(command, "commands", {}).values()):
        _dress_head(one)


def _dress_param(param: Any) -> None:
    if getattr(param, "help", None):
        param.help = translate(" ".join(param.help.split()))
    if isinstance(getattr(param, "show_default", None), str):
        param.show_default = translate(param.show_default)


def _rstrip_end(text: Any, size: int) -> None:
    """Remove white space beyond so many cells at the end of a `rich.text.Text`.

    rich's own counts signs. Of a wrapped line of wide ones it leaves the space at the end, and a column then
    cuts a syllable off to make room for an ellipsis.
    """
    spaces = len(text.plain) - len(text.plain.rstrip())
    excess = min(spaces, text.cell_len - size)
    if excess > 0:
        text.right_crop(excess)


def _dress_head(command: Any) -> None:
    """What a command says of itself, also in the list of its group."""
    for name in ("help", "short_help"):
        text = getattr(command, name, None)
        if text:
            setattr(command, name, "\n\n".join(map(translate, paragraphs(text))))
    if isinstance(getattr(command, "rich_help_panel", None), str):
        command.rich_help_panel = word(command.rich_help_panel)


def _usage(text: str) -> str:
    return text.replace("Usage:", "사용법:", 1)


def usage_lines(error: Any) -> list[str]:
    """What a usage error says: how the command is used, where its help is, what was wrong."""
    lines = []
    if error.ctx is not None:
        lines += [_usage(error.ctx.get_usage()), f"도움말: '{error.ctx.command_path} -h'", ""]
    return [*lines, f"오류: {translate(error.format_message())}"]
