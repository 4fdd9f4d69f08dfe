"""Commands of the connected side: plan, build, inspect, keygen, schema."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from bundler import wiring
from bundler.cli.console import progress, say, show_json, table
from bundler.cli.options import (
    BundleArgument,
    CacheOption,
    JsonOption,
    QuietOption,
    SpecArgument,
    cache_folder,
)
from bundler.domain.lock import Lock, LockedWheel
from bundler.domain.sizes import human
from bundler.errors import KeyFileError


def plan(
    spec: SpecArgument,
    engine_only: Annotated[
        bool, typer.Option("--engine-only", help="Resolve the engine's wheels alone.")
    ] = False,
    lock: Annotated[
        Path | None,
        typer.Option("--lock", help="Write the lock to this file as well.", readable=False),
    ] = None,
    cache: CacheOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Resolve a spec and show what a bundle would hold."""
    from bundler.build.pipeline import make_lock, planned_volumes, write_lock
    from bundler.build.specfile import load_spec
    from bundler.build.toolwheel import write_tool_wheel

    wanted = load_spec(spec)
    shown = progress(quiet=quiet or json)
    tools = wiring.build_tools(wanted.engine.name, shown, wanted.engine.resolver)
    with tempfile.TemporaryDirectory(prefix="airbundle-tool-") as folder:
        wheel = write_tool_wheel(Path(folder))
        resolved = make_lock(
            wanted, spec.parent, wheel, tools, engine_only=engine_only, cache=cache_folder(cache)
        )
    if lock is not None:
        write_lock(lock, resolved)
    volumes = planned_volumes(wanted, resolved, tools.form)
    summary = _summary(resolved, volumes, wanted.volumes.limit)
    if json:
        show_json(summary)
    else:
        _show_plan(wanted.name, resolved, summary)


def _wheels(wheels: tuple[LockedWheel, ...]) -> dict[str, Any]:
    return {
        "count": len(wheels),
        "bytes": sum(wheel.size or 0 for wheel in wheels),
        "unknown_sizes": sum(wheel.size is None for wheel in wheels),
        "sdists": 0,
        "wheels": [
            {"name": w.name, "version": w.version, "filename": w.filename, "bytes": w.size}
            for w in wheels
        ],
    }


def _summary(lock: Lock, volumes: list[int], limit: int) -> dict[str, Any]:
    return {
        "target": lock.target.model_dump(mode="json"),
        "engine": {"name": lock.engine_name, "version": lock.engine_version}
        | _wheels(lock.engine_wheels),
        "tool": {"version": lock.airbundle_version} | _wheels(lock.tool_wheels),
        "models": [
            {
                "name": model.name,
                "origin": model.origin,
                "revision": model.revision,
                "files": len(model.files),
                "bytes": model.size,
                "licence": model.licence,
            }
            for model in lock.models
        ],
        "files": [extra.model_dump(mode="json") for extra in lock.extras],
        "volumes": {"count": len(volumes), "bytes": sum(volumes), "limit": limit},
    }


def _show_plan(name: str, lock: Lock, summary: dict[str, Any]) -> None:
    target = lock.target
    say(f"{name}: {target.os} {target.arch}, CPython {target.python}, glibc {target.glibc}", "bold")
    rows = [
        (
            "engine",
            f"{lock.engine_name} {lock.engine_version}",
            f"{summary['engine']['count']} wheels",
            human(summary["engine"]["bytes"]),
        )
    ]
    if lock.tool_wheels:
        rows.append(
            (
                "tool",
                f"airbundle {lock.airbundle_version}",
                f"{summary['tool']['count']} wheels",
                human(summary["tool"]["bytes"]),
            )
        )
    for model in lock.models:
        pinned = f"{model.origin}@{model.revision}" if model.revision else model.origin
        rows.append(("model", pinned, f"{len(model.files)} files", human(model.size)))
    for extra in lock.extras:
        size = human(extra.size) if extra.size is not None else "?"
        rows.append((extra.role, extra.filename, "1 file", size))
    table("", ["what", "which", "#count", "#size"], rows)
    volumes = summary["volumes"]
    say(
        f"{volumes['count']} volume(s) of at most {human(volumes['limit'])},"
        f" {human(volumes['bytes'])} in all; no sdist in the closure",
        "bold",
    )


