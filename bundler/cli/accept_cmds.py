"""Commands that judge: accept, report; and demo, which walks the whole road."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bundler import wiring
from bundler.cli.console import progress, say, show_json, table
from bundler.cli.options import JsonOption, QuietOption, RootOption, root_folder
from bundler.domain.verdict import Verdict
from bundler.errors import EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_OK, StateError, disk_errors

if TYPE_CHECKING:
    from bundler.domain.facts import AcceptanceRecord

RECORD = "record.json"
# Names the newest run; folders are named by time, and clocks can be set back.
LAST = "last"
_EXIT = {
    Verdict.PASS: EXIT_OK,
    Verdict.FAIL: EXIT_FAIL,
    Verdict.INCONCLUSIVE: EXIT_INCONCLUSIVE,
}
_STYLE = {
    Verdict.PASS: "bold green",
    Verdict.FAIL: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
}


def accept(
    root: RootOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure the running services at the bundle's concurrency levels and judge them.

    Exit code 0: PASS, 10: FAIL, 11: INCONCLUSIVE.
    """
    from bundler.accept.pipeline import accept as run_acceptance
    from bundler.deploy.observing import observe
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_imported
    from bundler.format.codec import to_bytes

    place = Root(root_folder(root))
    _, release = current_release(place)
    verified = open_imported(place, release.bundle_id, wiring.gate())
    launcher = wiring.launcher(place, progress(quiet=True))
    running = {
        one.state.service: one.state
        for one in observe(launcher, release)
        if launcher.alive(one.state) and one.state.ready_after_s is not None
    }
    if not release.services:
        raise StateError(f"{release.bundle_id}: holds an engine and no model to measure")
    absent = [s.name for s in release.services if s.name not in running]
    if absent:
        raise StateError(
            f"{', '.join(absent)}: not running, or not ready yet",
            hint="Run: airbundle start --root ROOT",
        )
    # Before minutes of measuring, not after: can the receipt be written?
    place.write(place.acceptance / LAST, b"")
    record = run_acceptance(
        states=tuple(running[service.name] for service in release.services),
        verified=verified,
        chat=wiring.chat(),
        clock=wiring.clock(),
        progress=progress(quiet=quiet or json),
        host=wiring.host().facts(),
    )
    folder = place.acceptance / record.began.replace(":", "")
    place.write(folder / RECORD, to_bytes(record))
    place.write(place.acceptance / LAST, folder.name.encode())
    if json:
        show_json(
            {"record": str(folder / RECORD), "verdict": record.verdict.value}
            | {"checks": [check.model_dump(mode="json") for check in record.checks]}
        )
    else:
        _show(record)
        say(f"record: {folder / RECORD}")
    raise typer.Exit(_EXIT[record.verdict])


def _show(record: AcceptanceRecord) -> None:
    table(
        "measured",
        ["service", "#users", "#ok", "#TTFT p50/p95/p99 ms", "#TPOT p50/p95 ms", "#E2E p95 ms",
         "#output tok/s"],
        [
            [
                level.service,
                str(level.concurrency),
                f"{level.succeeded}/{level.requests}",
                "/".join(map(_ms, (level.ttft.p50, level.ttft.p95, level.ttft.p99))),
                "/".join(map(_ms, (level.tpot.p50, level.tpot.p95))),
                _ms(level.e2e.p95),
                f"{level.output_tokens_per_s:.1f}",
            ]
            for level in record.levels
        ],
    )  # fmt: skip
    table(
        "judged",
        ["verdict", "service", "#users", "what", "measured", "reason"],
        [
            [c.verdict.value, c.service, str(c.concurrency or "-"), c.what, c.measured, c.reason]
            for c in record.checks
        ],
    )
    for warning in record.warnings:
        say(f"warning: {warning}", "yellow")
    say(record.verdict.value, _STYLE[record.verdict])


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


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
    say(record.verdict.value, _STYLE[record.verdict])


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
