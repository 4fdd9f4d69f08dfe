"""`airbundle copy`: a bundle onto the media that carry it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import wiring
from bundler.cli.console import progress, say, show_json, table
from bundler.cli.options import (
    BundleArgument,
    JsonOption,
    KeysOption,
    QuietOption,
    UnsignedOption,
    volume_key,
)
from bundler.cli.rehearsing import rehearsable
from bundler.domain.sizes import human

if TYPE_CHECKING:
    from bundler.build.copying import Copier
    from bundler.domain.shipping import ShippingList


def copy(
    folder: BundleArgument,
    to: Annotated[
        list[Path],
        typer.Option(
            "--to",
            help="Where a medium is mounted; several times for several media.",
            show_default=False,
            readable=False,
        ),
    ],
    part: Annotated[
        bool, typer.Option("--part", help="Fill these media; others follow in a later run.")
    ] = False,
    seal: Annotated[
        Path | None,
        typer.Option(
            "--seal",
            help="Encrypt the volumes on the media with this key (airbundle keygen --volumes).",
            show_default=False,
            readable=False,
        ),
    ] = None,
    key: KeysOption = None,
    unsigned: UnsignedOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Bring a bundle onto media: planned first, then written and read back from each medium.

    Rerun after an interruption, or with the next medium. The shipping list lies beside the bundle.
    """
    from bundler.build.copying import Copier
    from bundler.format.trust import open_manifest

    verified = open_manifest(folder, wiring.verifiers(key or []), allow_unsigned=unsigned)
    copier = Copier(
        source=folder,
        verified=verified,
        form=wiring.volume_format(),
        probe=wiring.medium_probe(),
        clock=wiring.clock(),
        progress=progress(quiet=quiet or json),
        seal=volume_key(seal),
    )
    if seal and not any(volume.open for volume in verified.manifest.volumes):
        copier.progress.note(
            "every volume is sealed, so the host must have airbundle already: a bundle that is built with"
            " volumes.sealable: true starts on a bare one"
        )
    shipped = copier.copy(to, part=part)
    if json:
        show_json(shipped.model_dump(mode="json"))
    else:
        _show(copier, shipped)


def _show(copier: Copier, shipped: ShippingList) -> None:
    rows = [
        (one.medium.line(), file.name, human(file.size), file.sha256)
        for one in shipped.media
        for file in one.volumes
    ]
    table("shipping list", ["medium", "volume", "#size", "sha256"], rows)
    say(f"written to {copier.list_file}")
    if shipped.to_come:
        say(f"still to come: {', '.join(shipped.to_come)}", "bold yellow")
    else:
        say(f"{shipped.bundle}: every volume was read back from its medium", "bold green")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Connected side")(rehearsable(copy))
