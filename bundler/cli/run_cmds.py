"""Commands for other programs and hosts: run, export, serve."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated, Literal

import typer

from bundler import wiring
from bundler.cli.console import progress, say, show_json
from bundler.cli.options import JsonOption, QuietOption, RootOption, root_folder
from bundler.cli.streams import ERR
from bundler.errors import StateError, TrustError


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
    form: Annotated[Literal["systemd", "ansible"], typer.Option("--format", help="What to write.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    root: RootOption = None,
    user_manager: Annotated[
        bool, typer.Option("--user", help="systemd: for `systemctl --user`, not the system.")
    ] = False,
    run_as: Annotated[
        str | None,
        typer.Option("--run-as", help="systemd: user of the units; the current one when left out."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write the current release for another tool: systemd units, or a rollout to many hosts with Ansible.

    What an operator fills in (environment files, inventory, variables) is not overwritten when it is there.
    """
    from bundler.deploy.playbook import playbook_files
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root
    from bundler.deploy.units import unit_files

    place = Root(root_folder(root))
    _, record = current_release(place)
    if not record.services:
        raise StateError(f"{record.bundle_id}: holds an engine and no model to serve")
    folder = out.absolute()
    if form == "ansible":
        files = {folder / name: text for name, text in
                 playbook_files(place.path, record.bundle_id).items()}  # fmt: skip
        kept = [path for path in files if path.name != "airbundle.yml" and path.exists()]
        then = f"Fill in airbundle.vars.yml and inventory.ini in {folder}, then there:"
        then += " ansible-playbook -i inventory.ini airbundle.yml"
    else:
        units = unit_files(
            place.path,
            record.services,
            user=run_as or getpass.getuser(),
            for_user_manager=user_manager,
        )
        files = {(place.path if name.startswith("etc/") else folder) / name: text
                 for name, text in units.items()}  # fmt: skip
        kept = [path for path in files if path.suffix == ".env" and path.exists()]
        flag, where = ("", "/etc/systemd/system")
        if user_manager:
            flag, where = (" --user", "~/.config/systemd/user")
        names = " ".join(path.stem for path in files if path.suffix == ".service")
        then = f"Copy the units to {where}, then: systemctl{flag} daemon-reload &&"
        then += f" systemctl{flag} enable --now {names}"
    written = [path for path in files if path not in kept]
    for path in written:
        place.write(path, files[path].encode())
    if json:
        show_json({"format": form, "files": list(map(str, written))})
        return
    for path in written:
        say(str(path))
    say(then)


def serve(
    root: RootOption = None,
    host: Annotated[str, typer.Option("--host", help="IP address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="TCP port.")] = 8099,
    quiet: QuietOption = False,
) -> None:
    """Serve imported wheels and models, read-only, to plain pip, uv and huggingface_hub on other hosts.

    What the site's policy refuses, or is not wholly imported, is not served. Who reaches the address may read.
    """
    from bundler.deploy.importing import missing_volumes
    from bundler.deploy.root import Root
    from bundler.deploy.shelving import make_shelf
    from bundler.deploy.trustroot import check_may_install, open_imported

    place = Root(root_folder(root))
    bundles = []
    for folder in place.bundles():
        try:
            verified = open_imported(place, folder.name, wiring.gate())
            check_may_install(place, verified, wiring.gate())
        except TrustError as error:
            ERR.line(f"not served: {folder.name}: {error}", style="yellow")
            continue
        if missing := missing_volumes(place, verified):
            ERR.line(f"not served: {folder.name}: lacks {', '.join(missing)}", style="yellow")
            continue
        bundles.append(verified)
    if not bundles:
        raise StateError(
            f"{place.path}: no bundle that may be served is wholly imported",
            hint="Import one: airbundle import DIR --root ROOT --key KEY.pem",
        )
    say_ = (lambda line: None) if quiet else (lambda line: ERR.line(line))
    wiring.serve_shelf(make_shelf(place, bundles), host, port, say_)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (run, export, serve):
        app.command(rich_help_panel="Closed side")(command)
