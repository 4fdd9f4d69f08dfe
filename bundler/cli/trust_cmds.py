"""`airbundle trust`: a site's policy and what keys say of each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler import wiring
from bundler.cli.auditing import recorded
from bundler.cli.console import say, show_json, table
from bundler.cli.options import JsonOption, RootOption, root_folder
from bundler.cli.rehearsing import rehearsable
from bundler.errors import KeyFileError, SpecError, StateError

if TYPE_CHECKING:
    from pydantic import ValidationError

app = typer.Typer(
    help="The site's policy, key rotation, revocation.", no_args_is_help=True, name="trust"
)
OutOption = Annotated[
    Path, typer.Option("--out", help="Folder to write into: beside a bundle.", readable=False)
]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why, for people.", show_default=False)]


@app.command()
@rehearsable
def use(
    policy: Annotated[
        Path, typer.Argument(help="Policy file (YAML).", show_default=False, readable=False)
    ],
    root: RootOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="In place of the policy in force.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Put a policy in force in a root: from then on it decides what comes in and is installed."""
    from bundler.deploy.policy import load_policy
    from bundler.deploy.policyfile import keep_policy
    from bundler.deploy.root import Root
    from bundler.deploy.sitetrust import trusted_keys

    wanted = load_policy(policy, wiring.verifier)
    # Two keys that are one, or a file that is no key, are said before it is in force.
    keys = trusted_keys(wanted, wiring.verifier_of)
    place = Root(root_folder(root))
    wiring.gate().site(place, policy=wanted)
    with recorded(place, "trust use --replace" if replace else "trust use") as action:
        action.detail = ", ".join(f"{key.role} {key.key_id}" for key in keys)
        keep_policy(place, wanted, replace=replace)
    if json:
        show_json({"policy": str(place.policy), "keys": [key.key_id for key in keys]})
        return
    say(
        f"{place.policy}: in force; requires {', '.join(wanted.require) or 'nothing'}", "bold green"
    )


@app.command()
def show(root: RootOption = None, json: JsonOption = False) -> None:
    """Show whose keys count in a root, what is revoked, and the newest bundle of each name."""
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import newest_seen

    place = Root(root_folder(root))
    if not place.path.is_dir():
        raise StateError(f"{place.path}: no such folder", hint="Nothing was imported there yet.")
    trust = wiring.gate().site(place)
    keys = [
        {
            "key_id": key.key_id,
            "role": key.role,
            "note": key.note,
            "expires": key.expires,
            "out_of_use": trust.why_not(key),
        }
        for key in trust.keys
    ]
    seen = newest_seen(place)
    if json:
        show_json(
            {
                "policy": trust.policy,
                "require": list(trust.require),
                "downgrade": "allow" if trust.downgrade else "refuse",
                "keys": keys,
                "revoked": [{"what": what, "reason": why} for what, why in trust.revoked],
                "seen": [one.model_dump(mode="json") for one in seen],
            }
        )
        return
    if not trust.policy:
        say("no policy is in force: a bundle needs a signature by the key given with --key", "bold")
    else:
        say(f"a bundle needs: {', '.join(trust.require) or 'nothing'}", "bold")
    rows = [[str(key[c] or "-") for c in ("key_id", "role", "note", "out_of_use")] for key in keys]
    table("keys", ["key", "role", "whose", "out of use"], rows)
    table("revoked", ["key or bundle", "reason"], [list(one) for one in trust.revoked])
    table("newest of each name", ["bundle", "#number", "manifest sha256"],
          [[one.name, str(one.sequence), one.manifest_sha256] for one in seen])  # fmt: skip