def build(
    spec: SpecArgument,
    out: Annotated[
        Path, typer.Option("--out", help="Folder to make.", show_default=False, readable=False)
    ],
    key: Annotated[
        Path | None, typer.Option("--key", help="Private key to sign with (PEM).", readable=False)
    ] = None,
    unsigned: Annotated[
        bool, typer.Option("--unsigned", help="Build without a signature.")
    ] = False,
    lock: Annotated[
        Path | None,
        typer.Option(
            "--lock", help="Lock file; beside the spec when left out.", show_default=False
        ),
    ] = None,
    relock: Annotated[
        bool, typer.Option("--relock", help="Resolve anew and replace the lock.")
    ] = False,
    cache: CacheOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a bundle: lock, fetch, pack into volumes, sign."""
    from bundler.build.pipeline import build as build_bundle
    from bundler.build.pipeline import make_lock, read_lock, write_lock
    from bundler.build.specfile import load_spec
    from bundler.build.toolwheel import write_tool_wheel

    if key is None and not unsigned:
        raise KeyFileError(
            "a bundle is signed: no --key was given",
            hint="`airbundle keygen` makes a pair of keys; --unsigned builds without.",
        )
    wanted = load_spec(spec)
    signer = wiring.signer(key) if key else None
    shown = progress(quiet=quiet)
    tools = wiring.build_tools(wanted.engine.name, shown, wanted.engine.resolver)
    lock_path = lock or spec.with_suffix(".lock.json")
    with tempfile.TemporaryDirectory(prefix="airbundle-tool-") as folder:
        wheel = write_tool_wheel(Path(folder))
        resolved = None if relock else read_lock(lock_path, wanted)
        if resolved is None:
            resolved = make_lock(wanted, spec.parent, wheel, tools, cache=cache_folder(cache))
            write_lock(lock_path, resolved)
        else:
            shown.note(f"using the lock {lock_path}")
        built = build_bundle(
            spec=wanted,
            lock=resolved,
            base=spec.parent,
            out=out.absolute(),
            cache=cache_folder(cache),
            tool_wheel=wheel,
            signer=signer,
            tools=tools,
        )
    manifest = built.manifest
    if json:
        show_json(
            {
                "out": str(out),
                "manifest_sha256": built.manifest_sha256,
                "bundle_id": f"{manifest.name}-{built.manifest_sha256[:12]}",
                "key_id": built.key_id,
                "lock": str(lock_path),
                "volumes": [volume.model_dump(mode="json") for volume in manifest.volumes],
            }
        )
        return
    size = human(sum(volume.size for volume in manifest.volumes))
    say(f"{out}: {len(manifest.volumes)} volume(s), {size}", "bold")
    say(f"manifest sha256 {built.manifest_sha256}")
    say(
        f"signed by key {built.key_id}" if built.key_id else "NOT SIGNED", "" if key else "bold red"
    )


def inspect(
    folder: BundleArgument,
    json: JsonOption = False,
) -> None:
    """Show what a bundle says it holds. Checks no signature and no bytes: that is `verify`."""
    from bundler.review.inspection import inspect_bundle

    seen = inspect_bundle(folder)
    if json:
        show_json(seen)
        return
    say(f"{seen['name']}  (manifest sha256 {seen['manifest_sha256']})", "bold")
    say("not verified: `airbundle verify` checks the signature and every byte", "yellow")
    for label in ("description", "created", "target", "engine", "tool", "signature"):
        if seen[label]:
            say(f"{label:<12} {seen[label]}")
    table("models", ["name", "origin", "licence", "#size"], seen["models"])
    table("contents", ["kind", "#files", "#size"], seen["kinds"])
    table("volumes", ["name", "#size", "sha256"], seen["volumes"])


def keygen(
    out: Annotated[
        Path,
        typer.Option("--out", help="Where to write NAME.key.pem and NAME.pub.pem.", readable=False),
    ] = Path("airbundle"),
    json: JsonOption = False,
) -> None:
    """Make a pair of Ed25519 keys: one to sign with, one to give away."""
    private, public = (out.with_name(f"{out.name}.{kind}.pem") for kind in ("key", "pub"))
    key_id = wiring.generate_keys(private, public)
    if json:
        show_json({"private": str(private), "public": str(public), "key_id": key_id})
        return
    say(f"{private}: keep it secret; it signs bundles")
    say(f"{public}: carry it to the closed side by another way than the bundle")
    say(f"key id {key_id}", "bold")


def schema() -> None:
    """Print the spec's JSON Schema, for editors."""
    from bundler.domain.spec import BundleSpec

    document = BundleSpec.model_json_schema()
    show_json({"$schema": "https://json-schema.org/draft/2020-12/schema"} | document)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    panel = "Connected side"
    for command in (plan, build, inspect, keygen, schema):
        app.command(rich_help_panel=panel)(command)
