"""Commands that judge: accept, report; and demo, which walks the whole road."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from bundler import wiring
from bundler.cli import applying, capacity, question_view
from bundler.cli.auditing import recorded
from bundler.cli.console import progress, say, show_json
from bundler.cli.judging import EXIT, LAST, RECORD, STYLE, as_json, show
from bundler.cli.measuring import measure
from bundler.cli.options import JsonOption, QuietOption, RootOption, root_folder
from bundler.cli.rehearsing import rehearsable
from bundler.domain.ab import PAIRS
from bundler.errors import StateError, disk_errors

# No file system has a longer one.
_LONGEST_NAME = 255


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
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            help="Also put an earlier run beside it: a report.json, or a folder of ROOT/acceptance.",
            show_default=False,
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            "--sign", help="Private key (PEM) to sign report.json with.", show_default=False
        ),
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option(
            "--verify",
            help="Only check a report.json by its .sig; needs --key.",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", help="--verify: public key (PEM) of who signed.", show_default=False),
    ] = None,
    questions: Annotated[
        bool,
        typer.Option("--questions", help="Answer the owner's five questions from the records."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Write the last acceptance run: JSON, one self-contained HTML page, Markdown, JUnit, CSV.

    With --compare: also compare.html and compare.md, an earlier run beside it.
    With --verify: write nothing; exit code 8 when the report is not signed by that key.
    """
    from bundler.cli import reporting
    from bundler.deploy.root import Root

    _fits(
        verify, key, writes=bool(compare or sign or out), pages=bool(compare or sign) and questions
    )
    if verify is not None and key is not None:
        _check(verify, key, json=json)
        return
    signer = wiring.signer(sign) if sign else None
    place = Root(root_folder(root))
    if questions:
        question_view.answer_questions(place, out, json=json)
        return
    path = last_record(place.acceptance)
    record = reporting.read_run(path)
    folder = (out or path.parent).absolute()
    if signer is None:
        written = reporting.write_reports(place, record, folder, None)
    else:
        with recorded(place, "report --sign", changes=False) as action:
            written = reporting.write_reports(place, record, folder, signer)
            action.detail = f"{record.verdict.value}; signed by key {signer.key_id}; {folder}"
    result: dict[str, object] = {"verdict": record.verdict.value}
    notes: list[tuple[str, str]] = []
    if signer is not None:
        result["key_id"] = signer.key_id
        notes.append((f"{reporting.REPORT}: signed by key {signer.key_id}", ""))
    if compare is not None:
        compared, pages = reporting.write_comparison(place, record, str(path), compare, folder)
        written += pages
        result["compared"] = compared.outcome
        notes += [(f"not comparable: {why}", "yellow") for why in compared.not_comparable]
        notes.append((f"beside {compare}: {compared.outcome}", ""))
    if json:
        show_json({**result, "files": [str(one) for one in written]})
        return
    for line, style in [*((str(one), "") for one in written), *notes]:
        say(line, style)
    say(record.verdict.value, STYLE[record.verdict])


def _fits(verify: Path | None, key: Path | None, *, writes: bool, pages: bool) -> None:
    """Refuse options of `report` that do not belong together."""
    if (verify is None) != (key is None):
        raise typer.BadParameter("--verify REPORT and --key PUBLIC.pem belong together")
    if verify is not None and writes:
        raise typer.BadParameter("--verify only checks; it writes nothing")
    if pages:
        raise typer.BadParameter("--questions makes pages of its own: no --compare or --sign")


def _check(file: Path, key: Path, *, json: bool) -> None:
    """`report --verify`."""
    from bundler.cli import reporting

    verifier = wiring.verifier(key)
    record = reporting.verified_report(file, verifier)
    if json:
        show_json(
            {
                "ok": True,
                "key_id": verifier.key_id,
                "verdict": record.verdict.value,
                "bundle_id": record.bundle_id,
                "manifest_sha256": record.manifest_sha256,
            }
        )
        return
    say(f"{file}: signed by key {verifier.key_id}", "bold green")
    told = f"{record.bundle_id}, measured {record.began}: {record.verdict.value}"
    say(told, STYLE[record.verdict])


def last_record(folder: Path) -> Path:
    """The newest acceptance run below a folder.

    Raises:
        StateError: there is none.
    """
    last = folder / LAST
    name = ""
    if last.is_file():
        with disk_errors("reading", last), last.open("rb") as file:
            name = file.read(_LONGEST_NAME).decode(errors="replace").strip()
    path = folder / name / RECORD
    if name and "/" not in name and os.path.isfile(path):  # noqa: PTH113 - takes any name
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
    app.command(rich_help_panel="Closed side")(rehearsable(report))
    app.command(rich_help_panel="Start here")(demo)
