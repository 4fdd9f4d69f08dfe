"""Who may say what about a bundle: the site's policy, and the statements that keys sign.

A statement is canonical JSON with a detached Ed25519 signature beside it, as a manifest is. What a key
may say follows from the role that the site's policy gives it, never from the statement.
"""

import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from bundler.domain.needs import Line
from bundler.domain.record import Name, Record, Sha256

BUILDER, REVIEWER = "builder", "reviewer"
Role = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
KeyId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Pem = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=4000)]
_FORM = "%Y-%m-%dT%H:%M:%SZ"
Verdict = Literal["approved", "rejected"]


def instant(text: str) -> str:
    """A moment, UTC: `2026-12-31T23:59:59Z`. A day alone means its end, so that it counts whole."""
    if len(text) == len("2026-12-31"):
        text += "T23:59:59Z"
    try:
        found = datetime.datetime.strptime(text, _FORM).replace(tzinfo=datetime.timezone.utc)
    except ValueError as cause:
        raise ValueError(f"{text!r} is no UTC time such as 2026-12-31T23:59:59Z") from cause
    # Only the full form compares as text.
    return f"{found.year:04}" + found.strftime(_FORM.removeprefix("%Y"))


Instant = Annotated[str, StringConstraints(max_length=40), AfterValidator(instant)]


class Approval(Record):
    """A person's decision on one bundle."""

    statement: Literal["airbundle approval 1"] = "airbundle approval 1"
    bundle: Name
    sequence: int = Field(ge=1, lt=2**62)
    manifest_sha256: Sha256
    role: Role = REVIEWER
    verdict: Verdict
    by: Line = Field(min_length=1, description="Who decided, for people.")
    comment: Text = ""
    created: Instant
    expires: Instant | None = Field(
        None, description="From then on it lets no bundle in; what is installed stays."
    )


class Rotation(Record):
    """A key hands its role over to another one."""

    statement: Literal["airbundle rotation 1"] = "airbundle rotation 1"
    old_key: KeyId
    new_key: KeyId
    new_pem: Pem
    reason: Line = ""
    created: Instant

    @model_validator(mode="after")
    def _is_another(self) -> "Rotation":
        if self.old_key == self.new_key:
            raise ValueError("a key cannot follow itself")
        return self


class Revoked(Record):
    """A key or a bundle that must not be used any more."""

    what: KeyId | Sha256 = Field(description="A key's id, or the SHA-256 of a bundle's manifest.")
    reason: Line = Field(min_length=1)


class Revocations(Record):
    """What a key revokes. All its lists count together: nothing that was revoked comes back."""

    statement: Literal["airbundle revocations 1"] = "airbundle revocations 1"
    revoked: tuple[Revoked, ...] = Field(max_length=10_000)
    created: Instant


class PolicyKey(Record):
    """A public key and what it may do."""

    role: Role
    pem: Pem
    note: Line = Field("", description="Whose it is, for people.")
    expires: Instant | None = Field(None, description="From then on it lets no bundle in.")


class Policy(Record):
    """What a closed site demands of a bundle before it is used."""

    require: tuple[Role, ...] = Field(
        (BUILDER,),
        max_length=16,
        description="Roles whose keys must vouch; one named twice needs two keys.",
    )
    keys: tuple[PolicyKey, ...] = Field((), max_length=256)
    downgrade: Literal["refuse", "allow"] = Field(
        "refuse", description="Whether a bundle that is older than one seen before may come in."
    )
    revoked: tuple[Revoked, ...] = Field((), max_length=10_000)

    @model_validator(mode="after")
    def _can_be_met(self) -> "Policy":
        for role in set(self.require):
            there = sum(key.role == role for key in self.keys)
            if there < self.require.count(role):
                raise ValueError(
                    f"require asks for {self.require.count(role)} key(s) of role {role},"
                    f" and keys has {there}"
                )
        return self


class Seen(Record):
    """The newest bundle of a name that a root has taken in."""

    name: Name
    sequence: int = Field(ge=1, lt=2**62)
    manifest_sha256: Sha256
