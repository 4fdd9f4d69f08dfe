"""Statements on their way into a root: each checked, kept for good beside what was there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bundler.deploy.root import Root
from bundler.deploy.sitetrust import SiteTrust, TrustedKey, with_successor
from bundler.deploy.trustroot import Make
from bundler.domain.manifest import VerifiedManifest
from bundler.domain.trust import Approval, Revocations, Rotation
from bundler.errors import StateError, TrustError
from bundler.format import layout
from bundler.format.statements import KINDS, keep_statement, kept_folders, read_statement


def keep_approvals(
    root: Root, folders: Sequence[Path], verified: VerifiedManifest, trust: SiteTrust
) -> None:
    """Copy the decisions on a bundle beside its records.

    Raises:
        TrustError: one was changed.
        SpaceError, FileAccessError: of the disk.
    """
    for folder in folders:
        for _, _, path in trust.approvals([folder], verified):
            keep_statement(path, root.decisions(verified.bundle_id))


def keep_revocations(root: Root, folder: Path, trust: SiteTrust) -> None:
    """Copy lists of revocations by keys in use.

    Raises:
        TrustError: one was changed.
        SpaceError, FileAccessError: of the disk.
    """
    for _, key, path in trust.lists_in(folder):
        _keep_list(root, key, path)


def accept_statement(
    root: Root, path: Path, trust: SiteTrust, bundles: Sequence[VerifiedManifest], make: Make
) -> str:
    """Take in one statement file, and say what counts from now on.

    Raises:
        TrustError: it is not by a key that may say it.
        StateError: it is no statement, is about a bundle that is not here, or needs a policy.
        MissingVolumeError: it is not there.
    """
    found = layout.STATEMENT.fullmatch(path.name)
    if not found:
        raise StateError(
            f"{path}: is no statement: they are called approval-KEY.json, rotation-KEY.json or"
            " revocations-KEY.json",
            hint="Give the file as it was written, with its .sig beside it.",
        )
    key = next((key for key in trust.keys if key.key_id == found[2]), None)
    if key is None:
        raise TrustError(
            f"{path}: by key {found[2]}, which is not known here",
            hint="Put a policy with that key in force: airbundle trust use POLICY.yaml --root ROOT",
        )
    if why := trust.why_not(key):
        raise TrustError(f"{path}: by {why}")
    with root.alone():
        if found[1] == KINDS[Approval]:
            return _accept_approval(root, path, key, trust, bundles)
        if found[1] == KINDS[Rotation]:
            return _accept_rotation(root, path, key, trust, make)
        said = read_statement(Revocations, path, key.verifier)
        _keep_list(root, key, path)
        counting = {what for what, _ in trust.revoking([(said, key, path)]).revoked}
        idle = [one.what for one in said.revoked if one.what not in counting]
        more = f"; not revoked, since a {key.role} may not: {', '.join(idle)}" if idle else ""
        return f"{len(said.revoked) - len(idle)} revoked by key {key.key_id}{more}"


def _accept_rotation(root: Root, path: Path, key: TrustedKey, trust: SiteTrust, make: Make) -> str:
    if not trust.policy:
        raise StateError(
            f"{path}: no policy is in force, so that no key has a role to hand over",
            hint="Give the new key with --key from now on, or put a policy in force.",
        )
    keys = with_successor(trust.keys, key, path, make)
    keep_statement(path, root.rotations)
    after = next(one for one in keys if one.key_id == key.key_id)
    return f"key {after.successor} follows key {key.key_id} as {key.role}"


def _accept_approval(
    root: Root, path: Path, key: TrustedKey, trust: SiteTrust, bundles: Sequence[VerifiedManifest]
) -> str:
    said = read_statement(Approval, path, key.verifier)
    about = next((one for one in bundles if one.digest == said.manifest_sha256), None)
    if about is None:
        raise StateError(
            f"{path}: is about {said.bundle}-{said.manifest_sha256[:12]}, which is not imported here",
            hint="Import that bundle first.",
        )
    if trust.policy and said.role != key.role:
        raise TrustError(
            f"{path}: key {key.key_id} is of role {key.role} and signed as {said.role}"
        )
    keep_statement(path, root.decisions(about.bundle_id))
    counting = [
        one
        for one, key_id, _ in trust.approvals(kept_folders(root.decisions(about.bundle_id)), about)
        if key_id == key.key_id
    ]
    late = "" if said in counting else f"; a later decision counts: {counting[0].verdict}"
    return f"{about.bundle_id}: {said.verdict} by {said.by} (key {key.key_id}, {said.role}){late}"


def _keep_list(root: Root, key: TrustedKey, path: Path) -> None:
    root.write(root.trust / f"{key.key_id}.pem", key.verifier.pem)
    keep_statement(path, root.revocations)
