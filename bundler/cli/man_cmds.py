"""`airbundle man`: the manual page of this very version."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bundler.cli.console import say
from bundler.cli.rehearsing import rehearsable
from bundler.errors import disk_errors


def man(
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to write airbundle.1 into; printed when left out.",
                     show_default=False, readable=False),
    ] = None,
) -> None:  # fmt: skip
    """Print the manual page, made from the commands themselves."""
    from bundler.format.atomic import write_atomically

    text = page()
    if out is None:
        sys.stdout.write(text)
        return
    path = out / "airbundle.1"
    with disk_errors("writing", path):
        write_atomically(path, text.encode())
    say(str(path))


def page() -> str:
    """The manual page, roff."""
    from importlib.metadata import version

    from typer.main import get_command

    from bundler.cli.app import make_app
    from bundler.cli.manpage import manual

    return manual(get_command(make_app([])), version("airbundle"))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Start here")(rehearsable(man))
