"""What a root remembers of trust: the policy in force, accepted statements, the newest of each name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.policyfile import kept_policy
from bundler.deploy.root import Root
from bundler.deploy.sitetrust import (
    SiteTrust,
    TrustedKey,
    rotated,
    trusted_keys,
)
from bundler.domain.manifest import VerifiedManifest
from bundler.domain.trust import BUILDER, Policy, Revocations, Seen
from bundler.errors import KeyFileError, PolicyError, TrustError
from bundler.format import layout
from bundler.format.codec import from_bytes, to_bytes
from bundler.format.statements import kept_folders, read_statement, statement_files
from bundler.format.trust import open_manifest, read_small
from bundler.ports import Verifier

Make = Callable[[bytes], Verifier]
KEY_FILE = "key.pem"
UNSIGNED_MARK = "UNSIGNED"


@dataclass(frozen=True)
class Gate:
    """Makes what decides for a root: how keys are read, and what time it is (UTC)."""

    make: Make
    now: str

    def site(
        self,
        root: Root | None,
        *,
        policy: Policy | None = None,
        keys: Sequence[Verifier] = (),
        unsigned: bool = False,
    ) -> SiteTrust:
        """See `site_trust`."""
        return site_trust(
            root, make=self.make, now=self.now, policy=policy, keys=keys, unsigned=unsigned
        )


def open_record(root: Root, bundle_id: str | None, gate: Gate) -> VerifiedManifest:
    """The manifest of an imported bundle, its signature checked again with the key it came with.

    Says nothing of the policy or of what was revoked since: for looking only.

    Raises:
        StateError: no such bundle.
        TrustError: the records in the root were changed.
    """
    folder, keys, unsigned = _vouched(root, bundle_id, gate)
    return open_manifest(folder, keys, allow_unsigned=unsigned)


def open_imported(root: Root, bundle_id: str | None, gate: Gate) -> VerifiedManifest:
    """As `open_record`, for use: what the policy forbids, or what was revoked since, is refused.

    Raises:
        StateError: no such bundle.
        TrustError: it may not be used here.
    """
    folder, keys, unsigned = _vouched(root, bundle_id, gate)
    return gate.site(root, keys=keys, unsigned=unsigned).open(folder, known=True)


def check_may_install(root: Root, verified: VerifiedManifest, gate: Gate) -> None:
    """Refuse a bundle for which not every role that the policy requires has vouched.

    Raises:
        TrustError: see `SiteTrust.check_approved`.
    """
    trust = gate.site(root, unsigned=not verified.signed)
    trust.check_approved(kept_folders(root.decisions(verified.bundle_id)), verified)


def open_for_return(root: Root, bundle_id: str, gate: Gate) -> VerifiedManifest:
    """As `open_imported`, for a release that was let in before and is to serve again.

    An approval that has expired since lets nothing in, and does not bar the way back.

    Raises:
        StateError: no such bundle.
        TrustError: it was revoked or rejected since.
    """
    verified = open_imported(root, bundle_id, gate)
    trust = gate.site(root, unsigned=not verified.signed)
    trust.check_not_rejected(kept_folders(root.decisions(verified.bundle_id)), verified)
    return verified


def _vouched(
    root: Root, bundle_id: str | None, gate: Gate
) -> tuple[Path, tuple[Verifier, ...], bool]:
    folder = root.pick_bundle(bundle_id)
    unsigned = (folder / UNSIGNED_MARK).is_file()
    keys = () if unsigned else (gate.make(read_small(folder / KEY_FILE, 4096)),)
    return folder, keys, unsigned


def site_trust(
    root: Root | None,
    *,
    make: Make,
    now: str,
    policy: Policy | None = None,
    keys: Sequence[Verifier] = (),
    unsigned: bool = False,
) -> SiteTrust:
    """What decides here: the given policy, else the root's, else the given keys as builders.

    Raises:
        TrustError: a policy is in force, and what was given goes against it.
        PolicyError: the root's policy cannot be used.
    """
    policy = policy or (kept_policy(root) if root else None)
    if policy is None:
        builders = tuple(TrustedKey(BUILDER, key) for key in keys)
        trust = SiteTrust(builders, () if unsigned else (BUILDER,), now)
    else:
        trust = _of_policy(policy, root, make, now)
        _check_given(trust, keys, unsigned=unsigned)
    return trust.revoking(kept_revocations(root, trust, make)) if root is not None else trust


def kept_revocations(
    root: Root, trust: SiteTrust, make: Make
) -> list[tuple[Revocations, TrustedKey, Path]]:
    """Lists that a root took in: they count for good, whatever became of the keys that signed them.

    Raises:
        TrustError: a list was changed.
    """
    roles = {key.key_id: key.role for key in trust.keys}
    found = []
    for folder in kept_folders(root.revocations):
        for key_id, path in statement_files(folder, Revocations):
            pem = read_small(root.trust / f"{key_id}.pem", 4096)
            signer = TrustedKey(roles.get(key_id, BUILDER), make(pem))
            found.append((read_statement(Revocations, path, signer.verifier), signer, path))
    return found


def _of_policy(policy: Policy, root: Root | None, make: Make, now: str) -> SiteTrust:
    try:
        keys = trusted_keys(policy, make)
    except KeyFileError as cause:
        raise PolicyError(f"the policy: {cause}") from cause
    if root is not None:
        keys = rotated(keys, root.rotations, make)
    return SiteTrust(
        keys=keys,
        require=policy.require,
        now=now,
        ended=tuple((one.what, one.reason) for one in policy.revoked),
        revoked=tuple((one.what, one.reason) for one in policy.revoked),
        downgrade=policy.downgrade == "allow",
        policy=True,
    )


def _check_given(trust: SiteTrust, keys: Sequence[Verifier], *, unsigned: bool) -> None:
    known = {key.key_id for key in trust.keys}
    strange = [key.key_id for key in keys if key.key_id not in known]
    if strange:
        raise TrustError(
            f"key {', '.join(strange)} is not in the policy that is in force here",
            hint="`airbundle trust show --root ROOT` shows whose keys count.",
        )
    if unsigned and not trust.allow_unsigned:
        raise TrustError(
            "the policy that is in force here requires a builder's signature",
            hint="Bring a signed bundle.",
        )


def check_not_older(
    root: Root, verified: VerifiedManifest, trust: SiteTrust, *, allow: bool = False
) -> None:
    """Refuse a bundle older than one of its name that came in: an attacker's way to an old hole.

    One that is here already may be completed, and one of the same number comes from the same lock.

    Raises:
        TrustError: it is older.
    """
    path = root.seen(verified.manifest.name)
    if not path.is_file() or (root.bundle(verified.bundle_id) / layout.MANIFEST).is_file():
        return
    seen = from_bytes(Seen, read_small(path, layout.MAX_STATEMENT_BYTES), str(path))
    older = verified.manifest.sequence < seen.sequence
    if older and not (trust.downgrade or (allow and not trust.policy)):
        how = "the policy needs `downgrade: allow`" if trust.policy else "give --allow-downgrade"
        raise TrustError(
            f"{verified.bundle_id} has the number {verified.manifest.sequence}, and"
            f" {seen.sequence} of {seen.name} came in before: it is older",
            hint=f"To use it on purpose, {how}; to go back to a release, install it by its id.",
        )


def keep_seen(root: Root, verified: VerifiedManifest) -> None:
    """Remember that this bundle came in."""
    path = root.seen(verified.manifest.name)
    sequence = verified.manifest.sequence
    if path.is_file():
        data = read_small(path, layout.MAX_STATEMENT_BYTES)
        if from_bytes(Seen, data, str(path)).sequence >= sequence:
            return
    record = Seen(name=verified.manifest.name, sequence=sequence, manifest_sha256=verified.digest)
    root.write(path, to_bytes(record))


def newest_seen(root: Root) -> tuple[Seen, ...]:
    """The newest bundle of each name that came in."""
    return tuple(
        from_bytes(Seen, read_small(path, layout.MAX_STATEMENT_BYTES), str(path))
        for path in sorted(root.trust.glob("seen-*.json"))
    )