@app.command()
@rehearsable
def add(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="approval-, rotation- or revocations-KEY.json, its .sig beside it.",
            show_default=False,
            readable=False,
        ),
    ],
    root: RootOption = None,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key", help="Whose list of revocations it is, where no policy is in force.",
            show_default=False, readable=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:  # fmt: skip
    """Take in statements: approvals that came later, a rotation, revocations."""
    from bundler.deploy.accepting import accept_statement
    from bundler.deploy.root import Root
    from bundler.deploy.trustroot import open_record

    place = Root(root_folder(root))
    gate = wiring.gate()
    done = []
    for path in files:
        trust = gate.site(place, keys=[wiring.verifier(key)] if key else [])
        here = [open_record(place, folder.name, gate) for folder in place.bundles()]
        with recorded(place, "trust add") as action:
            action.detail = path.name
            done.append(accept_statement(place, path, trust, here, gate.make))
            action.detail = done[-1]
    if json:
        show_json({"accepted": done})
        return
    for line in done:
        say(line, "bold green")


@app.command()
@rehearsable
def rotate(
    old: Annotated[
        Path,
        typer.Option(
            "--old", help="Private key that ends (PEM).", show_default=False, readable=False
        ),
    ],
    new: Annotated[
        Path,
        typer.Option("--new", help="Public key that follows.", show_default=False, readable=False),
    ],
    out: OutOption = Path(),
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Sign that a new key takes over; a site accepts it with `airbundle trust add`."""
    from pydantic import ValidationError

    from bundler.domain.trust import Rotation
    from bundler.format.statements import write_statement

    signer, fresh = wiring.signer(old), wiring.verifier(new)
    if signer.key_id == fresh.key_id:
        raise KeyFileError(f"{new}: is the old key", hint="Make a new one: airbundle keygen")
    try:
        said = Rotation(
            old_key=signer.key_id,
            new_key=fresh.key_id,
            new_pem=fresh.pem.decode("ascii", "replace"),
            reason=reason,
            created=wiring.clock().now(),
        )
    except ValidationError as error:
        raise _fault("rotate", error) from error
    path = write_statement(out, said, signer.key_id, signer)
    if json:
        show_json({"file": str(path), **said.model_dump(mode="json")})
        return
    say(f"{path}: key {fresh.key_id} follows key {signer.key_id}", "bold green")
    say("tell the site the new key's id by another way; it accepts with: airbundle trust add")


@app.command()
@rehearsable
def revoke(
    what: Annotated[
        list[str],
        typer.Argument(
            help="Key ids (16 digits) or manifest digests (64 digits).", show_default=False
        ),
    ],
    sign_with: Annotated[
        Path,
        typer.Option("--sign-with", help="Private key (PEM).", show_default=False, readable=False),
    ],
    reason: ReasonOption,
    out: OutOption = Path(),
    json: JsonOption = False,
) -> None:
    """Revoke keys or bundles: adds to the list in --out, which then travels beside every bundle."""
    from pydantic import ValidationError

    from bundler.domain.trust import Revocations, Revoked
    from bundler.format.layout import statement_name
    from bundler.format.statements import KINDS, read_statement, write_statement

    signer = wiring.signer(sign_with)
    before = out / statement_name(KINDS[Revocations], signer.key_id)
    own = wiring.verifier_of(signer.pem)
    old = read_statement(Revocations, before, own) if before.is_file() else None
    known = old.revoked if old else ()
    try:
        fresh = [Revoked(what=one, reason=reason) for one in dict.fromkeys(what)]
        said = Revocations(
            revoked=(*known, *(one for one in fresh if one.what not in [k.what for k in known])),
            created=wiring.clock().now(),
        )
    except ValidationError as error:
        raise _fault("revoke", error) from error
    path = write_statement(out, said, signer.key_id, signer)
    if json:
        show_json({"file": str(path), **said.model_dump(mode="json")})
        return
    say(f"{path}: {len(said.revoked)} revoked", "bold green")


def _fault(command: str, error: ValidationError) -> SpecError:
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    return SpecError(
        f"{command}: {where}: {first['msg']}",
        hint="Give ids as `verify` prints them, and a reason of one line.",
    )


def register(root: typer.Typer) -> None:
    """Add the group."""
    root.add_typer(app, rich_help_panel="Review")
