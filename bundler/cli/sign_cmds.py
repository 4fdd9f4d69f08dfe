"""Who vouches for a bundle: sign, attach, approve, reject."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import wiring
from bundler.cli.console import progress, say, show_json
from bundler.cli.options import (
    BundleArgument,
    JsonOption,
    KeysOption,
    QuietOption,
    UnsignedOption,
    VolumeKeyOption,
    volume_key,
)
from bundler.cli.rehearsing import rehearsable
from bundler.errors import KeyFileError, SpecError, disk_errors

if TYPE_CHECKING:
    from bundler.domain.trust import Verdict

SignWithOption = Annotated[
    Path | None,
    typer.Option(
        "--sign-with", help="The reviewer's private key (PEM).", show_default=False, readable=False
    ),
]
SignLaterOption = Annotated[
    Path | None,
    typer.Option(
        "--sign-later",
        help="The reviewer's public key, where a device holds the private one: writes the decision"
        " unsigned, for `attach`.",
        show_default=False,
        readable=False,
    ),
]
ByOption = Annotated[str, typer.Option("--by", help="Who decides, for people.", show_default=False)]
CommentOption = Annotated[str, typer.Option("--comment", help="Why, for people.")]
RoleOption = Annotated[
    str, typer.Option("--role", help="The role that the site's policy gives this key.")
]


def sign(
    folder: BundleArgument,
    key: Annotated[
        Path | None,
        typer.Option("--key", help="Private key (PEM).", show_default=False, readable=False),
    ] = None,
    digest_only: Annotated[
        bool,
        typer.Option(
            "--digest-only", help="Write the line for a signing device (HSM) to sign instead."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Where to write it; beside DIR when left out.", show_default=False,
            readable=False,
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="In place of a signature that is there.")
    ] = False,
    json: JsonOption = False,
) -> None:  # fmt: skip
    """Sign a bundle that was built with --unsigned, or hand it to a signing device."""
    from bundler.build.signing import sign_bundle, write_hand_off

    if (key is None) == (not digest_only):
        raise typer.BadParameter("give --key PRIVATE.pem, or --digest-only")
    if key is None:
        path = write_hand_off(folder, out)
        if json:
            show_json({"to_sign": str(path)})
            return
        say(f"{path}: sign these bytes with Ed25519 (64 raw bytes back), then", "bold")
        say(f"  airbundle attach {folder} SIGNATURE --key PUBLIC.pem")
        say(
            f"with OpenSSL 3: openssl pkeyutl -sign -rawin -inkey KEY.pem -in {path} -out SIGNATURE"
        )
        return
    signer = wiring.signer(key)
    digest = sign_bundle(folder, signer, replace=replace)
    if json:
        show_json({"manifest_sha256": digest, "key_id": signer.key_id})
        return
    say(f"{folder}: signed by key {signer.key_id} (manifest sha256 {digest})", "bold green")


def attach(
    folder: BundleArgument,
    signature: Annotated[
        Path,
        typer.Argument(help="File with the 64 raw bytes.", show_default=False, readable=False),
    ],
    key: Annotated[
        Path,
        typer.Option(
            "--key", help="Public key that it must be by.", show_default=False, readable=False
        ),
    ],
    replace: Annotated[
        bool, typer.Option("--replace", help="In place of a signature that is there.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Put a signature from a signing device to the bundle or the decision that it signs."""
    from bundler.build.signing import attach_signature

    if not signature.is_file():
        raise KeyFileError(f"{signature}: no such file", hint="Name the device's signature file.")
    with disk_errors("reading", signature), signature.open("rb") as file:
        data = file.read(4096)
    verifier = wiring.verifier(key)
    name = attach_signature(folder, data, verifier, replace=replace)
    if json:
        show_json({"signs": name, "key_id": verifier.key_id})
        return
    say(f"{folder}/{name}: signed by key {verifier.key_id}", "bold green")


def approve(
    folder: BundleArgument,
    by: ByOption,
    sign_with: SignWithOption = None,
    sign_later: SignLaterOption = None,
    key: KeysOption = None,
    unsigned: UnsignedOption = False,
    sealed_with: VolumeKeyOption = None,
    role: RoleOption = "reviewer",
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            help="Until when it lets the bundle in: 2026-12-31 (that day included) or a UTC time.",
            show_default=False,
        ),
    ] = None,
    comment: CommentOption = "",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Countersign a bundle: check every byte of it, then write and sign the decision beside it."""
    _decide("approved", folder, by, sign_with, sign_later, key or [], role, expires, comment,
            sealed_with, unsigned=unsigned, json=json, quiet=quiet)  # fmt: skip


def reject(
    folder: BundleArgument,
    by: ByOption,
    sign_with: SignWithOption = None,
    sign_later: SignLaterOption = None,
    key: KeysOption = None,
    unsigned: UnsignedOption = False,
    role: RoleOption = "reviewer",
    comment: CommentOption = "",
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Sign that a bundle must not be used; no other approval outweighs it."""
    _decide("rejected", folder, by, sign_with, sign_later, key or [], role, None, comment,
            None, unsigned=unsigned, json=json, quiet=quiet)  # fmt: skip


def _decide(
    verdict: Verdict, folder: Path, by: str, sign_with: Path | None, sign_later: Path | None,
    keys: list[Path], role: str, expires: str | None, comment: str, sealed_with: Path | None, *,
    unsigned: bool, json: bool, quiet: bool,
) -> None:  # fmt: skip
    from pydantic import ValidationError

    from bundler.deploy.verify import verify
    from bundler.review.approving import decide

    if (sign_with is None) == (sign_later is None):
        raise typer.BadParameter("give --sign-with PRIVATE.pem, or --sign-later PUBLIC.pem")
    signer = wiring.signer(sign_with) if sign_with else None
    key_id = signer.key_id if signer else wiring.verifier(sign_later or Path()).key_id
    gate = wiring.gate()
    trust = gate.site(None, keys=wiring.verifiers(keys), unsigned=unsigned)
    if verdict == "approved":
        result = verify(
            folder,
            trust=trust,
            form=wiring.volume_format(),
            progress=progress(quiet=quiet or json),
            key=volume_key(sealed_with),
        )
        result.raise_if_bad()
        verified = result.verified
    else:
        # What is damaged may be rejected too.
        verified = trust.open(folder)
    try:
        path, said = decide(
            folder, verified, verdict=verdict, by=by, role=role, comment=comment, now=gate.now,
            expires=expires, key_id=key_id, signer=signer,
        )  # fmt: skip
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise SpecError(
            f"--{'.'.join(map(str, first['loc']))}: {first['msg']}", hint="Correct that option."
        ) from error
    if json:
        show_json({"file": str(path), "key_id": key_id, "signed": signer is not None,
                   **said.model_dump(mode="json")})  # fmt: skip
        return
    say(f"{verified.bundle_id}: {said.verdict} by {said.by} as {said.role}", "bold green")
    if said.expires:
        say(f"until {said.expires}")
    if signer:
        say(f"{path}: signed by key {key_id}; it travels beside the manifest")
    else:
        say(f"{path}: sign these bytes with key {key_id}, then")
        say(f"  airbundle attach {folder} SIGNATURE --key {sign_later}")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command(rich_help_panel="Connected side")(rehearsable(sign))
    app.command(rich_help_panel="Connected side")(rehearsable(attach))
    app.command(rich_help_panel="Review")(rehearsable(approve))
    app.command(rich_help_panel="Review")(rehearsable(reject))
