"""Commands that look at a closed side's root: status, logs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bundler import wiring
from bundler.cli.changed import changed_json, say_changed
from bundler.cli.completing import services
from bundler.cli.console import progress, quote, say, show_json, table
from bundler.cli.options import JsonOption, RootOption, root_folder
from bundler.errors import EXIT_FAIL, StateError, TrustError, disk_errors

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.domain.facts import ServiceState
    from bundler.domain.manifest import VerifiedManifest


def status(root: RootOption = None, json: JsonOption = False) -> None:
    """Show imported bundles, releases and running services."""
    from bundler.deploy.importing import missing_volumes
    from bundler.deploy.releases import linked_release, read_release
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_record
    from bundler.domain.variants import bundle_of

    place = Root(root_folder(root))
    if not place.path.is_dir():
        raise StateError(f"{place.path}: no such folder", hint="Nothing was imported there yet.")
    launcher = wiring.launcher(place, progress(quiet=True))
    linked = linked_release(place.current) or ""
    current, in_use = bundle_of(linked), read_release(place.release(linked)) if linked else None
    bundles: list[dict[str, Any]] = []
    for folder in place.bundles():
        verified = open_record(place, folder.name, wiring.gate())
        installed = read_release(place.release(folder.name)) is not None
        bundles.append(
            {
                "bundle_id": folder.name,
                "key_id": verified.key_id,
                "sequence": verified.manifest.sequence,
                "refused": _refused(place, verified),
                "missing_volumes": list(missing_volumes(place, verified)),
                "installed": installed,
                "current": installed and folder.name == current,
                "changed": changed_json(place, in_use) if folder.name == current else None,
            }
        )
    services = [
        {
            "service": state.service,
            "bundle_id": state.bundle_id,
            "release": state.release_id,
            "pid": state.pid,
            "url": state.url,
            "state": _service_state(launcher.alive(state), state),
        }
        for state in launcher.states()
    ]
    if json:
        show_json({"root": str(place.path), "bundles": bundles, "services": services})
        return
    table(
        "bundles",
        ["id", "signed by", "import", "release", "refused"],
        [
            [
                str(b["bundle_id"]),
                str(b["key_id"] or "UNSIGNED"),
                f"{len(b['missing_volumes'])} volume(s) missing"
                if b["missing_volumes"]
                else "complete",
                ("current, other settings" if b["changed"] else "current")
                if b["current"]
                else "installed"
                if b["installed"]
                else "-",
                str(b["refused"]) or "-",
            ]
            for b in bundles
        ],
    )
    table(
        "services",
        ["name", "state", "#pid", "address"],
        [[str(s["service"]), str(s["state"]), str(s["pid"]), str(s["url"])] for s in services],
    )
    if in_use is not None:
        say_changed(place, in_use)


def _refused(root: Root, verified: VerifiedManifest) -> str:
    """Why this site would not install a bundle; empty when it would."""
    from bundler.deploy.trustroot import check_may_install, open_imported

    try:
        open_imported(root, verified.bundle_id, wiring.gate())
        check_may_install(root, verified, wiring.gate())
    except TrustError as error:
        return str(error)
    return ""


def _service_state(alive: bool, state: ServiceState) -> str:
    if not alive:
        return "died"
    if state.node:
        return f"node {state.node}"
    return "ready" if state.ready_after_s is not None else "starting"


def logs(
    service: Annotated[
        str | None,
        typer.Argument(
            help="Service; all when left out.", show_default=False, autocompletion=services
        ),
    ] = None,
    root: RootOption = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as the log grows.")] = False,
) -> None:
    """Show what the engines said."""
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    paths = [place.log(service)] if service else sorted(place.path.glob("logs/*.log"))
    paths = [path for path in paths if path.is_file()]
    if not paths:
        raise StateError(f"{place.path}: no log of {service or 'any service'}")
    for path in paths:
        if len(paths) > 1:
            say(f"== {path.stem}", "bold")
        with disk_errors("reading", path):
            for line in _tail(path, lines):
                quote(line)
    if follow:
        _follow(paths[-1])


# Of a log without line ends, as some engines write progress bars, this much is shown.
_TAIL_BYTES = 4 * 2**20


def _tail(path: Path, count: int) -> list[str]:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    return [line[-4000:] for line in text.splitlines()[-count:]]


def _follow(path: Path) -> None:
    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(0, 2)
        while True:
            line = file.readline()
            if line:
                quote(line.rstrip("\n"))
            else:
                time.sleep(0.3)


def kernels(
    service: Annotated[
        str | None, typer.Argument(help="Service; all when left out.", show_default=False)
    ] = None,
    root: RootOption = None,
    json: JsonOption = False,
) -> None:
    """Show which kernels the engines say that they run, against what was asked for.

    Exit code 0: nothing speaks against it, 10: something else runs than was asked for.
    """
    from bundler.deploy.observing import observe
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    _, release = current_release(place)
    launcher = wiring.launcher(place, progress(quiet=True))
    seen = [one for one in observe(launcher, release) if service in (None, one.state.service)]
    if not seen:
        raise StateError(
            f"{service or release.bundle_id}: was not started here, so that no log says anything",
            hint="Run: airbundle start --root ROOT",
        )
    if json:
        show_json([one.as_json() for one in seen])
    for one in [] if json else seen:
        table(one.state.service, ["what", "asked for", "runs", "said by"], one.rows())
        for mismatch in one.mismatches:
            say(f"FAIL {one.state.service}: {mismatch.words()}", "bold red")
    if not json:
        say_changed(place, release)
    if any(one.mismatches for one in seen):
        raise typer.Exit(EXIT_FAIL)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (status, logs, kernels):
        app.command(rich_help_panel="Closed side")(command)
