"""A reviewer's decision on a bundle, as a statement beside its manifest."""

from __future__ import annotations

from pathlib import Path

from bundler.domain.manifest import VerifiedManifest
from bundler.domain.trust import Approval, Verdict
from bundler.errors import TrustError
from bundler.format.statements import write_statement
from bundler.ports import Signer


def decide(
    folder: Path,
    verified: VerifiedManifest,
    *,
    verdict: Verdict,
    by: str,
    role: str,
    comment: str,
    now: str,
    expires: str | None,
    key_id: str,
    signer: Signer | None,
) -> tuple[Path, Approval]:
    """Write `approval-KEY.json`, and its signature when the key is here.

    A later decision by the same key takes the place of an earlier one.

    Raises:
        TrustError: the key is the builder's own, or the decision would have expired already.
        SpaceError, FileAccessError: of the disk.
    """
    if key_id == verified.key_id:
        raise TrustError(
            f"key {key_id} built this bundle; who builds cannot review",
            hint="Sign with the reviewer's own key.",
        )
    said = Approval(
        bundle=verified.manifest.name,
        sequence=verified.manifest.sequence,
        manifest_sha256=verified.digest,
        role=role,
        verdict=verdict,
        by=by,
        comment=comment,
        created=now,
        expires=expires,
    )
    if said.expires is not None and said.expires <= now:
        raise TrustError(f"the decision would expire at {said.expires}, and now it is {now}",
                         hint="Give a later --expires.")  # fmt: skip
    return write_statement(folder, said, key_id, signer), said
