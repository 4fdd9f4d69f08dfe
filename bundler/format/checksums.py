"""SHA256SUMS: what `sha256sum -c` reads, derived from the signed manifest alone."""

from __future__ import annotations

from bundler.domain.manifest import Manifest
from bundler.format import layout
from bundler.format.sealing import SUFFIX


def checksums(manifest: Manifest, manifest_sha256: str, signature_sha256: str | None) -> bytes:
    """The file's exact bytes: every file beside it, sorted by name."""
    sums = {volume.name: volume.sha256 for volume in manifest.volumes}
    sums.update({loose.name: loose.sha256 for loose in manifest.loose})
    sums[layout.MANIFEST] = manifest_sha256
    if signature_sha256 is not None:
        sums[layout.SIGNATURE] = signature_sha256
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)).encode()


def agree(found: bytes, wanted: bytes) -> bool:
    """Whether a file is what it should be: all of it or, on a medium with sealed volumes, a part.

    Of a sealed volume the sum is not known beforehand; its seal is what proves it.
    """
    if found == wanted:
        return True
    lines = found.splitlines(keepends=True)
    known = set(wanted.splitlines(keepends=True))
    ends = f"{SUFFIX}\n".encode()
    return any(line.endswith(ends) for line in lines) and all(
        line in known or line.endswith(ends) for line in lines
    )
