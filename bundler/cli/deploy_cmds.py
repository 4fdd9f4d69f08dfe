"""Commands of the closed side: verify, import, install, start, stop, status, logs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bundler import wiring
from bundler.cli.console import progress, say, show_json, table
from bundler.cli.options import (
    JsonOption,
    KeysOption,
    QuietOption,
    RootOption,
    UnsignedOption,
    root_folder,
)
from bundler.domain.sizes import human
from bundler.errors import IntegrityError, MissingVolumeError, StateError, disk_errors

if TYPE_CHECKING:
    from bundler.domain.manifest import VerifiedManifest


def _who(verified: VerifiedManifest) -> str:
    return (
        f"signed by key {verified.key_id}" if verified.signed else "UNSIGNED (policy: --unsigned)"
    )


def verify(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Folder with the bundle.", show_default=False, readable=False),
    ] = None,
    key: KeysOption = None,
    unsigned: UnsignedOption = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Check what is imported below --root for drift, by xxh3."),
    ] = False,
    root: RootOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check the signature, then every byte of every file; name what is wrong."""
    from bundler.deploy.verify import verify as verify_bundle

    if quick:
        _verify_quick(root_folder(root), json=json, quiet=quiet)
        return
    if folder is None:
        raise typer.BadParameter("name the folder with the bundle, or give --quick with --root")
    result = verify_bundle(
        folder,
        verifiers=wiring.verifiers(key or []),
        form=wiring.volume_format(),
        progress=progress(quiet=quiet or json),
        allow_unsigned=unsigned,
    )
    result.raise_if_bad()
    verified = result.verified
    manifest = verified.manifest
    if json:
        show_json(
            {
                "ok": True,
                "bundle_id": verified.bundle_id,
                "manifest_sha256": verified.digest,
                "key_id": verified.key_id,
                "volumes": len(manifest.volumes),
                "entries": len(manifest.entries),
                "bytes": manifest.size,
                "not_part_of_the_bundle": list(result.strangers),
            }
        )
        return
    for name in result.strangers:
        say(f"note: {name} is not part of the bundle", "yellow")
    say(
        f"OK: {verified.bundle_id}, {_who(verified)}, {len(manifest.volumes)} volume(s),"
        f" {len(manifest.entries)} files, {human(manifest.size)}",
        "bold green" if verified.signed else "bold yellow",
    )


def _verify_quick(place: Path, *, json: bool, quiet: bool) -> None:
    from bundler.deploy.install import open_imported
    from bundler.deploy.quick import quick_check
    from bundler.deploy.root import Root

    root = Root(place)
    answers = []
    for bundle in root.bundles() or [root.pick_bundle(None)]:
        verified = open_imported(root, bundle.name, wiring.verifier)
        found = quick_check(root, verified, progress(quiet=quiet or json))
        found.raise_if_bad(root)
        answers.append({"bundle_id": verified.bundle_id, "bytes": found.checked})
        if not json:
            say(f"OK: {verified.bundle_id}, {human(found.checked)} without drift", "bold green")
    if json:
        show_json({"ok": True, "bundles": answers})


def import_(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders (sticks) with volumes.", show_default=False, readable=False),
    ],
    root: RootOption = None,
    key: KeysOption = None,
    unsigned: UnsignedOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Bring volumes into the root's store: any order, one stick at a time, rerun at will."""
    from bundler.deploy.importing import import_bundle
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    result = import_bundle(
        folders,
        root=place,
        verifiers=wiring.verifiers(key or []),
        form=wiring.volume_format(),
        progress=progress(quiet=quiet or json),
        allow_unsigned=unsigned,
    )
    if result.findings:
        lines = [finding.line() for finding in result.findings]
        raise IntegrityError(
            f"{lines[0]} ({len(lines)} damaged part(s); all others are imported)",
            hint="Copy the named volumes again and import them; only the damaged parts are read.",
            details=lines,
        )
    if result.missing_volumes:
        raise MissingVolumeError(
            f"{result.verified.bundle_id}: still to come: {', '.join(result.missing_volumes)}"
        )
    if json:
        show_json(
            {
                "bundle_id": result.verified.bundle_id,
                "manifest_sha256": result.verified.digest,
                "key_id": result.verified.key_id,
                "complete": True,
            }
        )
        return
    say(f"imported {result.verified.bundle_id}, {_who(result.verified)}", "bold green")


