"""Commands of the closed side: verify, import, install, start, stop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import wiring
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
from bundler.cli.rootchecks import verify_installed, verify_quick
from bundler.domain.sizes import human
from bundler.errors import IntegrityError, MissingVolumeError, StateError
from bundler.format.untrusted import shown

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.deploy.sitetrust import SiteTrust
    from bundler.domain.manifest import VerifiedManifest

# Of what ran while its release was made anew.
_RESTART_WITHIN_S = 900.0


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
        f"OK: {verified.bundle_id}, {_who(verified)}, {len(manifest.volumes)} volume(s),"
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
    result = import_bundle(
        folders,
        root=place,
        trust=wiring.gate().site(
            place,
            keys=wiring.verifiers(key or []),
            unsigned=unsigned,
        ),
        form=wiring.volume_format(),
        progress=progress(quiet=quiet or json),
        allow_downgrade=allow_downgrade,
        key=volume_key(sealed_with),
    )
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
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Make an installed release anew, in its place: the one in use when none is named.",
        ),
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Install an imported bundle into a release of its own and make it current."""
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import check_may_install, open_imported

    place = Root(root_folder(root))
    if again:
        bundle = _installed(place, bundle)
    verified = open_imported(place, bundle, wiring.gate())
    check_may_install(place, verified, wiring.gate())
    shown = progress(quiet=quiet or json)
    installer = wiring.installer(place, shown)
    if again:
        from bundler.deploy.remaking import Remaker

        launcher = wiring.launcher(place, shown)
        record, states = Remaker(installer, launcher, _RESTART_WITHIN_S).remake(verified)
        for state in () if json else states:
            say(f"{state.service}: started again, at {state.url}")
    else:
        record = installer.install(verified)
    if json:
        show_json(
            record.model_dump(mode="json") | {"release": str(place.release(record.bundle_id))}
        )
        return
    say(f"installed {record.bundle_id}, {_who(verified)}", "bold green")


def _installed(place: Root, bundle: str | None) -> str:
    from bundler.deploy.releases import current_release, pick_release

    if bundle is not None:
        return pick_release(place, bundle).bundle_id
    return current_release(place)[1].bundle_id


def start(
    root: RootOption = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds until a service must be healthy.")
    ] = 900,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Start the current release's services; ready means that a real completion came back."""
    from bundler.deploy.observing import observe
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_imported

    place = Root(root_folder(root))
    folder, record = current_release(place)
    # What was revoked since it was installed does not start again.
    open_imported(place, record.bundle_id, wiring.gate())
    launcher = wiring.launcher(place, progress(quiet=quiet or json))
    states = launcher.start(folder, record, timeout_s=timeout)
    if json:
        show_json([state.model_dump(mode="json") for state in states])
        return
    for state in states:
        say(f"{state.service}: ready after {state.ready_after_s} s at {state.url}", "bold green")
        if place.api_key(state.port).is_file():
            say(f"{state.service}: its clients need the API key in {place.api_key(state.port)}")
    for one in observe(launcher, record):
        say(f"{one.state.service}: {one.running.words()}")
        for mismatch in one.mismatches:
            say(f"WARNING {one.state.service}: {mismatch.words()}; `accept` fails it", "bold red")


def stop(root: RootOption = None, json: JsonOption = False) -> None:
    """Stop every service: gently, then firmly, with nothing left behind."""
    from bundler.deploy.root import Root

    place = Root(root_folder(root))
    if not place.path.is_dir():
        raise StateError(f"{place.path}: no such folder", hint="Nothing was imported there yet.")
    launcher = wiring.launcher(place, progress(quiet=True))
    stopped = launcher.stop_all()
    if json:
        show_json({"stopped": stopped})
        return
    say(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    panel = "Closed side"
    for name, command in (
        ("verify", verify),
        ("import", import_),
        ("install", install),
        ("start", start),
        ("stop", stop),
    ):
        app.command(name, rich_help_panel=panel)(command)
