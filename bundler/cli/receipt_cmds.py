"""`airbundle receipt`: approved = installed = measured, signed, to be carried out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from bundler import wiring
from bundler.cli.auditing import recorded
from bundler.cli.console import progress, say, show_json
from bundler.cli.judging import STYLE
from bundler.cli.options import JsonOption, QuietOption, RootOption, root_folder
from bundler.cli.rehearsing import rehearsable
from bundler.domain.receipt import Private, Receipt
from bundler.errors import FormatError, StateError, TrustError, disk_errors

app = typer.Typer(
    help="One signed document: approved = installed = measured.",
    no_args_is_help=True,
    name="receipt",
)
_LARGEST = 16 * 2**20


@app.command()
@rehearsable
def make(
    out: Annotated[
        Path, typer.Option("--out", help="File to write; its signature beside it.", readable=False)
    ],
    sign_with: Annotated[
        Path,
        typer.Option(
            "--sign-with", help="Private key of who accepts (PEM).", show_default=False,
            readable=False,
        ),
    ],
    root: RootOption = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="What may leave the site besides: its host's name, people, reasons."),
    ] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:  # fmt: skip
    """Compare the release in use with its bundle, and sign what was approved, installed and measured.

    Prompts, answers, paths and command lines never leave; a host's name, people's names and the engine's own words
    only when allowed.
    """
    from bundler.cli.accept_cmds import last_record
    from bundler.deploy.receipts import Receipts
    from bundler.deploy.releases import current_release
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_imported
    from bundler.domain.facts import AcceptanceRecord
    from bundler.format.codec import from_bytes, to_bytes

    if strange := set(allow or ()) - set(get_args(Private)):
        raise typer.BadParameter(
            f"--allow {min(strange)}: is one of {', '.join(get_args(Private))}"
        )
    allowed: list[Private] = [one for one in get_args(Private) if one in (allow or ())]
    signer = wiring.signer(sign_with)
    place = Root(root_folder(root))
    _, release = current_release(place)
    gate = wiring.gate()
    verified = open_imported(place, release.bundle_id, gate)
    path = last_record(place.acceptance)
    with disk_errors("reading", path):
        data = path.read_bytes()
    record = from_bytes(AcceptanceRecord, data, str(path))
    receipts = Receipts(
        root=place,
        trust=gate.site(place, unsigned=not verified.signed),
        log=wiring.audit_log(place),
        clock=wiring.clock(),
        progress=progress(quiet=quiet or json),
    )
    made = receipts.make(verified, release, record, data, allowed)
    text = to_bytes(made)
    with recorded(place, "receipt", changes=False) as action:
        action.about(verified)
        # The signature first: a receipt without one is none.
        place.write(_signature(out), signer.sign(text))
        place.write(out.absolute(), text)
        action.detail = f"{made.measured.verdict.value}; signed by key {signer.key_id}"
    if json:
        show_json({"file": str(out), "key_id": signer.key_id, **made.model_dump(mode="json")})
        return
    _show(made, signer.key_id)
    say(f"{out}, {_signature(out).name}: {len(text)} bytes")


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="The receipt.", show_default=False, readable=False)],
    key: Annotated[
        Path, typer.Option("--key", help="Public key of who accepted (PEM).", readable=False)
    ],
    bundle: Annotated[
        Path | None,
        typer.Option(
            "--bundle", help="Folder with the bundle that was sent: is it that one?",
            show_default=False, readable=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:  # fmt: skip
    """Check a receipt's signature, and whether it is about the bundle that was sent.

    Exit code 0 whatever its verdict is; 8: not signed by that key, or about another bundle.
    """
    from bundler.format import layout
    from bundler.format.codec import bytes_read, from_bytes
    from bundler.format.digests import sha256_file

    verifier = wiring.verifier(key)
    with disk_errors("reading", file):
        if not file.is_file() or not _signature(file).is_file():
            raise StateError(f"{file}: it or its .sig is not there", hint="Give both files.")
        data, signature = file.read_bytes()[:_LARGEST], _signature(file).read_bytes()[:1024]
    if not verifier.verify(data, signature):
        raise TrustError(f"{file}: is not signed by key {verifier.key_id}, or was changed since")
    made = from_bytes(Receipt, data, str(file))
    if bytes_read(made) != data:
        raise FormatError(f"{file}: not in canonical form")
    if bundle is not None:
        with disk_errors("reading", bundle / layout.MANIFEST):
            sent = sha256_file(bundle / layout.MANIFEST)
        if sent != made.manifest_sha256:
            raise TrustError(
                f"{file}: is about manifest {made.manifest_sha256[:12]}..., {bundle} has {sent[:12]}..."
            )
    if json:
        show_json({"ok": True, "key_id": verifier.key_id, **made.model_dump(mode="json")})
        return
    _show(made, verifier.key_id)


def _signature(path: Path) -> Path:
    return path.absolute().with_name(path.name + ".sig")


def _show(made: Receipt, key_id: str) -> None:
    say(f"{made.bundle} #{made.sequence}, manifest {made.manifest_sha256}")
    for one in made.decisions:
        by = f" by {one.by}" if one.by else ""
        say(f"{one.verdict}{by} as {one.role} (key {one.key_id}, {one.created})")
    if not made.decisions:
        say("approved by nobody whose key is known here", "yellow")
    say(f"installed {made.installed.installed}, {made.installed.files} files as the bundle says")
    if (changed := made.installed.changed) is not None:
        what = ", ".join(
            f"{one.service} {one.setting}={_value(one.now)} (signed: {_value(one.signed)})"
            for one in changed.settings
        )
        say(f"settings differ from those that were signed: {what}", "yellow")
        records = ", ".join(changed.ab_records_sha256)
        say(f"applied {changed.applied}, measured by the A/B with SHA-256 {records}", "yellow")
    say(
        f"measured {made.measured.began}: {made.measured.verdict.value}",
        STYLE[made.measured.verdict],
    )
    say(f"signed by key {key_id}", "bold green")


def _value(value: str | None) -> str:
    return "(left out)" if value is None else value or "(none)"


def register(root: typer.Typer) -> None:
    """Add the group."""
    root.add_typer(app, rich_help_panel="Review")