def install(
    bundle: Annotated[
        str | None, typer.Argument(help="Bundle id; the newest when left out.", show_default=False)
    ] = None,
    root: RootOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Install an imported bundle into a release of its own and make it current."""
    from bundler.deploy.install import Installer, open_imported
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    verified = open_imported(place, bundle, wiring.verifier)
    installer = Installer(
        root=place,
        uv=wiring.uv_program(),
        runner=wiring.runner(),
        clock=wiring.clock(),
        progress=progress(quiet=quiet or json),
    )
    record = installer.install(verified)
    if json:
        show_json(
            record.model_dump(mode="json") | {"release": str(place.release(record.bundle_id))}
        )
        return
    say(f"installed {record.bundle_id}, {_who(verified)}", "bold green")


def start(
    root: RootOption = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds until a service must be healthy.")
    ] = 900,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Start the current release's services; ready means that a real completion came back."""
    from bundler.deploy.install import current_release
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    folder, record = current_release(place)
    launcher = wiring.launcher(place, progress(quiet=quiet or json))
    states = launcher.start(folder, record, timeout_s=timeout)
    if json:
        show_json([state.model_dump(mode="json") for state in states])
        return
    for state in states:
        say(f"{state.service}: ready after {state.ready_after_s} s at {state.url}", "bold green")


def stop(root: RootOption = None, json: JsonOption = False) -> None:
    """Stop every service: gently, then firmly, with nothing left behind."""
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    if not place.path.is_dir():
        raise StateError(f"{place.path}: no such folder", hint="Nothing was imported there yet.")
    launcher = wiring.launcher(place, progress(quiet=True))
    stopped = []
    for state in launcher.states():
        launcher.stop(state)
        stopped.append(state.service)
    if json:
        show_json({"stopped": stopped})
        return
    say(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")


def status(root: RootOption = None, json: JsonOption = False) -> None:
    """Show imported bundles, releases and running services."""
    from bundler.deploy.importing import missing_volumes
    from bundler.deploy.install import open_imported, read_release
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    if not place.path.is_dir():
        raise StateError(f"{place.path}: no such folder", hint="Nothing was imported there yet.")
    launcher = wiring.launcher(place, progress(quiet=True))
    current = place.current.resolve().name if place.current.is_symlink() else ""
    bundles: list[dict[str, Any]] = []
    for folder in place.bundles():
        verified = open_imported(place, folder.name, wiring.verifier)
        installed = read_release(place.release(folder.name)) is not None
        bundles.append(
            {
                "bundle_id": folder.name,
                "key_id": verified.key_id,
                "missing_volumes": list(missing_volumes(place, verified)),
                "installed": installed,
                "current": installed and folder.name == current,
            }
        )
    services = [
        {
            "service": state.service,
            "bundle_id": state.bundle_id,
            "pid": state.pid,
            "url": state.url,
            "state": _service_state(launcher.alive(state), state.ready_after_s),
        }
        for state in launcher.states()
    ]
    if json:
        show_json({"root": str(place.path), "bundles": bundles, "services": services})
        return
    table(
        "bundles",
        ["id", "signed by", "import", "release"],
        [
            [
                str(b["bundle_id"]),
                str(b["key_id"] or "UNSIGNED"),
                f"{len(b['missing_volumes'])} volume(s) missing"
                if b["missing_volumes"]
                else "complete",
                "current" if b["current"] else "installed" if b["installed"] else "-",
            ]
            for b in bundles
        ],
    )
    table(
        "services",
        ["name", "state", "#pid", "address"],
        [[str(s["service"]), str(s["state"]), str(s["pid"]), str(s["url"])] for s in services],
    )


def _service_state(alive: bool, ready_after_s: float | None) -> str:
    if not alive:
        return "died"
    return "ready" if ready_after_s is not None else "starting"


def logs(
    service: Annotated[
        str | None, typer.Argument(help="Service; all when left out.", show_default=False)
    ] = None,
    root: RootOption = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as the log grows.")] = False,
) -> None:
    """Show what the engines said."""
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    paths = [place.log(service)] if service else sorted(place.path.glob("logs/*.log"))
    paths = [path for path in paths if path.is_file()]
    if not paths:
        raise StateError(f"{place.path}: no log of {service or 'any service'}")
    for path in paths:
        if len(paths) > 1:
            say(f"== {path.stem}", "bold")
        with disk_errors("reading", path):
            for line in _tail(path, lines):
                say(line)
    if follow:
        _follow(paths[-1])


# Of a log without line ends, as some engines write progress bars, this much is shown.
_TAIL_BYTES = 4 * 2**20


def _tail(path: Path, count: int) -> list[str]:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    return [line[-4000:] for line in text.splitlines()[-count:]]


def _follow(path: Path) -> None:
    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(0, 2)
        while True:
            line = file.readline()
            if line:
                say(line.rstrip("\n"))
            else:
                time.sleep(0.3)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    panel = "Closed side"
    for name, command in (
        ("verify", verify),
        ("import", import_),
        ("install", install),
        ("start", start),
        ("stop", stop),
        ("status", status),
        ("logs", logs),
    ):
        app.command(name, rich_help_panel=panel)(command)
