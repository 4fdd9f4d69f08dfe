"""`airbundle repair`: lost and damaged volumes, from the others and from parity."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundler import wiring
from bundler.cli.console import progress, say, show_json
from bundler.cli.options import (
    JsonOption,
    KeysOption,
    QuietOption,
    UnsignedOption,
    VolumeKeyOption,
    volume_key,
)
from bundler.cli.rehearsing import rehearsable


def repair(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders (sticks) with volumes.", show_default=False, readable=False),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            help="Where to write the rebuilt volumes; nothing else is changed.",
            show_default=False,
            readable=False,
        ),
    ],
    key: KeysOption = None,
    unsigned: UnsignedOption = False,
    sealed_with: VolumeKeyOption = None,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            help="Also use what was imported there: sticks that have gone back are not needed again.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Rebuild lost and damaged volumes from the others and from parity, into another folder."""
    from bundler.deploy.repair import Repairer
    from bundler.deploy.root import Root
    from bundler.deploy.storedvolume import stored_volumes
    from bundler.format.places import find_volumes
    from bundler.format.trust import open_manifest

    first = next((one for one in folders if (one / "manifest.json").is_file()), folders[0])
    verified = open_manifest(first, wiring.verifiers(key or []), allow_unsigned=unsigned)
    places = find_volumes(verified.manifest, folders, volume_key(sealed_with))
    if root is not None:
        # What lies in the folders may be damaged; what is in the store was right when it came in.
        places = {**places, **stored_volumes(Root(root), verified.manifest, wiring.volume_format())}
    repairer = Repairer(
        manifest=verified.manifest,
        places=places,
        form=wiring.volume_format(),
        progress=progress(quiet=quiet or json),
    )
    rebuilt = repairer.repair(out)
    if json:
        show_json({"bundle_id": verified.bundle_id, "rebuilt": list(rebuilt), "out": str(out)})
    elif rebuilt:
        say(f"{out}: rebuilt {', '.join(rebuilt)}", "bold green")
        say("Copy them over the damaged ones, or import this folder beside the others.")
    else:
        say(f"{verified.bundle_id}: nothing is lost or damaged", "bold green")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Closed side")(rehearsable(repair))
