"""Imported files -> a release beside the old ones; the switch to it is one rename.

A release is installed when its release.json is there; that is written last. Whatever fails before
leaves the release in use untouched and nothing half-installed behind.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.environment import PYTHON, Wanted, make_environment
from bundler.deploy.importing import missing_volumes
from bundler.deploy.interpreter import find_python
from bundler.deploy.needs import check_glibc
from bundler.deploy.preflight import UNPACKED
from bundler.deploy.releases import read_release
from bundler.deploy.removing import remove_tree
from bundler.deploy.root import RELEASE_FILE, Root
from bundler.deploy.switching import exchange, switch, waits_for_its_place
from bundler.domain.facts import ReleaseRecord
from bundler.domain.manifest import Entry, VerifiedManifest
from bundler.errors import IntegrityError, StateError, disk_errors
from bundler.format.atomic import remove
from bundler.format.blocks import content_id
from bundler.format.codec import to_bytes
from bundler.format.drift import drifted_entries
from bundler.format.rehearsal import instead, rehearsing
from bundler.ports import Clock, CommandRunner, Progress


@dataclass(frozen=True)
class Installer:
    """Everything that installing needs."""

    root: Root
    uv: str | None
    runner: CommandRunner
    clock: Clock
    progress: Progress

    def install(self, verified: VerifiedManifest) -> ReleaseRecord:
        """Install an imported bundle and make it current. Needs no network.

        Raises:
            StateError: the import is not complete.
            IntegrityError: a stored file changed since the import.
            HostError: no Python of the wanted version here.
            SpaceError: the disk is full.
            InstallError: the environment cannot be made; the old release stays in use.
        """
        with self.root.alone():
            record = self.prepare(verified)
            switch(self.root, verified.bundle_id)
            # An upgrade that was interrupted before has no way back any more.
            with disk_errors("removing", self.root.upgrade):
                remove(self.root.upgrade)
        return record

    def prepare(self, verified: VerifiedManifest) -> ReleaseRecord:
        """Install an imported bundle beside the release in use. Raises as `install` does."""
        with self.root.alone():
            return self._prepare(verified)

    def _prepare(self, verified: VerifiedManifest) -> ReleaseRecord:
        self._check_complete(verified)
        folder = self.root.release(verified.bundle_id)
        if waits_for_its_place(self.root, verified.bundle_id):
            exchange(self.root, verified.bundle_id)
            folder = self.root.again(verified.bundle_id) if rehearsing() else folder
        record = read_release(folder)
        # An environment's scripts name their interpreter by its whole path.
        if record is None or record.root != str(self.root.path):
            self._check_store(verified)
            record = self._install_whole(folder, verified)
        return record

    def _check_complete(self, verified: VerifiedManifest) -> None:
        missing = missing_volumes(self.root, verified)
        if missing:
            raise StateError(
                f"{verified.bundle_id}: the import lacks {', '.join(missing)}",
                hint="Import the stick that holds them, then install.",
            )

    def make_beside(self, verified: VerifiedManifest) -> ReleaseRecord:
        """Make a release anew, from a store that is checked by SHA-256, where `exchange` takes it from.

        Raises as `install` does.
        """
        with self.root.alone():
            self._check_complete(verified)
            self._check_store(verified, by_sha256=True)
            return self._install_whole(self.root.again(verified.bundle_id), verified, movable=True)

    def _install_whole(
        self, folder: Path, verified: VerifiedManifest, *, movable: bool = False
    ) -> ReleaseRecord:
        if rehearsing():
            check_glibc(verified.manifest.needs)
            instead("make", folder, _size_of(verified), "models, linked, and the environment")
            return self._record(verified, {})
        remove_tree(folder)
        try:
            return self._install_into(folder, verified, movable=movable)
        except BaseException:
            remove_tree(folder)
            raise

    def _install_into(
        self, folder: Path, verified: VerifiedManifest, *, movable: bool
    ) -> ReleaseRecord:
        manifest = verified.manifest
        check_glibc(manifest.needs)
        self.root.make(folder)
        self.progress.note("placing models and wheels")
        for entry in manifest.payload:
            self._place(entry, folder)
        self.progress.note(f"installing {manifest.engine.distribution} {manifest.engine.version}")
        environment = self._make_environment(folder, verified, movable=movable)
        shutil.rmtree(folder / "wheels", ignore_errors=True)
        record = self._record(verified, environment)
        self.root.write(folder / RELEASE_FILE, to_bytes(record))
        return record

    def _record(self, verified: VerifiedManifest, environment: dict[str, str]) -> ReleaseRecord:
        manifest = verified.manifest
        return ReleaseRecord(
            bundle_id=verified.bundle_id,
            manifest_sha256=verified.digest,
            key_id=verified.key_id,
            installed=self.clock.now(),
            root=str(self.root.path),
            python=str(PYTHON),
            engine_name=manifest.engine.name,
            engine_version=manifest.engine.version,
            services=manifest.services,
            environment=environment,
        )

    def _check_store(self, verified: VerifiedManifest, *, by_sha256: bool = False) -> None:
        """SHA-256 decided at the import; xxh3 finds what has drifted since."""
        manifest = verified.manifest
        places = {entry.path: self.root.object(content_id(entry)) for entry in manifest.payload}
        with self.progress.task("check store", manifest.size) as task:
            drifted = drifted_entries(manifest, places, task, by_sha256=by_sha256)
        for entry in drifted:
            with disk_errors("removing", places[entry.path]):
                remove(places[entry.path], "it changed since the import")
        if drifted:
            names = ", ".join(entry.path for entry in drifted[:3])
            more = f" and {len(drifted) - 3} more" if len(drifted) > 3 else ""
            raise IntegrityError(
                f"{self.root.path}: changed in the store since the import, and removed:"
                f" {names}{more}",
                hint="Import the bundle again; only these files are read.",
            )

    def _place(self, entry: Entry, folder: Path) -> None:
        """Give a stored file its name in the release: a hard link, or a copy where links fail."""
        source, target = self.root.object(content_id(entry)), folder / entry.path
        self.root.make(target.parent)
        with disk_errors("writing", target):
            try:
                os.link(source, target)
            except OSError:
                shutil.copyfile(source, target)

    def _make_environment(
        self, folder: Path, verified: VerifiedManifest, *, movable: bool
    ) -> dict[str, str]:
        engine = verified.manifest.engine
        wanted = Wanted(
            bundle_id=verified.bundle_id,
            folder=folder,
            python=find_python(self.root, verified, folder, self.runner, doubted=movable),
            requirements=folder / engine.requirements,
            exclude=engine.exclude,
            movable=movable,
        )
        with disk_errors("writing", folder):
            return make_environment(wanted, self.uv, self.runner, self.progress)


def _size_of(verified: VerifiedManifest) -> int:
    """About what a release takes beside the store: its environment, bytecode included."""
    wheels = sum(entry.size for entry in verified.manifest.payload if entry.kind == "wheel")
    return int(wheels * UNPACKED)
