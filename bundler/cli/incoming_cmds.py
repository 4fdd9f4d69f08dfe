"""Commands for what comes in: verify, import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import wiring
from bundler.cli.auditing import recorded
from bundler.cli.console import progress, say, show_json
from bundler.cli.options import (
    JsonOption,
    KeysOption,
    PolicyOption,
    QuietOption,
    RootOption,
    UnsignedOption,
    VolumeKeyOption,
    root_folder,
    volume_key,
)
from bundler.cli.rehearsing import rehearsable
from bundler.cli.rootchecks import verify_installed, verify_quick
from bundler.domain.sizes import human
from bundler.errors import IntegrityError, MissingVolumeError
from bundler.format.untrusted import shown

if TYPE_CHECKING:
    from bundler.deploy.importing import Imported
    from bundler.deploy.sitetrust import SiteTrust


def verify(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Folder with the bundle.", show_default=False, readable=False),
    ] = None,
    key: KeysOption = None,
    unsigned: UnsignedOption = False,
    policy: PolicyOption = None,
    sealed_with: VolumeKeyOption = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Check what is imported below --root for drift, by xxh3."),
    ] = False,
    installed: Annotated[
        bool,
        typer.Option(
            "--installed",
            help="Check a release below --root, by SHA-256: the one in use, or the named bundle's.",
        ),
    ] = False,
    root: RootOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check the signature, then every byte of every file; name what is wrong."""
    from bundler.deploy.verify import verify as verify_bundle

    if installed:
        verify_installed(root_folder(root), folder.name if folder else None, json=json, quiet=quiet)
        return
    if quick:
        verify_quick(root_folder(root), json=json, quiet=quiet)
        return
    if folder is None:
        raise typer.BadParameter("name the folder with the bundle, or give --quick with --root")
    result = verify_bundle(
        folder,
        trust=_trust_for_looking(root, policy, key or [], unsigned=unsigned),
        form=wiring.volume_format(),
        progress=progress(quiet=quiet or json),
        key=volume_key(sealed_with),
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
                "review_pack": result.pack,
            }
        )
        return
    for name in result.strangers:
        say(f"note: {shown(name)} is not part of the bundle", "yellow")
    if result.pack == "unsigned":
        say(
            "note: review/ is not signed by the bundle's key: make it again before you believe it",
            "yellow",
        )
    say(
        f"OK: {verified.bundle_id}, {verified.vouched}, {len(manifest.volumes)} volume(s),"
        f" {len(manifest.entries)} files, {human(manifest.size)}",
        "bold green" if verified.signed else "bold yellow",
    )


def _trust_for_looking(
    root: Path | None, policy: Path | None, keys: list[Path], *, unsigned: bool
) -> SiteTrust:
    """Of a bundle that only lies there: what was given decides, and nothing given means the root's policy."""
    from bundler.deploy.root import Root

    given = None
    if policy is not None:
        from bundler.deploy.policy import load_policy

        given = load_policy(policy, wiring.verifier)
    alone = given is None and (keys or unsigned) and root is None
    return wiring.gate().site(
        None if alone else Root(root_folder(root)),
        policy=given,
        keys=wiring.verifiers(keys),
        unsigned=unsigned,
    )


def import_(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders (sticks) with volumes.", show_default=False, readable=False),
    ],
    root: RootOption = None,
    key: KeysOption = None,
    unsigned: UnsignedOption = False,
    sealed_with: VolumeKeyOption = None,
    allow_downgrade: Annotated[
        bool,
        typer.Option(
            "--allow-downgrade", help="Take a bundle that is older than one that came in before."
        ),
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Bring volumes into the root's store: any order, one stick at a time, rerun at will."""
    from bundler.deploy.importing import import_bundle
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    trust = wiring.gate().site(place, keys=wiring.verifiers(key or []), unsigned=unsigned)
    with recorded(place, "import") as action:
        result = import_bundle(
            folders,
            root=place,
            trust=trust,
            form=wiring.volume_format(),
            progress=progress(quiet=quiet or json),
            allow_downgrade=allow_downgrade,
            key=volume_key(sealed_with),
        )
        action.about(result.verified)
        _refuse_incomplete(result, folders)
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
    say(f"imported {result.verified.bundle_id}, {result.verified.vouched}", "bold green")


def _refuse_incomplete(result: Imported, folders: list[Path]) -> None:
    if result.findings:
        lines = [finding.line() for finding in result.findings]
        if len(folders) > 1:
            bad = sorted({finding.where.partition(":")[0] for finding in result.findings})
            lines += [
                f"{name} was read from {result.places[name]}"
                for name in bad
                if name in result.places
            ]
        raise IntegrityError(
            f"{lines[0]} ({len(result.findings)} damaged part(s); all others are imported)",
            hint="Copy the named volumes again and import them; only the damaged parts are read.",
            details=lines,
        )
    if result.missing_volumes:
        raise MissingVolumeError(
            f"{result.verified.bundle_id}: still to come: {', '.join(result.missing_volumes)}"
        )


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, command in (("verify", verify), ("import", rehearsable(import_))):
        app.command(name, rich_help_panel="Closed side")(command)
