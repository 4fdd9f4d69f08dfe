"""Which release is in use: one rename of the link `current`; `previous` names the one before.

`previous` is written first. A kill between the two loses no release: at worst both links name the one in
use, and the way back has to be named by its id.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.releases import linked_release, read_release, releases
from bundler.deploy.root import Root
from bundler.domain.facts import UpgradeRecord
from bundler.domain.variants import MARK
from bundler.errors import StateError, disk_errors
from bundler.format.atomic import remove
from bundler.format.codec import from_bytes
from bundler.format.rehearsal import instead


@dataclass(frozen=True)
class Links:
    """What the two links name; None where there is none."""

    current: str | None
    previous: str | None


def read_links(root: Root) -> Links:
    """What the two links name now."""
    return Links(linked_release(root.current), linked_release(root.previous))


def switch(root: Root, bundle_id: str) -> None:
    """Make a release the one in use, and remember the one that was."""
    before = linked_release(root.current)
    if before is not None and before != bundle_id and read_release(root.release(before)):
        _point(root, root.previous, before)
    _point(root, root.current, bundle_id)


def restore(root: Root, links: Links) -> None:
    """Put both links back as they were."""
    for link, name in ((root.current, links.current), (root.previous, links.previous)):
        if name is not None:
            _point(root, link, name)
        else:
            with disk_errors("removing", link):
                remove(link)


def pending(root: Root) -> UpgradeRecord | None:
    """A change that was interrupted; None also when `install` went another way since."""
    if not root.upgrade.is_file():
        return None
    with disk_errors("reading", root.upgrade):
        record = from_bytes(UpgradeRecord, root.upgrade.read_bytes(), str(root.upgrade))
    current = read_links(root).current
    return record if current in (record.current, record.bundle_id) else None


def ways_on(release_id: str) -> str:
    """What ends an interrupted change to a release, and what goes on with it."""
    goes_on = (
        f"; `airbundle upgrade {release_id}` goes on with it" if MARK not in release_id else ""
    )
    return f"`airbundle rollback` ends it{goes_on}."


def waits_for_its_place(root: Root, bundle_id: str) -> bool:
    """Whether a kill came between the two renames of `exchange`."""
    return read_release(root.again(bundle_id)) is not None and not root.release(bundle_id).exists()


def exchange(root: Root, bundle_id: str) -> None:
    """Put the release that was made anew in the place of the old one; a rerun ends what a kill left."""
    old, new = root.release(bundle_id), root.again(bundle_id)
    if instead("replace", old, why="by the one that was made anew"):
        return
    if old.exists():
        move_aside(root, old)
    with disk_errors("switching", old):
        new.rename(old)
        if not any(new.parent.iterdir()):
            new.parent.rmdir()


def move_aside(root: Root, folder: Path) -> Path:
    """Move a release out of the way, where nothing takes it for one; `gc` removes what lies there."""
    root.make(root.gone)
    number = 0
    while (target := root.gone / f"{folder.name}.{number}").exists():
        number += 1
    with disk_errors("removing", folder):
        folder.rename(target)
    return target


def previous_release(root: Root) -> str:
    """The release to go back to.

    Raises:
        StateError: there is none.
    """
    links = read_links(root)
    if (
        links.previous is not None
        and links.previous != links.current
        and read_release(root.release(links.previous))
    ):
        return links.previous
    others = [one.name for one in releases(root) if one.record and one.use != "current"]
    if others:
        raise StateError(
            f"{root.path}: which release was in use before is not known; installed:"
            f" {', '.join(others)}",
            hint="Name the one to go back to: airbundle rollback BUNDLE --root ROOT",
        )
    raise StateError(
        f"{root.path}: there is no previous release to go back to",
        hint="`airbundle releases --root ROOT` shows what is installed.",
    )


def _point(root: Root, link: Path, bundle_id: str) -> None:
    if instead("point", link, why=f"to {bundle_id}"):
        return
    temporary = link.with_name(f"{link.name}.new")
    with disk_errors("switching", link):
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(Path("releases") / bundle_id)
        temporary.replace(link)
        # Without this a power cut may bring the old link back after the old release was stopped for good.
        folder = os.open(root.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
