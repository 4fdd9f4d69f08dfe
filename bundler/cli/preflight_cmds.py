"""`airbundle preflight`: whether this host has what a bundle needs, before anything is installed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import wiring
from bundler.cli.completing import bundles
from bundler.cli.console import progress, show_json
from bundler.cli.options import (
    JsonOption,
    KeysOption,
    RootOption,
    UnsignedOption,
    root_folder,
)
from bundler.cli.rows import show_rows
from bundler.errors import EXIT_FAIL

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.domain.manifest import VerifiedManifest


def preflight(
    bundle: Annotated[
        str | None, typer.Argument(help="Bundle id; the newest when left out.", show_default=False, autocompletion=bundles)
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir", help="A bundle that is not imported yet (a stick).", show_default=False,
            readable=False,
        ),
    ] = None,
    root: RootOption = None,
    key: KeysOption = None,
    unsigned: UnsignedOption = False,
    json: JsonOption = False,
) -> int:  # fmt: skip
    """Compare this host with what a bundle needs. Exit code 10 when something fails.

    Needs no root. What cannot be read is "could not check", never "ok".
    """
    from bundler.deploy.importing import bytes_to_come
    from bundler.deploy.preflight import Case
    from bundler.deploy.preflight import preflight as judge
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    verified = _verified(place, bundle, folder, key or [], unsigned=unsigned)
    manifest = verified.manifest
    places = (place.path, Path(tempfile.gettempdir()))
    rows = judge(
        Case(
            manifest=manifest,
            host=wiring.system_probe().host(places, manifest.target.python),
            devices=wiring.device_probe().devices(),
            bytes_to_come=bytes_to_come(place, manifest),
            own_ports=_own_ports(place),
        )
    )
    failed = [row for row in rows if row.state == "fail"]
    if json:
        show_json(
            {
                "bundle_id": verified.bundle_id,
                "ok": not failed,
                "rows": [row.model_dump(mode="json") for row in rows],
            }
        )
    else:
        show_rows(f"{verified.bundle_id} on this host", rows)
    return EXIT_FAIL if failed else 0


def _own_ports(place: Root) -> frozenset[int]:
    """Ports of services that run from this root."""
    if not any(place.states()):
        return frozenset()
    launcher = wiring.launcher(place, progress(quiet=True))
    return frozenset(state.port for state in launcher.states() if launcher.alive(state))


def _verified(
    place: Root, bundle: str | None, folder: Path | None, keys: list[Path], *,
    unsigned: bool,
) -> VerifiedManifest:  # fmt: skip
    from bundler.deploy.trustroot import open_record

    if folder is None:
        return open_record(place, bundle, wiring.gate())
    trust = wiring.gate().site(place, keys=wiring.verifiers(keys), unsigned=unsigned)
    return trust.open(folder)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Closed side")(preflight)
