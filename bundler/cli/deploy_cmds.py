"""Commands that make releases serve: install, start, stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bundler import wiring
from bundler.cli.auditing import recorded
from bundler.cli.changed import say_changed
from bundler.cli.completing import bundles
from bundler.cli.console import progress, say, show_json
from bundler.cli.options import (
    JsonOption,
    QuietOption,
    RootOption,
    root_folder,
)
from bundler.cli.rehearsing import rehearsable
from bundler.errors import StateError

if TYPE_CHECKING:
    from bundler.deploy.root import Root

# Of what ran while its release was made anew.
_RESTART_WITHIN_S = 900.0


def install(
    bundle: Annotated[
        str | None,
        typer.Argument(
            help="Bundle id; the newest when left out.", show_default=False, autocompletion=bundles
        ),
    ] = None,
    root: RootOption = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Make an installed release anew, in its place: the one in use when none is named.",
        ),
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Install an imported bundle into a release of its own and make it current."""
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import check_may_install, open_imported

    place = Root(root_folder(root))
    if again:
        bundle = _installed(place, bundle)
    verified = open_imported(place, bundle, wiring.gate())
    shown = progress(quiet=quiet or json)
    with recorded(place, "install --again" if again else "install") as action:
        action.about(verified)
        check_may_install(place, verified, wiring.gate())
        installer = wiring.installer(place, shown)
        if again:
            from bundler.deploy.remaking import Remaker

            launcher = wiring.launcher(place, shown)
            record, states = Remaker(installer, launcher, _RESTART_WITHIN_S).remake(verified)
            for state in () if json else states:
                say(f"{state.service}: started again, at {state.url}")
        else:
            record = installer.install(verified)
    if json:
        show_json(
            record.model_dump(mode="json") | {"release": str(place.release(record.bundle_id))}
        )
        return
    say(f"installed {record.bundle_id}, {verified.vouched}", "bold green")


def _installed(place: Root, bundle: str | None) -> str:
    from bundler.deploy.releases import current_release, pick_release

    if bundle is not None:
        return pick_release(place, bundle).bundle_id
    return current_release(place)[1].bundle_id


def start(
    root: RootOption = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds until a service must be healthy.")
    ] = 900,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Start the current release's services; ready means that a real completion came back."""
    from bundler.deploy.observing import observe
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_imported

    place = Root(root_folder(root))
    folder, record = current_release(place)
    launcher = wiring.launcher(place, progress(quiet=quiet or json))
    with recorded(place, "start", changes=False) as action:
        # What was revoked since it was installed does not start again.
        action.about(open_imported(place, record.bundle_id, wiring.gate()))
        states = launcher.start(folder, record, timeout_s=timeout)
        action.detail = ", ".join(state.service for state in states)
        if record.variant is not None:
            action.detail += f" ({record.release_id})"
    if json:
        show_json([state.model_dump(mode="json") for state in states])
        return
    for state in states:
        say(f"{state.service}: ready after {state.ready_after_s} s at {state.url}", "bold green")
        if place.api_key(state.port).is_file():
            say(f"{state.service}: its clients need the API key in {place.api_key(state.port)}")
    say_changed(place, record)
    for one in observe(launcher, record):
        say(f"{one.state.service}: {one.running.words()}")
        for mismatch in one.mismatches:
            say(f"WARNING {one.state.service}: {mismatch.words()}; `accept` fails it", "bold red")


def stop(root: RootOption = None, json: JsonOption = False) -> None:
    """Stop every service: gently, then firmly, with nothing left behind."""
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    if not place.path.is_dir():
        raise StateError(f"{place.path}: no such folder", hint="Nothing was imported there yet.")
    launcher = wiring.launcher(place, progress(quiet=True))
    with recorded(place, "stop", changes=False) as action:
        stopped = launcher.stop_all()
        action.detail = ", ".join(stopped)
    if json:
        show_json({"stopped": stopped})
        return
    say(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, command in (("install", install), ("start", start), ("stop", stop)):
        app.command(name, rich_help_panel="Closed side")(rehearsable(command))
