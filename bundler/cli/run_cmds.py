"""Commands for supervisors: run, export."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated, Literal

import typer

from bundler import wiring
from bundler.cli.console import progress, say, show_json
from bundler.cli.options import JsonOption, RootOption, root_folder
from bundler.errors import StateError


def run(
    service: Annotated[str, typer.Argument(help="Service of the current release.")],
    root: RootOption = None,
    to_log: Annotated[
        bool, typer.Option("--to-log", help="Write the engine's output to the root's log.")
    ] = False,
) -> None:
    """Become the engine of one service, for systemd or a container: same settings, caches and key as `start`."""
    from bundler.deploy.foreground import run_here
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_imported

    place = Root(root_folder(root))
    folder, record = current_release(place)
    # What was revoked since it was installed does not start again.
    open_imported(place, record.bundle_id, wiring.gate())
    launcher = wiring.launcher(place, progress(quiet=True))
    run_here(launcher, folder, record, service, to_log=to_log)


def export(
    form: Annotated[Literal["systemd"], typer.Option("--format", help="What to write.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    root: RootOption = None,
    user_manager: Annotated[
        bool, typer.Option("--user", help="For `systemctl --user` rather than the system.")
    ] = False,
    run_as: Annotated[
        str | None,
        typer.Option("--run-as", help="User of the system's units; the current one when left out."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write the current release's services in another supervisor's form."""
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root
    from bundler.deploy.units import unit_files

    place = Root(root_folder(root))
    _, record = current_release(place)
    if not record.services:
        raise StateError(f"{record.bundle_id}: holds an engine and no model to serve")
    files = unit_files(
        place.path, record.services, user=run_as or getpass.getuser(), for_user_manager=user_manager
    )
    written = []
    for name, text in files.items():
        # The environment file is the operator's: what he wrote there stays.
        path = place.path / name if name.startswith("etc/") else out.absolute() / name
        if name.startswith("etc/") and path.exists():
            continue
        place.write(path, text.encode())
        written.append(str(path))
    if json:
        show_json({"format": form, "files": written})
        return
    for line in written:
        say(line)
    flag = " --user" if user_manager else ""
    folder = "~/.config/systemd/user" if user_manager else "/etc/systemd/system"
    say(f"Copy the units to {folder}, then: systemctl{flag} daemon-reload && systemctl{flag} enable"
        f" --now {' '.join(Path(name).stem for name in files if name.endswith('.service'))}")  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (run, export):
        app.command(rich_help_panel="Closed side")(command)
