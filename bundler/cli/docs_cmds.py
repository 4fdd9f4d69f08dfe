"""`airbundle docs`: the documentation as files that any browser reads without network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bundler.cli.console import say, show_json
from bundler.cli.options import JsonOption
from bundler.cli.rehearsing import rehearsable
from bundler.domain.sizes import human
from bundler.errors import disk_errors


def docs(
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.", readable=False)] = Path(
        "airbundle-docs"
    ),
    json: JsonOption = False,
) -> None:
    """Write the documentation as HTML: a file for each page, and all.html to print.

    Open index.html (English) or index.ko.html (Korean). No script, no server, nothing is loaded.
    """
    from bundler.format.atomic import write_atomically
    from bundler.review.handbook.site import WHOLE, site
    from bundler.review.handbook.sources import read_pages

    files = site(read_pages())
    folder = out.absolute()
    with disk_errors("writing", folder):
        for name, data in files.items():
            write_atomically(folder / name, data)
    size = sum(map(len, files.values()))
    if json:
        show_json({"out": str(folder), "files": sorted(files), "bytes": size})
        return
    say(f"{len(files)} pages, {human(size)}")
    for name in ("index.html", "index.ko.html", WHOLE):
        if name in files:
            say(str(folder / name))


def whole_handbook() -> bytes:
    """Everything on one page, as it lies beside a bundle's volumes."""
    from bundler.review.handbook.site import whole
    from bundler.review.handbook.sources import read_pages

    return whole(read_pages())


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command(rich_help_panel="Start here")(rehearsable(docs))
