"""Statements on their way into a root: each checked, the newer in place of the older."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bundler.deploy.root import Root
from bundler.deploy.sitetrust import (
    SiteTrust,
    TrustedKey,
    newest,
    revocations_in,
    with_successor,
)
from bundler.deploy.trustroot import Make
from bundler.domain.manifest import VerifiedManifest
from bundler.domain.trust import Approval, Rotation
from bundler.errors import StateError, TrustError
from bundler.format import layout
from bundler.format.statements import KINDS, read_statement, signature_path
from bundler.format.trust import read_small


def keep_approvals(
    root: Root, folders: Sequence[Path], verified: VerifiedManifest, trust: SiteTrust
) -> None:
    """Copy the decisions on a bundle beside its records, the latest of each key."""
    records = root.bundle(verified.bundle_id)
    for _, _, path in trust.approvals([records, *folders], verified):
        if path.parent != records:
            _keep(root, path, records)


def keep_revocations(root: Root, folder: Path, trust: SiteTrust) -> list[str]:
    """Copy newer lists of revocations; gives the names of the files."""
    kept = []
    for _, key_id, path in revocations_in(folder, trust.keys, trust.why_not):
        here = root.trust / path.name
        before = read_small(here, layout.MAX_STATEMENT_BYTES) if here.is_file() else None
        if newest(before, read_small(path, layout.MAX_STATEMENT_BYTES), str(path)):
            signer = next(key for key in trust.keys if key.key_id == key_id)
            root.write(root.trust / f"{key_id}.pem", signer.verifier.pem)
            _keep(root, path, root.trust)
            kept.append(path.name)
    return kept


def accept_statement(
    root: Root, path: Path, trust: SiteTrust, bundles: Sequence[VerifiedManifest], make: Make
) -> str:
    """Take in one statement file, and say what it changes.

    Raises:
        TrustError: it is not by a key that may say it.
        StateError: it is no statement, or is about a bundle that is not here.
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
            f"{path}: by key {found[2]}, which is not in the policy",
            hint="Put a policy with that key in force: airbundle trust use POLICY.yaml --root ROOT",
        )
    if why := trust.why_not(key):
        raise TrustError(f"{path}: by {why}")
    with root.alone():
        if found[1] == KINDS[Approval]:
            return _accept_approval(root, path, key, trust, bundles)
        if found[1] == KINDS[Rotation]:
            keys = with_successor(trust.keys, key, path, make)
            _keep(root, path, root.trust)
            return f"key {keys[-1].key_id} follows key {key.key_id} as {key.role}"
        kept = keep_revocations(root, path.parent, trust)
        return f"revocations by key {key.key_id}: {'taken in' if kept else 'known already'}"


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
    keep_approvals(root, [path.parent], about, trust)
    return f"{about.bundle_id}: {said.verdict} by {said.by} (key {key.key_id}, {said.role})"


def _keep(root: Root, path: Path, into: Path) -> None:
    """Copy a statement that was found good; the signature first, as `write_statement` does."""
    data = read_small(path, layout.MAX_STATEMENT_BYTES)
    sign = read_small(signature_path(path), layout.MAX_STATEMENT_BYTES)
    root.write(signature_path(into / path.name), sign)
    root.write(into / path.name, data)
