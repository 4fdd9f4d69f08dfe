"""Removing a release: renamed aside first, so that a kill leaves no half release that looks whole.

With `purge` the bundle's records go too, and the store's files that it alone names become garbage. What
the site must not forget stays: decisions on the bundle (a rejection counts when it comes again), lists of
revocations, the newest number of each name. Receipts and logs stay as evidence.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.diskuse import Freed
from bundler.deploy.launch import Launcher
from bundler.deploy.releases import (
    CURRENT,
    PREVIOUS,
    linked_release,
    pick_release,
    releases,
    variants_of,
)
from bundler.deploy.root import ORDER_FILE, Root
from bundler.deploy.switching import move_aside, pending, ways_on
from bundler.deploy.trustroot import KEY_FILE, UNSIGNED_MARK
from bundler.domain.variants import bundle_of
from bundler.errors import StateError, disk_errors
from bundler.format import layout
from bundler.format.atomic import remove
from bundler.format.rehearsal import instead, rehearsing

# The manifest first: without it the bundle is not imported, whatever else is left.
_RECORDS = (layout.MANIFEST, layout.SIGNATURE, KEY_FILE, UNSIGNED_MARK, ORDER_FILE)


@dataclass(frozen=True)
class Removed:
    """What went, and bytes of it that nothing else holds."""

    bundle_id: str
    freed: int
    release: bool
    records: bool


@dataclass(frozen=True)
class Remover:
    """Everything that removing needs."""

    root: Root
    launcher: Launcher

    def uninstall(self, bundle_id: str, *, purge: bool, force: bool) -> Removed:
        """Remove a release and, with `purge`, its bundle's records.

        Args:
            bundle_id: its id or the beginning of one.
            purge: forget the import too.
            force: also the release in use.

        Raises:
            StateError: it is not here, its services run, it is in use, or others use its files.
        """
        with self.root.alone():
            name = self._pick(bundle_id, purge=purge)
            self._check_alone(name, purge=purge)
            self._check_idle(name, force=force)
            folder = self.root.release(name)
            installed, freed = folder.is_dir(), Freed()
            size = 0
            if linked_release(self.root.current) == name:
                _unlink(self.root.current)
            if installed:
                size += freed.by(folder)
                remove_release(self.root, folder)
            if linked_release(self.root.previous) == name:
                _unlink(self.root.previous)
            imported = purge and (self.root.bundle(name) / layout.MANIFEST).is_file()
            if imported:
                size += sum(freed.by(self.root.bundle(name) / record) for record in _RECORDS)
                self._forget(name)
            return Removed(name, size, installed, imported)

    def _pick(self, bundle_id: str, *, purge: bool) -> str:
        if purge and not any(one.name.startswith(bundle_id) for one in releases(self.root)):
            return self.root.pick_bundle(bundle_id).name
        return pick_release(self.root, bundle_id).name

    def _check_alone(self, name: str, *, purge: bool) -> None:
        """Files and import stay while a release with other settings needs them."""
        if using := variants_of(self.root, name):
            raise StateError(
                f"{name}: its files are those of {', '.join(using)} too",
                hint=f"Remove that first: airbundle uninstall {using[0]} --root ROOT",
            )
        if purge and bundle_of(name) != name:
            raise StateError(
                f"{name}: is a release with other settings, and the import is that of {bundle_of(name)}",
                hint=f"Remove it without --purge; then: airbundle uninstall {bundle_of(name)} --purge",
            )

    def _check_idle(self, name: str, *, force: bool) -> None:
        running = [s.service for s in self.launcher.living() if s.release_id == name]
        if running:
            raise StateError(
                f"{name}: its services run ({', '.join(running)})",
                hint="Stop them first: airbundle stop --root ROOT",
            )
        began = pending(self.root)
        if began is not None and name in (began.bundle_id, began.current):
            raise StateError(
                f"{name}: the upgrade from {began.current} to {began.bundle_id} was interrupted",
                hint=f"First: {ways_on(began.bundle_id)}",
            )
        uses = {one.name: one.use for one in releases(self.root)}
        if uses.get(name) == CURRENT and not force:
            others = [other for other, use in uses.items() if use == PREVIOUS]
            back = f"airbundle rollback {others[0]}" if others else "airbundle install BUNDLE"
            raise StateError(
                f"{name}: is the release in use",
                hint=f"Put another one in use first ({back}), or give --force.",
            )

    def _forget(self, name: str) -> None:
        folder = self.root.bundle(name)
        for record in _RECORDS:
            with disk_errors("removing", folder / record):
                remove(folder / record)
        # Decisions stay, and with them the folder.
        if not rehearsing() and not any(folder.iterdir()):
            with disk_errors("removing", folder):
                folder.rmdir()


def remove_release(root: Root, folder: Path) -> None:
    """Move a release's folder out of the way, then delete it; `gc` ends what a kill interrupted."""
    if rehearsing():
        instead("remove", folder, Freed().by(folder))
        return
    remove_tree(move_aside(root, folder))
    with disk_errors("removing", root.gone):
        if not any(root.gone.iterdir()):
            root.gone.rmdir()


def remove_tree(path: Path) -> None:
    """Delete a file or a folder with all that is in it."""
    if rehearsing():
        if os.path.lexists(path):
            instead("remove", path, Freed().by(path))
        return
    with disk_errors("removing", path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _unlink(link: Path) -> None:
    with disk_errors("removing", link):
        remove(link)
