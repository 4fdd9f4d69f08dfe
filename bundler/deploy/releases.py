"""The releases of a root: which are installed, which one is in use, what they take on the disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.diskuse import files_below
from bundler.deploy.root import RELEASE_FILE, VARIANT_FILE, Root
from bundler.deploy.variants import with_steps
from bundler.domain.facts import ReleaseRecord
from bundler.domain.variants import Variant, bundle_of
from bundler.errors import FormatError, SpecError, StateError, disk_errors
from bundler.format.codec import from_bytes

CURRENT, PREVIOUS = "current", "previous"
_LARGEST = 64 * 2**20


@dataclass(frozen=True)
class Release:
    """A folder of a release; without a record it is not (wholly) installed."""

    folder: Path
    record: ReleaseRecord | None
    use: str

    @property
    def name(self) -> str:
        """Its id: the bundle's, or that and a digest of other settings."""
        return self.folder.name

    @property
    def bundle_id(self) -> str:
        """The bundle that it was made from."""
        return bundle_of(self.name)

    @property
    def is_variant(self) -> bool:
        """Whether it has settings of its own, and the files of another release."""
        return self.name != self.bundle_id


def read_release(folder: Path) -> ReleaseRecord | None:
    """The record of an installed release; None when it is not (wholly) installed.

    One with other settings is the record of its base, with these settings: whatever is made anew there is
    made anew for both.

    Raises:
        FormatError: the record is none, or of another folder.
    """
    path = folder / RELEASE_FILE
    if bundle_of(folder.name) != folder.name:
        return _read_variant(folder)
    if not path.is_file():
        return None
    with disk_errors("reading", path):
        return from_bytes(ReleaseRecord, _small(path), str(path))


def _read_variant(folder: Path) -> ReleaseRecord | None:
    path = folder / VARIANT_FILE
    if not path.is_file():
        return None
    with disk_errors("reading", path):
        variant = from_bytes(Variant, _small(path), str(path))
    base = read_release(folder.with_name(bundle_of(folder.name)))
    if base is None:
        return None
    if (variant.base, variant.manifest_sha256) != (base.bundle_id, base.manifest_sha256):
        raise FormatError(
            f"{path}: is of {variant.base}, and not of the release that its folder names",
            hint=f"Remove {folder}; the settings are measured again by `airbundle accept --ab`.",
        )
    try:
        services = with_steps(base.services, variant.steps)
    except SpecError as cause:
        raise FormatError(f"{path}: {cause}", hint=f"Remove {folder}.") from cause
    return base.model_copy(
        update={
            "services": services,
            "release": folder.name,
            "variant": variant,
            "installed": max(base.installed, variant.steps[-1].applied),
        }
    )


def _small(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise FormatError(f"{path}: over {_LARGEST} bytes, which no record of a release is")
    return data


def variants_of(root: Root, bundle_id: str) -> list[str]:
    """Ids of the releases that use the files of this one."""
    return [one.name for one in releases(root) if one.is_variant and one.bundle_id == bundle_id]


def linked_release(link: Path) -> str | None:
    """The id of the release that `current` or `previous` names, installed or not; None without a link."""
    return link.readlink().name if link.is_symlink() else None


def current_release(root: Root) -> tuple[Path, ReleaseRecord]:
    """Folder of the files and record of the release in use.

    Raises:
        StateError: none is installed.
    """
    folder = Path(os.path.realpath(root.current))  # also of a link to itself
    record = read_release(folder) if root.current.is_symlink() else None
    if record is None:
        raise StateError(
            f"{root.path}: no release is installed", hint="Run: airbundle install --root ROOT"
        )
    check_not_moved(root, record)
    return root.release(record.bundle_id), record


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
    return sorted(found, key=lambda one: (one.record.installed if one.record else "", one.name))


def pick_release(root: Root, release_id: str) -> Release:
    """The release of that id, or the only one whose id begins so.

    Raises:
        StateError: none, or more than one.
    """
    here = releases(root)
    fitting = [one for one in here if one.name.startswith(release_id)]
    exact = [one for one in fitting if one.name == release_id]
    if len(fitting) > 1 and not exact:
        names = ", ".join(one.name for one in fitting)
        raise StateError(f"{release_id}: fits several releases: {names}")
    if not fitting:
        names = ", ".join(one.name for one in here) or "none"
        raise StateError(
            f"{root.path}: {release_id} is not installed here; installed: {names}",
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
