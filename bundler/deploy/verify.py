"""A folder with a bundle -> everything that is wrong with it, each file and path named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bundler.deploy.sitetrust import SiteTrust
from bundler.domain.manifest import VerifiedManifest
from bundler.domain.verdict import Damage
from bundler.errors import IntegrityError, MissingVolumeError, disk_errors
from bundler.format import layout
from bundler.format.checksums import agree, checksums
from bundler.format.digests import sha256_file, sha256_hex
from bundler.format.places import find_volumes, unsealed_name
from bundler.format.reviewpack import FOLDER, SUMS, check_pack
from bundler.format.sealing import VolumeKey
from bundler.format.volumes import scan_volumes
from bundler.ports import Progress, VolumeFormat


@dataclass(frozen=True)
class Verification:
    """What was found in a folder. `pack`: the reviewer's pack, when there is one."""

    verified: VerifiedManifest
    findings: tuple[Damage, ...]
    missing: tuple[str, ...]
    strangers: tuple[str, ...]
    pack: Literal["", "signed", "unsigned"] = ""

    def raise_if_bad(self) -> None:
        """Raise what the findings mean.

        Raises:
            IntegrityError: some bytes are wrong.
            MissingVolumeError: nothing is wrong, but files are missing.
        """
        if self.findings:
            lines = [finding.line() for finding in self.findings]
            count = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
            raise IntegrityError(f"{lines[0]}{count}", details=lines if len(lines) > 1 else ())
        if self.missing:
            raise MissingVolumeError(f"missing: {', '.join(self.missing)}")


def verify(
    folder: Path,
    *,
    trust: SiteTrust,
    form: VolumeFormat,
    progress: Progress,
    key: VolumeKey | None = None,
) -> Verification:
    """Check signature, then every byte of every file.

    Raises:
        TrustError, FormatError, StateError, MissingVolumeError: the manifest cannot be trusted or
            read; nothing else was looked at then.
    """
    trust = trust.with_revocations(folder)
    verified = trust.open(folder)
    if trust.policy:
        trust.check_approved([folder], verified)
    manifest = verified.manifest
    known = {volume.name for volume in manifest.volumes} | {loose.name for loose in manifest.loose}
    known |= {layout.MANIFEST, layout.SIGNATURE, layout.CHECKSUMS}
    files = {path.name: path for path in folder.iterdir() if path.is_file()}
    others = {path.name for path in folder.iterdir()} - files.keys()
    volumes = find_volumes(manifest, [folder], key)
    vouching = (one.verifier for one in trust.keys if one.key_id == verified.key_id)
    in_pack, pack_signed = check_pack(folder, verified, next(vouching, None))
    has_pack = (folder / FOLDER / SUMS).is_file()
    sealed = {place.path.name for place in volumes.values() if place.key is not None}
    with progress.task("verify", sum(volume.size for volume in manifest.volumes)) as task:
        findings = [
            *(Damage(where=name, what="not a regular file") for name in sorted(known & others)),
            *_beside(folder, verified),
            *in_pack,
            *scan_volumes(volumes, manifest, form, task),
        ]
    missing = (
        known
        - files.keys()
        - others
        - {unsealed_name(name) for name in sealed}
        - ({layout.SIGNATURE} if not verified.signed else set())
    )
    return Verification(
        verified=verified,
        findings=tuple(findings),
        missing=tuple(sorted(missing)),
        strangers=tuple(
            sorted(
                name
                for name in (files.keys() | others)
                - known
                - sealed
                - ({FOLDER} if has_pack else set())
                if not layout.is_statement(name)
            )
        ),
        pack=("signed" if pack_signed else "unsigned") if has_pack else "",
    )


def _beside(folder: Path, verified: VerifiedManifest) -> Iterable[Damage]:
    """The small files beside the volumes."""
    for loose in verified.manifest.loose:
        path = folder / loose.name
        if path.is_file():
            with disk_errors("reading", path):
                found = sha256_file(path)
            if found != loose.sha256:
                yield Damage(
                    where=loose.name, what="changed", expected=f"sha256 {loose.sha256}", found=found
                )
    sums = folder / layout.CHECKSUMS
    if sums.is_file():
        signature = folder / layout.SIGNATURE
        with disk_errors("reading", sums):
            signed = sha256_hex(signature.read_bytes()) if signature.is_file() else None
            found_sums = sums.read_bytes()
        if not agree(found_sums, checksums(verified.manifest, verified.digest, signed)):
            yield Damage(
                where=layout.CHECKSUMS, what="changed: it does not agree with the signed manifest"
            )
