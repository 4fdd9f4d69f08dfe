"""Commands that judge: accept, report; and demo, which walks the whole road."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from bundler import wiring
from bundler.cli.console import progress, say, show_json
from bundler.cli.judging import EXIT, LAST, RECORD, STYLE, as_json, measure, show
from bundler.cli.options import JsonOption, QuietOption, RootOption, root_folder
from bundler.errors import StateError, disk_errors


def accept(
    root: RootOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure the running services at the bundle's concurrency levels and judge them.

    Exit code 0: PASS, 10: FAIL, 11: INCONCLUSIVE or NOT COMPARABLE.
    """
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_imported

    place = Root(root_folder(root))
    _, release = current_release(place)
    verified = open_imported(place, release.bundle_id, wiring.gate())
    record, path = measure(place, release, verified, progress(quiet=quiet or json))
    if json:
        show_json(as_json(record, path))
    else:
        show(record, path)
    raise typer.Exit(EXIT[record.verdict])


def report(
    root: RootOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to write to; beside the record when left out."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write the last acceptance run as report.json and one self-contained report.html."""
    from bundler.deploy.root import Root
    from bundler.domain.facts import AcceptanceRecord
    from bundler.format.codec import from_bytes

    place = Root(root_folder(root))
    path = _last_record(place.acceptance)
    with disk_errors("reading", path):
        record = from_bytes(AcceptanceRecord, path.read_bytes(), str(path))
    folder = (out or path.parent).absolute()
    written = []
    for make in wiring.REPORTS.values():
        writer = make()
        place.write(folder / writer.filename, writer.render(record).encode())
        written.append(str(folder / writer.filename))
    if json:
        show_json({"verdict": record.verdict.value, "files": written})
        return
    for name in written:
        say(name)
    say(record.verdict.value, STYLE[record.verdict])


def _last_record(folder: Path) -> Path:
    last = folder / LAST
    name = last.read_text().strip() if last.is_file() else ""
    path = folder / name / RECORD
    if name and path.is_file():
        return path
    records = sorted(folder.glob(f"*/{RECORD}"))
    if not records:
        raise StateError(
            f"{folder}: no acceptance run yet", hint="Run: airbundle accept --root ROOT"
        )
    return records[-1]


def demo(
    engine: Annotated[
        Literal["llama.cpp", "vllm"], typer.Option("--engine", help="Real engine to use.")
    ] = "llama.cpp",
    keep: Annotated[
        Path | None,
        typer.Option("--keep", help="Work in this folder; a temporary one when left out."),
    ] = None,
) -> None:
    """Walk the whole road here: a tiny model, a real engine, the closed half without network."""
    from bundler.demo.road import Road

    folder = keep or Path(tempfile.mkdtemp(prefix="airbundle-demo-"))
    road = Road(engine=engine, folder=folder.absolute(), say=say)
    raise typer.Exit(road.walk())


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(rich_help_panel="Closed side")(accept)
    app.command(rich_help_panel="Closed side")(report)
    app.command(rich_help_panel="Start here")(demo)
