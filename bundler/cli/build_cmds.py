"""Commands of the connected side: build, inspect, keygen, schema."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bundler import connecting, wiring
from bundler.cli.console import progress, say, show_json, table
from bundler.cli.docs_cmds import whole_handbook
from bundler.cli.options import (
    BundleArgument,
    CacheOption,
    JsonOption,
    QuietOption,
    SpecArgument,
    cache_folder,
)
from bundler.cli.rehearsing import rehearsable
from bundler.domain.sizes import human
from bundler.errors import HostError, KeyFileError

if TYPE_CHECKING:
    from bundler.build.tools import BuildTools
    from bundler.ports import Advisories, Signer


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
    engine_only: Annotated[
        bool,
        typer.Option("--engine-only", help="Leave models and files out: an engine to bring after."),
    ] = False,
    relock: Annotated[
        bool, typer.Option("--relock", help="Resolve anew and replace the lock.")
    ] = False,
    base: Annotated[
        Path | None,
        typer.Option(
            "--base",
            help="A bundle (folder or manifest.json) that the site has: carry only what it lacks.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    cache: CacheOption = None,
    advisories: Annotated[
        bool,
        typer.Option(
            "--advisories/--no-advisories",
            help="Ask the package index for known vulnerabilities, for review/.",
        ),
    ] = True,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a bundle: lock, fetch, pack into volumes, sign."""
    from bundler.build.lockfile import default_lock, read_lock, write_lock
    from bundler.build.pipeline import build as build_bundle
    from bundler.build.pipeline import foresee, make_lock
    from bundler.build.specfile import load_spec
    from bundler.build.toolwheel import write_tool_wheel
    from bundler.format.rehearsal import in_earnest, rehearsing
    from bundler.review.reading import read_manifest

    if key is None and not unsigned:
        raise KeyFileError(
            "a bundle is signed: no --key was given",
            hint="`airbundle keygen` makes a pair of keys; --unsigned builds without.",
        )
    host = connecting.reading_host()
    wanted = load_spec(spec)
    before = read_manifest(base)[1] if base else None
    signer = wiring.signer(key) if key else None
    shown = progress(quiet=quiet)
    tools = connecting.build_tools(wanted.engine, shown, cache_folder(cache), host)
    lock_path = lock or default_lock(spec, engine_only=engine_only)
    with tempfile.TemporaryDirectory(prefix="airbundle-tool-") as folder:
        wheel = write_tool_wheel(Path(folder))
        resolved = None if relock else read_lock(lock_path, wanted, engine_only=engine_only)
        if resolved is None:
            with in_earnest():
                resolved = make_lock(wanted, spec.parent, wheel, tools, engine_only=engine_only)
            write_lock(lock_path, resolved)
        else:
            shown.note(f"using the lock {lock_path}")
        if rehearsing():
            foresee(
                spec=wanted, lock=resolved, base=spec.parent, out=out.absolute(),
                tool_wheel=wheel, tools=tools, signed=signer is not None,
            )  # fmt: skip
            return
        built = build_bundle(
            spec=wanted,
            lock=resolved,
            base=spec.parent,
            out=out.absolute(),
            tool_wheel=wheel,
            signer=signer,
            tools=tools,
            base_manifest=before,
            handbook=whole_handbook(),
        )
    # Digests and licences are known now.
    write_lock(lock_path, built.lock)
    manifest = built.manifest
    pack = None
    if signer:
        asked = connecting.advisories(host()) if advisories else None
        pack = write_review(out.absolute(), signer, tools, asked)
    if json:
        show_json(
            {
                "out": str(out),
                "manifest_sha256": built.manifest_sha256,
                "bundle_id": f"{manifest.name}-{built.manifest_sha256[:12]}",
                "key_id": built.key_id,
                "lock": str(lock_path),
                "review": str(pack) if pack else None,
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


def write_review(
    out: Path, signer: Signer, tools: BuildTools, index: Advisories | None = None
) -> Path | None:
    """The reviewer's pack beside the volumes; None without the libraries that make it.

    `index` is asked for known vulnerabilities; without one the pack says that nobody was asked.
    """
    from bundler.cli.review_cmds import look_into
    from bundler.format.reviewpack import FOLDER
    from bundler.format.trust import open_manifest

    # Read back as the closed side reads it: what the pack says is said of the volumes as they lie there.
    verified = open_manifest(out, [wiring.verifier_of(signer.pem)])
    try:
        with wiring.review_half():
            from bundler.review.pack import make_pack, write_pack
            from bundler.review.vulnerabilities import check_by_index
        subject = look_into(
            out, verified, tools.progress, stored=lambda entry: tools.store.file(entry.sha256)
        )
    except HostError as error:
        tools.progress.note(f"no review/ was made: {error}; pip install 'airbundle[review]'")
        return None
    if index is not None:
        packages = subject.packages
        with tools.progress.task("known vulnerabilities", len(packages), "packages") as task:
            found = check_by_index(packages, index.of, index.source, tools.clock.now(), task)
        subject = replace(subject, checked=found)
    write_pack(make_pack(subject), out / FOLDER, signer)
    return out / FOLDER


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
    for label in ("description", "created", "target", "engine", "tool", "base", "signature"):
        if seen[label]:
            say(f"{label:<12} {seen[label]}")
    for title in ("needs", "waived"):
        for line in seen[title]:
            say(f"{title:<12} {line}")
    table("models", ["name", "origin", "licence", "#size"], seen["models"])
    table("contents", ["kind", "#files", "#size"], seen["kinds"])
    table("volumes", ["name", "#size", "sha256"], seen["volumes"])


def diff(
    old: Annotated[
        Path,
        typer.Argument(help="A bundle's folder or manifest.", show_default=False, readable=False),
    ],
    new: Annotated[
        Path, typer.Argument(help="The one after it.", show_default=False, readable=False)
    ],
    json: JsonOption = False,
) -> None:
    """Show what a bundle changes against another: models, packages, settings, files."""
    from bundler.review.difference import difference
    from bundler.review.reading import read_manifest

    found = difference(read_manifest(old)[0], read_manifest(new)[0])
    if json:
        show_json(found.model_dump(mode="json"))
        return
    if not found.changes:
        say("nothing differs", "bold")
    else:
        rows = [(one.part, one.name, one.what, one.old, one.new) for one in found.changes]
        table("", ["part", "what", "change", "before", "after"], rows)
    say(
        f"{human(found.new_bytes)} are new, {human(found.kept_bytes)} are held by the first already"
    )


def keygen(
    out: Annotated[
        Path,
        typer.Option("--out", help="Where to write NAME.key.pem and NAME.pub.pem.", readable=False),
    ] = Path("airbundle"),
    volumes: Annotated[
        bool,
        typer.Option("--volumes", help="Instead, NAME.volumes.key: seals volumes (`copy --seal`)."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Make a pair of Ed25519 keys: one to sign with, one to give away."""
    if volumes:
        _volume_key(out.with_name(f"{out.name}.volumes.key"), json=json)
        return
    private, public = (out.with_name(f"{out.name}.{kind}.pem") for kind in ("key", "pub"))
    key_id = wiring.generate_keys(private, public)
    if json:
        show_json({"private": str(private), "public": str(public), "key_id": key_id})
        return
    say(f"{private}: keep it secret; it signs bundles")
    say(f"{public}: carry it to the closed side by another way than the bundle")
    say(f"key id {key_id}", "bold")


def _volume_key(path: Path, *, json: bool) -> None:
    from bundler.format.sealing import generate_volume_key

    key_id = generate_volume_key(path).key_id
    if json:
        show_json({"volume_key": str(path), "key_id": key_id})
        return
    say(f"{path}: keep it secret; it seals volumes and opens them")
    say("carry it to the closed side by another way than the bundle")
    say(f"key id {key_id}", "bold")


def schema() -> None:
    """Print the spec's JSON Schema, for editors."""
    show_json(schema_document())


def schema_document() -> dict[str, Any]:
    """The spec's JSON Schema, as `schema` prints it and `init` writes it."""
    from bundler.domain.spec import BundleSpec

    document = BundleSpec.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | document


def register(app: typer.Typer) -> None:
    """Add these commands."""
    panel = "Connected side"
    for command in (rehearsable(build), inspect, diff, rehearsable(keygen), schema):
        app.command(rich_help_panel=panel)(command)
