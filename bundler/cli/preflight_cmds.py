"""`airbundle preflight`: whether this host has what a bundle needs, before anything is installed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import wiring
from bundler.cli.console import progress, say, show_json, table
from bundler.cli.options import (
    JsonOption,
    KeysOption,
    RootOption,
    UnsignedOption,
    root_folder,
)
from bundler.cli.streams import OUT
from bundler.errors import EXIT_FAIL

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.domain.host import Row
    from bundler.domain.manifest import VerifiedManifest

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red", "unknown": "cyan"}
_WORDS = {"ok": "ok", "warn": "warn", "fail": "FAIL", "unknown": "could not check"}


def preflight(
    bundle: Annotated[
        str | None, typer.Argument(help="Bundle id; the newest when left out.", show_default=False)
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
        _show(verified, rows)
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


def _show(verified: VerifiedManifest, rows: tuple[Row, ...]) -> None:
    table(
        f"{verified.bundle_id} on this host",
        ["what", "state", "found", "wanted"],
        [[row.name, _WORDS[row.state], row.found, row.wanted] for row in rows],
    )
    for row in rows:
        if row.state in ("fail", "warn") and row.fix:
            say(f"{OUT.word(row.name)}: {row.fix}", _STYLES[row.state])
    count = {state: sum(row.state == state for row in rows) for state in _STYLES}
    say(
        f"{count['ok']} ok, {count['warn']} to look at, {count['fail']} in the way,"
        f" {count['unknown']} could not be checked",
        "bold red" if count["fail"] else "bold green",
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Closed side")(preflight)
