"""Commands that go from one installed release to another: releases, rollback, upgrade."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bundler import wiring
from bundler.cli import completing
from bundler.cli.auditing import recorded
from bundler.cli.changed import changed_json, say_changed
from bundler.cli.console import progress, say, show_json, table
from bundler.cli.judging import EXIT, STYLE, as_json, show
from bundler.cli.measuring import known_profiles, measure
from bundler.cli.options import JsonOption, QuietOption, RootOption, root_folder
from bundler.cli.rehearsing import rehearsable
from bundler.cli.streams import ERR
from bundler.domain.sizes import human
from bundler.domain.verdict import Verdict
from bundler.errors import StateError
from bundler.format.rehearsal import rehearsing

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.deploy.upgrading import Changer, Outcome
    from bundler.domain.facts import AcceptanceRecord, ReleaseRecord
    from bundler.ports import Progress

TimeoutOption = Annotated[
    float, typer.Option("--timeout", min=1, help="Seconds until a service must be healthy.")
]


def releases(root: RootOption = None, json: JsonOption = False) -> None:
    """Show every installed release: which one is in use, what runs, what it takes on the disk."""
    from bundler.deploy.releases import releases as all_releases
    from bundler.deploy.releases import space_of
    from bundler.deploy.root import Root
    from bundler.deploy.switching import ways_on

    place = Root(root_folder(root))
    if not place.path.is_dir():
        raise StateError(f"{place.path}: no such folder", hint="Nothing was imported there yet.")
    running: dict[str, list[str]] = {}
    for state in wiring.launcher(place, progress(quiet=True)).living():
        running.setdefault(state.release_id, []).append(state.service)
    found: list[dict[str, Any]] = []
    for one in all_releases(place):
        own, shared = space_of(place, one.folder)
        record = one.record
        found.append(
            {
                "release": one.name,
                "bundle_id": one.bundle_id,
                "installed": record.installed if record else None,
                "engine": f"{record.engine_name} {record.engine_version}" if record else None,
                "use": one.use or None,
                "own_bytes": own,
                "shared_bytes": shared,
                "running": running.get(one.name, []),
                "changed": changed_json(place, record),
            }
        )
    unfinished = _unfinished(place)
    if json:
        show_json({"root": str(place.path), "releases": found, "unfinished_upgrade": unfinished})
        return
    table(
        "releases",
        ["id", "engine", "installed", "use", "#own", "#shared with the store", "runs"],
        [
            [
                str(one["release"]),
                str(one["engine"] or "-"),
                str(one["installed"] or "HALF INSTALLED"),
                str(one["use"] or "-"),
                human(one["own_bytes"]),
                human(one["shared_bytes"]),
                ", ".join(one["running"]) or "-",
            ]
            for one in found
        ],
    )
    for one in all_releases(place):
        if one.record is not None:
            say_changed(place, one.record)
    if unfinished:
        say(f"the change to {unfinished} was interrupted: {ways_on(unfinished)}", "yellow")


def _unfinished(place: Root) -> str | None:
    from bundler.deploy.switching import pending

    began = pending(place)
    return began.bundle_id if began else None


def rollback(
    bundle: Annotated[
        str | None,
        typer.Argument(
            help="Id of a release; the one before when left out.",
            show_default=False,
            autocompletion=completing.releases,
        ),
    ] = None,
    root: RootOption = None,
    timeout: TimeoutOption = 900,
    no_start: Annotated[
        bool, typer.Option("--no-start", help="Start nothing; what runs is stopped all the same.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Go back to the release before, or to a named one; what runs is stopped and started anew."""
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    if not place.path.is_dir():
        raise StateError(f"{place.path}: no such folder", hint="Nothing was imported there yet.")
    with recorded(place, "rollback") as action:
        changer = _changer(place, timeout, progress(quiet=quiet or json))
        outcome = changer.rollback(bundle, start=not no_start)
        action.detail = outcome.said
    if json:
        show_json(_told(outcome))
        return
    say(outcome.said, "bold green")


def upgrade(
    bundle: Annotated[
        str | None,
        typer.Argument(
            help="Bundle id; the newest import when left out.",
            show_default=False,
            autocompletion=completing.bundles,
        ),
    ] = None,
    root: RootOption = None,
    timeout: TimeoutOption = 900,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Go back also when the judgement is INCONCLUSIVE or NOT COMPARABLE."
        ),
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Install beside what serves, switch, start, accept; when that fails, the old one serves again.

    Exit code 0: PASS, 10: FAIL and gone back, 11: INCONCLUSIVE (kept, with --strict gone back); the code
    of a start that failed, and gone back.
    """
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import check_may_install, open_imported

    place = Root(root_folder(root))
    verified = open_imported(place, bundle, wiring.gate())
    # A bad profile should be met now, not by the acceptance that follows the switch.
    known_profiles(place)
    shown = progress(quiet=quiet or json)
    receipts: list[tuple[AcceptanceRecord, Path]] = []

    def judge(release: ReleaseRecord) -> Verdict:
        receipts.append(measure(place, release, verified, shown))
        return receipts[-1][0].verdict

    with recorded(place, "upgrade") as action:
        action.about(verified)
        check_may_install(place, verified, wiring.gate())
        installer = wiring.installer(place, shown)
        outcome = _changer(place, timeout, shown).upgrade(verified, installer, judge, strict=strict)
        if rehearsing():
            return
        [(record, path)] = receipts
        action.detail = f"{record.verdict.value}; {outcome.said}"
    if json:
        show_json(as_json(record, path) | _told(outcome))
    else:
        show(record, path)
        say(outcome.said, STYLE[record.verdict])
    raise typer.Exit(EXIT[record.verdict])


def _changer(place: Root, timeout: float, shown: Progress) -> Changer:
    from bundler.deploy.upgrading import Changer

    return Changer(
        root=place,
        launcher=wiring.launcher(place, shown),
        gate=wiring.gate(),
        timeout_s=timeout,
        tell=lambda line: ERR.line(line, style="bold yellow"),
    )


def _told(outcome: Outcome) -> dict[str, Any]:
    return {
        "current": outcome.current,
        "serving": [state.model_dump(mode="json") for state in outcome.serving],
        "rolled_back": outcome.rolled_back,
        "said": outcome.said,
    }


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (releases, rehearsable(upgrade), rehearsable(rollback)):
        app.command(rich_help_panel="Closed side")(command)
