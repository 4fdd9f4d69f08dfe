"""`airbundle audit`: who did what to a root."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import wiring
from bundler.cli.console import say, show_json, table
from bundler.cli.options import JsonOption, RootOption, root_folder
from bundler.errors import StateError

if TYPE_CHECKING:
    from pathlib import Path

    from bundler.deploy.audit import AuditLog
    from bundler.domain.audit import AuditHead

app = typer.Typer(help="Who did what to a root, and when.", no_args_is_help=True, name="audit")
_HEAD = re.compile(r"([0-9]{1,12}):([0-9a-f]{64})")


@app.command()
def verify(
    root: RootOption = None,
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            help="LINES:SHA256 as an earlier `audit verify` printed it: the log must still hold it.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check that no line was changed, removed, added or cut off; the first one that was is named."""
    found = _log(root_folder(root)).verify(_head(expect))
    mark = f"{found.lines}:{found.sha256}"
    if json:
        show_json({"ok": True, "lines": found.lines, "head": mark})
        return
    say(f"OK: {found.lines} lines", "bold green")
    say(f"head: {mark}")


@app.command()
def show(
    root: RootOption = None,
    last: Annotated[int, typer.Option("--last", "-n", min=1, help="How many lines.")] = 40,
    json: JsonOption = False,
) -> None:
    """Show the last lines; `audit verify` says whether they can be relied on."""
    lines = deque(_log(root_folder(root)).entries(), maxlen=last)
    if json:
        show_json([line.model_dump(mode="json") for line in lines])
        return
    table(
        "audit",
        ["#", "when", "who", "what", "outcome", "bundle", "detail"],
        [
            [
                str(line.number), line.at, line.who, line.what,
                line.outcome if line.of is None else f"{line.outcome} ({line.of})",
                line.bundle_id or "-", line.detail or "-",
            ]
            for line in lines
        ],
    )  # fmt: skip


def _log(folder: Path) -> AuditLog:
    from bundler.deploy.root import Root

    place = Root(folder)
    if not place.path.is_dir():
        raise StateError(f"{place.path}: no such folder", hint="Nothing was imported there yet.")
    return wiring.audit_log(place)


def _head(text: str | None) -> AuditHead | None:
    from bundler.domain.audit import AuditHead

    if text is None:
        return None
    match = _HEAD.fullmatch(text)
    if match is None:
        raise typer.BadParameter("--expect wants LINES:SHA256, as `audit verify` prints it")
    return AuditHead(lines=int(match[1]), sha256=match[2])


def register(root: typer.Typer) -> None:
    """Add the group."""
    root.add_typer(app, rich_help_panel="Review")
