"""Commands for other programs and hosts: run, export, serve."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated, Literal

import typer

from bundler import wiring
from bundler.cli.auditing import recorded
from bundler.cli.changed import changed_json, say_changed
from bundler.cli.completing import services
from bundler.cli.console import progress, say, show_json
from bundler.cli.options import JsonOption, QuietOption, RootOption, root_folder
from bundler.cli.rehearsing import rehearsable
from bundler.cli.streams import ERR
from bundler.errors import StateError, TrustError


def run(
    service: Annotated[
        str, typer.Argument(help="Service of the current release.", autocompletion=services)
    ],
    root: RootOption = None,
    to_log: Annotated[
        bool, typer.Option("--to-log", help="Write the engine's output to the root's log.")
    ] = False,
    any_gpu: Annotated[
        bool,
        typer.Option("--any-gpu", help="Take the GPUs that are given, not those of the spec."),
    ] = False,
    over: Annotated[
        Literal["native", "ray", "ray-node"] | None,
        typer.Option(
            "--over", help="One of several nodes: how they meet, and as what (see export)."
        ),
    ] = None,
    node: Annotated[
        int, typer.Option("--node", min=0, help="Which of the nodes this is; 0 is the head.")
    ] = 0,
    head: Annotated[str, typer.Option("--head", help="Address of the head.")] = "",
    head_port: Annotated[
        int | None,
        typer.Option("--head-port", min=1, max=65535, help="Where it waits for the others."),
    ] = None,
) -> None:
    """Become the engine of one service, for systemd or a container: same settings, caches and key as `start`."""
    from bundler.deploy.foreground import find_seat, run_here
    from bundler.deploy.multinode import PORTS
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_imported

    place = Root(root_folder(root))
    folder, record = current_release(place)
    launcher = wiring.launcher(place, progress(quiet=True))
    with recorded(place, "run", changes=False) as action:
        action.detail = f"{service} ({record.release_id})" if record.variant else service
        # What was revoked since it was installed does not start again.
        action.about(open_imported(place, record.bundle_id, wiring.gate()))
    seat = None
    if over is not None:
        port = head_port or PORTS["native" if over == "native" else "ray"]
        seat = find_seat(launcher.runner, over, node, head, port)
    run_here(launcher, folder, record, service, to_log=to_log, any_gpu=any_gpu, seat=seat)


def export(
    form: Annotated[
        Literal["systemd", "ansible", "k8s", "multinode", "ray"],
        typer.Option(
            "--format", help="What to write; multinode: vLLM's own way over several hosts."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.")],
    root: RootOption = None,
    user_manager: Annotated[
        bool, typer.Option("--user", help="systemd: for `systemctl --user`, not the system.")
    ] = False,
    run_as: Annotated[
        str | None,
        typer.Option("--run-as", help="systemd: user of the units; the current one when left out."),
    ] = None,
    image: Annotated[
        str | None, typer.Option("--image", help="k8s: a glibc image that the cluster can have.")
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", help="k8s: where the objects go.")
    ] = "default",
    over: Annotated[
        Literal["native", "ray"],
        typer.Option("--over", help="k8s: how the nodes of a service meet that spans several."),
    ] = "native",
    json: JsonOption = False,
) -> None:
    """Write the current release for another tool: systemd, Ansible (many hosts), Kubernetes, vLLM over several nodes.

    What an operator fills in (environment files, inventory, variables) is not overwritten when it is there.
    """
    from bundler.deploy import exporting
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    _, record = current_release(place)
    if not record.services:
        raise StateError(f"{record.bundle_id}: holds an engine and no model to serve")
    if form == "ansible":
        made = exporting.ansible(place, record, out.absolute())
    elif form == "k8s":
        if not image:
            raise typer.BadParameter("--format k8s needs --image")
        made = exporting.k8s(
            place, record, out.absolute(), image=image, namespace=namespace, way=over
        )
    elif form in ("multinode", "ray"):
        engine = wiring.ENGINES[record.engine_name]()
        way: Literal["native", "ray"] = "ray" if form == "ray" else "native"
        made = exporting.multinode(place, record, out.absolute(), engine, way)
    else:
        user = run_as or getpass.getuser()
        made = exporting.systemd(place, record, out.absolute(), user=user, own=user_manager)
    for path, text in made.files.items():
        place.write(path, text.encode())
    if json:
        changed = changed_json(place, record)
        show_json({"format": form, "files": list(map(str, made.files)), "changed": changed})
        return
    for path in made.files:
        say(str(path))
    say(made.then)
    say_changed(place, record)


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
    for command in (run, rehearsable(export), serve):
        app.command(rich_help_panel="Closed side")(command)
