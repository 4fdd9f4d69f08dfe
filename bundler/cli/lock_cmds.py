"""Command of the connected side: lock."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bundler import connecting
from bundler.cli.console import progress, say, show_json, table
from bundler.cli.options import (
    CacheOption,
    DryRunOption,
    JsonOption,
    QuietOption,
    SpecArgument,
    cache_folder,
)
from bundler.domain.sizes import human
from bundler.ports import Progress

if TYPE_CHECKING:
    from bundler.build.drift import Change, Drift
    from bundler.domain.lock import Lock
    from bundler.domain.spec import BundleSpec


def lock(
    spec: SpecArgument,
    update: Annotated[
        bool, typer.Option("--update", help="Resolve anew even if the lock belongs to the spec.")
    ] = False,
    dry_run: DryRunOption = False,
    file: Annotated[
        Path | None,
        typer.Option(
            "--lock", help="Lock file; beside the spec when left out.", show_default=False,
            readable=False,
        ),
    ] = None,
    cache: CacheOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:  # fmt: skip
    """Make the lock of a spec, or keep it; --update shows the drift package by package."""
    from bundler.build.drift import drift
    from bundler.build.filled import carried_over
    from bundler.build.lockfile import (
        default_lock,
        last_lock,
        read_lock,
        requirements_file,
        write_lock,
    )
    from bundler.build.specfile import load_spec

    wanted = load_spec(spec)
    path = file or default_lock(spec)
    last = last_lock(path)
    kept = None if update else read_lock(path, wanted)
    new = kept or _resolved(wanted, spec.parent, cache, progress(quiet=quiet or json))
    changed = None
    if last is not None and kept is None:
        new = carried_over(new, last)
        changed = drift(last, new)
    written = kept is None and not dry_run
    if written:
        write_lock(path, new)
    if json:
        show_json(_document(path, requirements_file(path), new, changed, written))
        return
    _show(path, new, changed, kept=kept is not None, written=written)


def _resolved(wanted: BundleSpec, base: Path, cache: Path | None, shown: Progress) -> Lock:
    from bundler.build.pipeline import make_lock
    from bundler.build.toolwheel import write_tool_wheel

    host = connecting.reading_host()
    tools = connecting.build_tools(wanted.engine, shown, cache_folder(cache), host)
    with tempfile.TemporaryDirectory(prefix="airbundle-tool-") as folder:
        wheel = write_tool_wheel(Path(folder))
        return make_lock(wanted, base, wheel, tools)


def _document(
    path: Path, requirements: Path, lock: Lock, changed: Drift | None, written: bool
) -> dict[str, Any]:
    return {
        "lock": str(path),
        "requirements": str(requirements),
        "written": written,
        "target": lock.target.model_dump(mode="json"),
        "engine": {"name": lock.engine_name, "version": lock.engine_version},
        "wheels": len(lock.engine_wheels),
        "bytes": sum(wheel.size or 0 for wheel in lock.engine_wheels),
        # None without an earlier lock, or when it was kept.
        "drift": changed.model_dump(mode="json") if changed is not None else None,
    }


def _show(path: Path, lock: Lock, changed: Drift | None, *, kept: bool, written: bool) -> None:
    target = lock.target
    size = human(sum(wheel.size or 0 for wheel in lock.engine_wheels))
    say(
        f"{lock.engine_name} {lock.engine_version} for {target.os} {target.arch}, CPython"
        f" {target.python}, glibc {target.glibc}: {len(lock.engine_wheels)} wheels, {size}",
        "bold",
    )
    if kept:
        say(f"{path}: belongs to the spec, kept as it is; --update resolves anew")
        return
    if changed is None:
        say("no lock before: nothing to compare with")
    elif not changed:
        say("no drift: every file is the one of the last lock")
    else:
        table(
            "drift",
            ["part", "name", "what", "last", "new", "#size"],
            list(map(_row, changed.changes)),
        )
        say(f"{len(changed.changes)} change(s); {_grown(changed.old_bytes, changed.new_bytes)}")
    say(f"{path}: written" if written else f"{path}: not written (--dry-run)")


def _row(change: Change) -> tuple[str, ...]:
    old = human(change.old_bytes) if change.old_bytes is not None else ""
    new = human(change.new_bytes) if change.new_bytes is not None else ""
    size = new if old == new or not old else old if not new else f"{old} -> {new}"
    return (change.part, change.name, change.what, change.old, change.new, size)


def _grown(old: int, new: int) -> str:
    return f"{human(old)} -> {human(new)} in all"


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command(rich_help_panel="Connected side")(lock)
