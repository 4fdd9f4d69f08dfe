"""`airbundle doctor`: one look at this host for its role."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import connecting, wiring
from bundler.cli.console import progress, say, show_json
from bundler.cli.options import CacheOption, JsonOption, RootOption, cache_folder, root_folder
from bundler.cli.rows import counts, show_rows
from bundler.errors import EXIT_FAIL, BundlerError

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.domain.host import Host, Row
    from bundler.domain.workplace import Role

_PYTHON = "3.12"


def doctor(
    role: Annotated[
        str | None,
        typer.Option("--role", metavar="connected|closed", show_default="found out",
                     help="connected: where bundles are built; closed: where they serve."),
    ] = None,
    root: RootOption = None,
    cache: CacheOption = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, max=600, help="Seconds that each server has to answer.")
    ] = 5,
    offline: Annotated[bool, typer.Option("--offline", help="Ask no server.")] = False,
    json: JsonOption = False,
) -> int:  # fmt: skip
    """Look at this host once: does it have what its role needs? Exit code 10 when something fails.

    Changes nothing. `preflight` compares a host with one bundle; this needs none.
    """
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    mine = _role(role, place)
    folder = cache_folder(cache) if mine == "connected" else place.path
    host = wiring.system_probe().host((folder,), _PYTHON)
    rows = _host_rows(mine, folder, host, place)
    if mine == "connected":
        rows += _connected_rows(folder, host, timeout, offline=offline)
    else:
        rows += _closed_rows(place, host)
    failed = any(row.state == "fail" for row in rows)
    if json:
        shown = [row.model_dump(mode="json") for row in rows]
        show_json({"role": mine, "ok": not failed, "counts": counts(rows), "rows": shown})
    else:
        show_rows(f"this host, {mine} side", rows)
        if role is None:
            say(f"looked at as the {mine} side; --role says otherwise")
    return EXIT_FAIL if failed else 0


def _role(given: str | None, place: Root) -> Role:
    """As given; else closed where something was imported, or where the connected half is not installed."""
    if given in ("connected", "closed"):
        return "connected" if given == "connected" else "closed"
    if given is not None:
        raise typer.BadParameter("--role is connected or closed")
    return "closed" if place.bundles() or find_spec("huggingface_hub") is None else "connected"


def _host_rows(role: Role, folder: Path, host: Host, place: Root) -> list[Row]:
    from bundler.deploy.doctor import device_rows, host_rows

    keys = sorted((place.path / "secrets").glob("*.key"))
    if role == "connected":
        here = Path()
        keys = sorted([*here.glob("*.key.pem"), *here.glob("*.volumes.key")])
    seen = wiring.workplace_probe().look((folder,), tuple(keys))
    devices = wiring.device_probe().devices()
    return [*host_rows(seen, host, role), *device_rows(devices, role)]


def _closed_rows(place: Root, host: Host) -> list[Row]:
    from bundler.deploy.rootstate import root_rows

    launcher = wiring.launcher(place, progress(quiet=True))
    return list(root_rows(place, launcher, wiring.gate(), host.now))


def _connected_rows(cache: Path, host: Host, timeout: float, *, offline: bool) -> list[Row]:
    from bundler.build.checkup import clock_row, hub_rows, index_rows, store_rows
    from bundler.build.storehealth import look_at_store
    from bundler.domain.host import Row

    rows = list(store_rows(look_at_store(cache)))
    if offline:
        return [*rows, Row(name="index and Hub", state="unknown", found="not asked (--offline)")]
    try:
        asked = connecting.reacher(connecting.reading_host()(), timeout)
        endpoint, token = connecting.hub_access()
    except BundlerError as error:
        return [
            *rows,
            Row(name="index and Hub", state="fail", found=str(error), fix=error.hint or ""),
        ]
    indexes = asked.indexes()
    hub = asked.ask("Hub", f"{endpoint}/api/models?limit=1")
    return [*rows, *index_rows(indexes), *hub_rows(hub, token=token),
            clock_row((*indexes, hub), wiring.wall_time())]  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Both sides")(doctor)
