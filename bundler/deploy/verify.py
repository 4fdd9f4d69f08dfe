"""A folder with a bundle -> everything that is wrong with it, each file and path named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bundler.domain.manifest import Manifest, VerifiedManifest
from bundler.domain.verdict import Finding
from bundler.errors import IntegrityError, MissingVolumeError, disk_errors
from bundler.format import layout
from bundler.format.checksums import checksums
from bundler.format.digests import digest_file, sha256_hex
from bundler.format.trust import open_manifest
from bundler.format.volumes import placed_parts, scan_volume, volume_regions
from bundler.ports import Progress, Task, Verifier, VolumeFormat

READERS = 2


@dataclass(frozen=True)
class Verification:
    """What was found in a folder."""

    verified: VerifiedManifest
    findings: tuple[Finding, ...]
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
    with progress.task("verify", sum(volume.size for volume in manifest.volumes)) as task:
        findings = [*_beside(folder, verified), *_volumes(folder, manifest, form, task)]
    known = {volume.name for volume in manifest.volumes} | {loose.name for loose in manifest.loose}
    known |= {layout.MANIFEST, layout.SIGNATURE, layout.CHECKSUMS}
    there = {path.name for path in folder.iterdir()}
    missing = known - there - ({layout.SIGNATURE} if not verified.signed else set())
    return Verification(
        verified=verified,
        findings=tuple(findings),
        missing=tuple(sorted(missing)),
        strangers=tuple(sorted(there - known)),
    )


def _beside(folder: Path, verified: VerifiedManifest) -> Iterable[Finding]:
    """The small files beside the volumes."""
    for loose in verified.manifest.loose:
        path = folder / loose.name
        if path.is_file():
            with disk_errors("reading", path):
                found = digest_file(path).sha256
            if found != loose.sha256:
                yield Finding(
                    where=loose.name, what="changed", expected=f"sha256 {loose.sha256}", found=found
                )
    sums = folder / layout.CHECKSUMS
    if sums.is_file():
        signature = folder / layout.SIGNATURE
        with disk_errors("reading", sums):
            signed = sha256_hex(signature.read_bytes()) if signature.is_file() else None
            found_sums = sums.read_bytes()
        if found_sums != checksums(verified.manifest, verified.digest, signed):
            yield Finding(
                where=layout.CHECKSUMS, what="changed: it does not agree with the signed manifest"
            )


def _volumes(folder: Path, manifest: Manifest, form: VolumeFormat, task: Task) -> list[Finding]:
    parts = placed_parts(manifest)

    def check(number: int) -> tuple[Finding, ...]:
        volume = manifest.volumes[number]
        path = folder / volume.name
        if not path.is_file():
            return ()
        regions = volume_regions(volume, parts[volume.name], form)
        return scan_volume(path, regions, parts[volume.name], task)

    with ThreadPoolExecutor(READERS) as pool:
        try:
            results = list(pool.map(check, range(len(manifest.volumes))))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [finding for result in results for finding in result]
