"""The releases of a root: which are installed, which one is in use, what they take on the disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.diskuse import files_below
from bundler.deploy.root import RELEASE_FILE, Root
from bundler.domain.facts import ReleaseRecord
from bundler.errors import StateError, disk_errors
from bundler.format.codec import from_bytes

CURRENT, PREVIOUS = "current", "previous"


@dataclass(frozen=True)
class Release:
    """A folder of a release; without a record it is not (wholly) installed."""

    folder: Path
    record: ReleaseRecord | None
    use: str

    @property
    def bundle_id(self) -> str:
        """The bundle that it was made from."""
        return self.folder.name


def read_release(folder: Path) -> ReleaseRecord | None:
    """The record of an installed release; None when it is not (wholly) installed."""
    path = folder / RELEASE_FILE
    if not path.is_file():
        return None
    with disk_errors("reading", path):
        return from_bytes(ReleaseRecord, path.read_bytes(), str(path))


def linked_release(link: Path) -> str | None:
    """The bundle id that `current` or `previous` names, installed or not; None without a link."""
    return link.readlink().name if link.is_symlink() else None


def current_release(root: Root) -> tuple[Path, ReleaseRecord]:
    """Folder and record of the release in use.

    Raises:
        StateError: none is installed.
    """
    folder = root.current.resolve()
    record = read_release(folder) if root.current.is_symlink() else None
    if record is None:
        raise StateError(
            f"{root.path}: no release is installed", hint="Run: airbundle install --root ROOT"
        )
    check_not_moved(root, record)
    return folder, record


def check_not_moved(root: Root, record: ReleaseRecord) -> None:
    """Refuse a release whose programs name another place.

    Raises:
        StateError: the root was moved since it was installed.
    """
    if record.root != str(root.path):
        raise StateError(
            f"{root.path}: this root was moved here from {record.root}; its programs do not start",
            hint="Run `airbundle install` again: it makes the release anew from the store.",
        )


def releases(root: Root) -> list[Release]:
    """Every release folder, whole or not, the oldest first."""
    uses = {linked_release(root.previous): PREVIOUS, linked_release(root.current): CURRENT}
    found = [
        Release(folder, read_release(folder), uses.get(folder.name, ""))
        for folder in root.releases.glob("*")
        if folder.is_dir() and not folder.name.startswith(".")
    ]
    return sorted(
        found, key=lambda one: (one.record.installed if one.record else "", one.bundle_id)
    )


def pick_release(root: Root, bundle_id: str) -> Release:
    """The release of that id, or the only one whose id begins so.

    Raises:
        StateError: none, or more than one.
    """
    here = releases(root)
    fitting = [one for one in here if one.bundle_id.startswith(bundle_id)]
    exact = [one for one in fitting if one.bundle_id == bundle_id]
    if len(fitting) > 1 and not exact:
        names = ", ".join(one.bundle_id for one in fitting)
        raise StateError(f"{bundle_id}: fits several releases: {names}")
    if not fitting:
        names = ", ".join(one.bundle_id for one in here) or "none"
        raise StateError(
            f"{root.path}: {bundle_id} is not installed here; installed: {names}",
            hint="`airbundle releases --root ROOT` shows them; `airbundle install` adds one.",
        )
    return (exact or fitting)[0]


def space_of(root: Root, folder: Path) -> tuple[int, int]:
    """Bytes on the disk of a release's own files, and of those that it shares with the store."""
    stored = {node.inode for node in files_below(root.store)}
    own: dict[tuple[int, int], int] = {}
    shared: dict[tuple[int, int], int] = {}
    for node in files_below(folder):
        (shared if node.inode in stored else own)[node.inode] = node.size
    return sum(own.values()), sum(shared.values())
