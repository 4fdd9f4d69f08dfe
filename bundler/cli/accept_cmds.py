"""Commands that judge: accept, report; and demo, which walks the whole road."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from bundler import wiring
from bundler.cli import applying, capacity
from bundler.cli.auditing import recorded
from bundler.cli.console import progress, say, show_json
from bundler.cli.judging import EXIT, LAST, RECORD, STYLE, as_json, show
from bundler.cli.measuring import measure
from bundler.cli.options import JsonOption, QuietOption, RootOption, root_folder
from bundler.domain.ab import PAIRS
from bundler.errors import StateError, disk_errors


def accept(
    root: RootOption = None,
    profile: Annotated[
        list[Path] | None,
        typer.Option(
            "--profile",
            help="Known figures to compare with (YAML), besides ROOT/profiles and those shipped.",
            readable=False,
        ),
    ] = None,
    find_max: Annotated[
        bool, typer.Option("--find-max", help="Search the highest number of users that passes.")
    ] = False,
    service: Annotated[
        str | None,
        typer.Option("--service", help="--find-max, --ab: this service, where there are several."),
    ] = None,
    lowest: Annotated[int, typer.Option("--from", help="Fewest users of the search.")] = 1,
    highest: Annotated[int, typer.Option("--to", help="Most users of the search.")] = 512,
    budget: Annotated[
        str, typer.Option("--budget", help="Time for the search: 90s, 10m, 1h.")
    ] = "30m",
    ttft_ms: Annotated[
        float | None, typer.Option("--ttft-ms", min=0.001, help="Search by this limit instead.")
    ] = None,
    tpot_ms: Annotated[
        float | None, typer.Option("--tpot-ms", min=0.001, help="Search by this limit instead.")
    ] = None,
    attainment: Annotated[
        float | None, typer.Option("--attainment", help="Search by this share instead.")
    ] = None,
    ab: Annotated[
        str | None,
        typer.Option(
            "--ab",
            metavar="KEY=A,B",
            help="Compare two settings (kernel=deepgemm,triton), or two releases (release=ID,ID): starts"
            " the engine anew for each run.",
            show_default=False,
        ),
    ] = None,
    pairs: Annotated[
        int, typer.Option("--pairs", min=2, max=20, help="--ab: runs of each setting.")
    ] = PAIRS,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply",
            help="--ab: put the better one in use, as a release of its own (see rollback).",
        ),
    ] = False,
    ab_record: Annotated[
        Path | None,
        typer.Option(
            "--ab-record",
            metavar="AB.JSON",
            help="A comparison that was made before: show it, and --apply what it found.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    start_timeout: Annotated[
        float,
        typer.Option("--start-timeout", min=1, help="--ab: seconds until a service is healthy."),
    ] = 900,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure the running services at the bundle's concurrency levels and judge them.

    With --find-max: search the highest number of users at once that the plan's SLO stands.
    With --ab: start, measure and stop two settings in turns, and say which one to keep; --apply keeps it.

    Exit code 0: PASS, 10: FAIL, 11: INCONCLUSIVE or NOT COMPARABLE.
    """
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_imported

    if sum(map(bool, (find_max, ab, ab_record))) > 1:
        raise typer.BadParameter("--find-max, --ab and --ab-record are different runs")
    if apply and not (ab or ab_record):
        raise typer.BadParameter("--apply belongs to --ab and --ab-record")
    if service and not (find_max or ab):
        raise typer.BadParameter("--service belongs to --find-max and --ab")
    limits = (ttft_ms, tpot_ms, attainment)
    _check_limits(limits, search=find_max)
    wish = capacity.wanted(service, lowest, highest, budget, limits)
    place = Root(root_folder(root))
    _, release = current_release(place)
    verified = open_imported(place, release.bundle_id, wiring.gate())
    shown = progress(quiet=quiet or json)
    if ab or ab_record:
        side = applying.Chosen(place, release, verified, apply=apply, json=json)
        if ab_record:
            code = applying.kept(side, ab_record)
        else:
            code = applying.compared(
                side, ab or "", shown, timeout_s=start_timeout, pairs=pairs, only=service
            )
        raise typer.Exit(code)
    if find_max:
        with recorded(place, "accept --find-max", changes=False) as action:
            action.about(verified)
            found, path = capacity.find_max(place, release, verified, wish, shown)
            action.detail = f"{found.verdict.value}: {found.reason}; {path.relative_to(place.path)}"
        if json:
            show_json(capacity.as_json(found, path))
        else:
            capacity.show(found, path)
        raise typer.Exit(EXIT[found.verdict])
    with recorded(place, "accept", changes=False) as action:
        action.about(verified)
        record, path = measure(place, release, verified, shown, profile or ())
        action.detail = f"{record.verdict.value}; {path.relative_to(place.path)}"
    if json:
        show_json(as_json(record, path))
    else:
        show(record, path)
    raise typer.Exit(EXIT[record.verdict])


def _check_limits(limits: tuple[float | None, float | None, float | None], *, search: bool) -> None:
    attainment = limits[2]
    if attainment is not None and not 0 < attainment < 1:
        raise typer.BadParameter(f"--attainment {attainment:g}: between 0 and 1, such as 0.95")
    if not search and any(limit is not None for limit in limits):
        raise typer.BadParameter("limits belong to --find-max; the plan is the bundle's")


def report(
    root: RootOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to write to; beside the record when left out."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write the last acceptance run: JSON, one self-contained HTML page, Markdown, JUnit, CSV."""
    from bundler.deploy.root import Root
    from bundler.domain.facts import AcceptanceRecord
    from bundler.format.codec import from_bytes

    place = Root(root_folder(root))
    path = last_record(place.acceptance)
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


def last_record(folder: Path) -> Path:
    """The newest acceptance run below a folder.

    Raises:
        StateError: there is none.
    """
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
