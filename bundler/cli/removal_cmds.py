"""Commands that remove: uninstall, gc."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bundler import wiring
from bundler.cli.auditing import recorded
from bundler.cli.completing import releases
from bundler.cli.console import progress, say, show_json, table
from bundler.cli.options import JsonOption, RootOption, root_folder
from bundler.cli.rehearsing import rehearsable
from bundler.domain.sizes import human
from bundler.errors import StateError
from bundler.format.rehearsal import rehearsing

if TYPE_CHECKING:
    from pathlib import Path

    from bundler.deploy.root import Root


def uninstall(
    bundle: Annotated[
        str,
        typer.Argument(
            help="Bundle id, or its beginning.", show_default=False, autocompletion=releases
        ),
    ],
    root: RootOption = None,
    purge: Annotated[
        bool,
        typer.Option(
            "--purge", help="Forget the import too, so that `gc` can free its stored files."
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also the release in use (not one that runs).")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Remove an installed release; what was imported stays unless --purge is given."""
    from bundler.deploy.removing import Remover

    place = _existing(root)
    with recorded(place, "uninstall --purge" if purge else "uninstall") as action:
        action.detail = bundle
        remover = Remover(place, wiring.launcher(place, progress(quiet=True)))
        done = remover.uninstall(bundle, purge=purge, force=force)
        action.detail = done.bundle_id
    if json:
        show_json(
            {
                "bundle_id": done.bundle_id,
                "freed_bytes": done.freed,
                "release_removed": done.release,
                "import_forgotten": done.records,
            }
        )
        return
    if done.release:
        say(f"removed release {done.bundle_id}: {human(done.freed)} freed", "bold green")
    if done.records:
        say(f"forgot the import of {done.bundle_id}; `airbundle gc` frees its stored files")


def gc(
    root: RootOption = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Remove it; without this it is only shown.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show what nothing needs any more, and with --yes remove it.

    Sizes are what the disk gives back: a file that a release still holds by a hard link gives nothing.
    """
    from bundler.deploy.garbage import Collector

    place = _existing(root)
    with place.alone(), place.without_bootstrap():
        collector = Collector(place, wiring.launcher(place, progress(quiet=True)), wiring.gate())
        found = collector.find()
        if yes or rehearsing():
            with recorded(place, "gc --yes") as action:
                action.detail = f"{len(found)} found"
                collector.remove(found)
    total = sum(one.size for one in found)
    if json:
        show_json(
            {
                "removed": yes,
                "bytes": total,
                "found": [
                    {"path": str(one.path), "kind": one.kind, "why": one.why, "bytes": one.size}
                    for one in found
                ],
            }
        )
        return
    if not found:
        say(f"{place.path}: nothing to free")
        return
    table(
        "garbage",
        ["what", "why", "#frees", "path"],
        [[one.kind, one.why, human(one.size), _short(place, one.path)] for one in found],
    )
    if yes:
        say(f"freed {human(total)}", "bold green")
    else:
        say(f"would free {human(total)}; nothing was removed. To remove it: airbundle gc --yes")


def _existing(root: Path | None) -> Root:
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    if not place.path.is_dir():
        raise StateError(f"{place.path}: no such folder", hint="Nothing was imported there yet.")
    return place


def _short(root: Root, path: Path) -> str:
    return path.relative_to(root.path).as_posix()


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (uninstall, gc):
        app.command(rich_help_panel="Closed side")(rehearsable(command))
