"""Whether this site takes a bundle: keys and their roles, what was revoked, approvals, older bundles.

The policy says which keys count. Statements that they signed change that: a rotation brings the next key
and retires the old one, a revocation ends a key or a bundle for good. A retired or expired key lets
nothing in any more; what it let in before stays usable. A revoked one vouches for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bundler.domain.manifest import VerifiedManifest
from bundler.domain.trust import BUILDER, Approval, Policy, Revocations, Rotation
from bundler.errors import TrustError
from bundler.format.statements import kept_folders, read_statement, statement_files
from bundler.format.trust import SignedManifest, read_signed
from bundler.ports import Verifier


@dataclass(frozen=True)
class TrustedKey:
    """A public key, its role, and since what it no longer lets bundles in."""

    role: str
    verifier: Verifier
    note: str = ""
    expires: str | None = None
    successor: str | None = None

    @property
    def key_id(self) -> str:
        """As `Verifier.key_id`."""
        return self.verifier.key_id


@dataclass(frozen=True)
class SiteTrust:
    """Everything that decides; `now` is the moment of the decision.

    `ended` are what the policy itself revokes, `revoked` that and what keys have revoked.
    """

    keys: tuple[TrustedKey, ...]
    require: tuple[str, ...]
    now: str
    ended: tuple[tuple[str, str], ...] = ()
    revoked: tuple[tuple[str, str], ...] = ()
    downgrade: bool = False
    policy: bool = False

    @property
    def allow_unsigned(self) -> bool:
        """Whether a bundle without a signature may come in."""
        return BUILDER not in self.require

    def open(self, folder: Path, *, known: bool = False) -> VerifiedManifest:
        """The manifest in a folder, if a builder's key that counts has signed it.

        `known`: the bundle came in before, when its key still let bundles in.

        Raises:
            TrustError: no good signature, or the key or the bundle is revoked, or out of use.
            FormatError, StateError, MissingVolumeError: see `open_manifest`.
        """
        builders = [key for key in self.keys if key.role == BUILDER]
        try:
            signed = read_signed(
                folder, [key.verifier for key in builders], allow_unsigned=self.allow_unsigned
            )
        except TrustError as error:
            raise _with_rotation_hint(error, folder) from error
        key = next((key for key in builders if key.key_id == signed.key_id), None)
        if key is not None and (why := self.why_not(key, known=known)):
            raise TrustError(f"{folder}: the bundle is signed by {why}")
        self._check_not_revoked(signed, folder)
        return signed.parse()

    def why_not(self, key: TrustedKey, *, known: bool = False) -> str:
        """Why a key does not count; empty when it does."""
        if reason := dict(self.revoked).get(key.key_id):
            return f"key {key.key_id}, which is revoked: {reason}"
        if known:
            return ""
        if key.successor:
            return f"key {key.key_id}, which handed over to key {key.successor}"
        if key.expires is not None and key.expires <= self.now:
            return f"key {key.key_id}, which expired at {key.expires}"
        return ""

    def approvals(
        self, folders: Sequence[Path], verified: VerifiedManifest
    ) -> tuple[tuple[Approval, str, Path], ...]:
        """The decisions on this bundle that known keys signed; of two by one key the later one.

        Raises:
            TrustError: a known key's statement was changed, or says what its key may not.
        """
        found: dict[str, tuple[Approval, str, Path]] = {}
        for folder in folders:
            for key_id, path in statement_files(folder, Approval):
                key = next((key for key in self.keys if key.key_id == key_id), None)
                if key is None:
                    continue
                said = read_statement(Approval, path, key.verifier)
                if said.manifest_sha256 != verified.digest:
                    continue
                # Without a policy keys have no roles, and a rejection is one all the same.
                if self.policy and said.role != key.role:
                    raise TrustError(
                        f"{path}: key {key_id} is of role {key.role} here and signed as {said.role}"
                    )
                if key_id not in found or _later(said, found[key_id][0]):
                    found[key_id] = (said, key_id, path)
        return tuple(found.values())

    def check_not_rejected(self, folders: Sequence[Path], verified: VerifiedManifest) -> None:
        """Refuse a bundle that a key of the policy has rejected.

        Raises:
            TrustError: it has, or see `approvals`.
        """
        for said, key_id, _ in self.approvals(folders, verified):
            # Only the site itself takes a rejection away: another key that revokes the reviewer's does not.
            if said.verdict == "rejected" and key_id not in dict(self.ended):
                words = f": {said.comment}" if said.comment else ""
                raise TrustError(
                    f"{verified.bundle_id} was rejected by {said.by} (key {key_id}){words}",
                    hint="Have the bundle built again without the fault, and reviewed again.",
                )

    def check_approved(self, folders: Sequence[Path], verified: VerifiedManifest) -> None:
        """Refuse a bundle for which not every role that the policy requires has vouched.

        Raises:
            TrustError: a role is missing; the details say what was there and does not count.
        """
        self.check_not_rejected(folders, verified)
        keys = {key.key_id: key for key in self.keys}
        vouching: list[str] = []
        if verified.key_id is not None:
            vouching.append(BUILDER)
        notes: list[str] = []
        for said, key_id, path in self.approvals(folders, verified):
            why = self.why_not(keys[key_id])
            if said.expires is not None and said.expires <= self.now:
                why = f"key {key_id}, and expired at {said.expires}"
            if why:
                notes.append(f"{path.name} is by {why}")
            elif key_id != verified.key_id:
                vouching.append(said.role)
        missing = list(self.require)
        for role in vouching:
            if role in missing:
                missing.remove(role)
        if missing:
            more = f" ({'; '.join(notes)})" if notes else ""
            raise TrustError(
                f"{verified.bundle_id}: the policy requires {', '.join(missing)}, and no such key has"
                f" approved it{more}",
                hint="Have it approved (`airbundle approve`), then bring the approval:"
                " airbundle trust add FILE --root ROOT",
            )

    def with_revocations(self, folder: Path) -> SiteTrust:
        """With what keys in use revoke in a folder: it can only take trust away.

        Raises:
            TrustError: a list was changed.
        """
        return self.revoking(list(self.lists_in(folder)))

    def lists_in(self, folder: Path) -> Iterator[tuple[Revocations, TrustedKey, Path]]:
        """Lists in a folder by known keys that are in use."""
        for key_id, path in statement_files(folder, Revocations):
            key = next((key for key in self.keys if key.key_id == key_id), None)
            if key is not None and not self.why_not(key):
                yield read_statement(Revocations, path, key.verifier), key, path

    def revoking(self, lists: Sequence[tuple[Revocations, TrustedKey, Path]]) -> SiteTrust:
        """With these lists.

        A key revokes bundles, keys of its own role, and builders' keys: who builds has no say over who
        reviews.
        """
        roles = {key.key_id: key.role for key in self.keys}
        more = [
            (one.what, f"{one.reason} (by key {signer.key_id})")
            for said, signer, _ in lists
            for one in said.revoked
            if roles.get(one.what, BUILDER) in (BUILDER, signer.role)
        ]
        return replace(self, revoked=(*self.revoked, *more))

    def _check_not_revoked(self, signed: SignedManifest, folder: Path) -> None:
        if reason := dict(self.revoked).get(signed.digest):
            raise TrustError(
                f"{folder}: this bundle is revoked: {reason}",
                hint="Do not use it; ask the supplier for the bundle that follows it.",
            )


def _with_rotation_hint(error: TrustError, folder: Path) -> TrustError:
    carried = [path.name for _, path in statement_files(folder, Rotation)]
    if not carried:
        return error
    return TrustError(
        str(error),
        hint=f"The supplier may have a new key: {', '.join(carried)} lies here. Ask for the new key's id"
        " by another way, then: airbundle trust add FILE --root ROOT",
    )


def trusted_keys(policy: Policy, make: Callable[[bytes], Verifier]) -> tuple[TrustedKey, ...]:
    """The policy's keys.

    Raises:
        KeyFileError: one is no public Ed25519 key.
        TrustError: one key has two roles, so that one person could approve what they built.
    """
    keys: list[TrustedKey] = []
    for one in policy.keys:
        key = TrustedKey(one.role, make(one.pem.encode()), one.note, one.expires)
        if key.key_id in [other.key_id for other in keys]:
            raise TrustError(
                f"the policy has key {key.key_id} twice", hint="Give each role a key of its own."
            )
        keys.append(key)
    return tuple(keys)


def rotated(
    keys: tuple[TrustedKey, ...], folder: Path, make: Callable[[bytes], Verifier]
) -> tuple[TrustedKey, ...]:
    """The keys after the rotations that a root has accepted, one after the other.

    Raises:
        TrustError: a rotation was changed since, or names another key than it brings.
    """
    waiting = {
        key_id: path
        for kept in kept_folders(folder)
        for key_id, path in statement_files(kept, Rotation)
    }
    progress = True
    while progress:
        progress = False
        for key in keys:
            path = waiting.pop(key.key_id, None)
            if path is not None:
                keys = with_successor(keys, key, path, make)
                progress = True
    return keys


def with_successor(
    keys: tuple[TrustedKey, ...],
    key: TrustedKey,
    path: Path,
    make: Callable[[bytes], Verifier],
) -> tuple[TrustedKey, ...]:
    """The keys after one rotation, which `key` has signed.

    Raises:
        TrustError, FormatError: it is not what it should be.
    """
    said = read_statement(Rotation, path, key.verifier)
    fresh = TrustedKey(key.role, make(said.new_pem.encode()), key.note)
    if said.old_key != key.key_id or said.new_key != fresh.key_id:
        raise TrustError(f"{path}: names other keys than it is signed by and brings")
    known = next((other for other in keys if other.key_id == fresh.key_id), None)
    if known is not None and (known.role != key.role or known.successor):
        raise TrustError(
            f"{path}: key {fresh.key_id} has another role here, or has handed over itself"
        )
    retired = replace(key, successor=fresh.key_id)
    others = tuple(retired if one is key else one for one in keys)
    return others if known is not None else (*others, fresh)


def _later(one: Approval, other: Approval) -> bool:
    """Whether a decision takes the other's place; of two in one second, the rejection."""
    if one.created != other.created:
        return one.created > other.created
    return one.verdict == "rejected"
