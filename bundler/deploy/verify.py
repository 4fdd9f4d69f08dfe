"""A folder with a bundle -> everything that is wrong with it, each file and path named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bundler.domain.manifest import Entry, Manifest, VerifiedManifest, VolumeEntry
from bundler.domain.verdict import Damage
from bundler.errors import IntegrityError, MissingVolumeError, disk_errors
from bundler.format import layout
from bundler.format.checksums import checksums
from bundler.format.digests import digest_file, sha256_hex
from bundler.format.trust import open_manifest
from bundler.format.volumes import joined_sha256, placed_parts, scan_volume, volume_regions
from bundler.format.workers import in_parallel
from bundler.ports import Progress, Task, Verifier, VolumeFormat

READERS = 2


@dataclass(frozen=True)
class Verification:
    """What was found in a folder."""

    verified: VerifiedManifest
    findings: tuple[Damage, ...]
    missing: tuple[str, ...]
    strangers: tuple[str, ...]

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
    verifiers: Sequence[Verifier],
    form: VolumeFormat,
    progress: Progress,
    allow_unsigned: bool = False,
) -> Verification:
    """Check signature, then every byte of every file.

    Raises:
        TrustError, FormatError, StateError, MissingVolumeError: the manifest cannot be trusted or
            read; nothing else was looked at then.
    """
    verified = open_manifest(folder, verifiers, allow_unsigned=allow_unsigned)
    manifest = verified.manifest
    known = {volume.name for volume in manifest.volumes} | {loose.name for loose in manifest.loose}
    known |= {layout.MANIFEST, layout.SIGNATURE, layout.CHECKSUMS}
    files = {path.name: path for path in folder.iterdir() if path.is_file()}
    others = {path.name for path in folder.iterdir()} - files.keys()
    cut = [entry for entry in manifest.entries if len(entry.parts) > 1]
    total = sum(volume.size for volume in manifest.volumes) + sum(entry.size for entry in cut)
    with progress.task("verify", total) as task:
        findings = [
            *(Damage(where=name, what="not a regular file") for name in sorted(known & others)),
            *_beside(folder, verified),
            *_volumes(files, manifest, form, task),
        ]
        if not findings and all(volume.name in files for volume in manifest.volumes):
            findings += _cut_entries(files, cut, task)
    missing = known - files.keys() - others - ({layout.SIGNATURE} if not verified.signed else set())
    return Verification(
        verified=verified,
        findings=tuple(findings),
        missing=tuple(sorted(missing)),
        strangers=tuple(sorted((files.keys() | others) - known)),
    )


def _beside(folder: Path, verified: VerifiedManifest) -> Iterable[Damage]:
    """The small files beside the volumes."""
    for loose in verified.manifest.loose:
        path = folder / loose.name
        if path.is_file():
            with disk_errors("reading", path):
                found = digest_file(path).sha256
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
        if found_sums != checksums(verified.manifest, verified.digest, signed):
            yield Damage(
                where=layout.CHECKSUMS, what="changed: it does not agree with the signed manifest"
            )


def _volumes(
    files: Mapping[str, Path], manifest: Manifest, form: VolumeFormat, task: Task
) -> list[Damage]:
    parts = placed_parts(manifest)

    def check(volume: VolumeEntry, shared: Task) -> tuple[Damage, ...]:
        regions = volume_regions(volume, parts[volume.name], form)
        return scan_volume(files[volume.name], volume, regions, parts[volume.name], shared)

    there = [volume for volume in manifest.volumes if volume.name in files]
    return [f for found in in_parallel(READERS, check, there, task) for f in found]


def _cut_entries(files: Mapping[str, Path], cut: Sequence[Entry], task: Task) -> list[Damage]:
    """A whole file's SHA-256 follows from no part's; it is what the store will trust."""

    def check(entry: Entry, shared: Task) -> Damage | None:
        found = joined_sha256(entry, files, shared)
        if found == entry.sha256:
            return None
        what = "its parts are right, but the manifest names another SHA-256 for the whole file"
        return Damage(where=entry.path, what=what, expected=entry.sha256, found=found)

    return [finding for finding in in_parallel(READERS, check, cut, task) if finding]
