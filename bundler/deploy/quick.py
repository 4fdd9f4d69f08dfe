"""Has anything drifted since the import? By xxh3, at memory speed: bit rot and slips, not attacks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.root import Root
from bundler.domain.manifest import Entry, VerifiedManifest
from bundler.errors import IntegrityError
from bundler.format.blocks import content_id
from bundler.format.drift import drifted_entries
from bundler.ports import Progress


@dataclass(frozen=True)
class QuickCheck:
    """What was looked at, bytes, and what is no longer what was imported."""

    checked: int
    stored: tuple[Entry, ...]
    released: tuple[Entry, ...]

    def raise_if_bad(self, root: Root) -> None:
        """Raise what the findings mean.

        Raises:
            IntegrityError: something drifted; everything is named.
        """
        lines = [f"{entry.path}: its stored copy changed since the import" for entry in self.stored]
        lines += [f"{entry.path}: the release's copy changed" for entry in self.released]
        if lines:
            count = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
            raise IntegrityError(
                f"{root.path}: {lines[0]}{count}",
                hint="Import the bundle again, then install it again; only what changed is read.",
                details=lines if len(lines) > 1 else (),
            )


def quick_check(root: Root, verified: VerifiedManifest, progress: Progress) -> QuickCheck:
    """Compare an imported bundle's stored files, and its release's own copies, with the manifest."""
    manifest = verified.manifest
    stored = {entry.path: root.object(content_id(entry)) for entry in manifest.payload}
    release = root.release(verified.bundle_id)
    # A release's files are links to the stored ones, except where links cannot be made.
    own = {path: release / path for path in stored if _is_own(release / path, stored[path])}
    total = manifest.size + sum(e.size for e in manifest.entries if e.path in own)
    with progress.task("quick check", total) as task:
        return QuickCheck(
            checked=total,
            stored=drifted_entries(manifest, stored, task),
            released=drifted_entries(manifest, own, task),
        )


def _is_own(path: Path, stored: Path) -> bool:
    return path.is_file() and not (stored.is_file() and path.samefile(stored))
