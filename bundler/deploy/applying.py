"""What a comparison found better becomes a release: other settings, the files of the one that is there.

Its record is written last, and then one rename of `current` makes it the one in use: a kill before leaves the
old release in use, a kill after leaves the new one, and `rollback` goes back. Nothing is started or stopped.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.releases import current_release, pick_release, read_release
from bundler.deploy.root import VARIANT_FILE, Root
from bundler.deploy.switching import pending, switch, ways_on
from bundler.deploy.trustroot import Gate, open_for_return
from bundler.deploy.variants import variant, with_steps
from bundler.domain.facts import ReleaseRecord
from bundler.domain.spec import Service
from bundler.domain.variants import MARK, Step, Variant, same_settings
from bundler.errors import StateError, disk_errors
from bundler.format.codec import to_bytes
from bundler.format.digests import sha256_hex
from bundler.ports import EngineAdapter

_DIGITS = 8
_ENVIRONMENT = "venv"


@dataclass(frozen=True)
class Applied:
    """Which release is in use now, and whether that is another than before."""

    release: str
    new: bool
    said: str


@dataclass(frozen=True)
class Applier:
    """Everything that applying needs."""

    root: Root
    gate: Gate

    def check_may_begin(self) -> None:
        """Say before hours of measuring what would stand in the way after them.

        Raises:
            StateError: another change of releases was interrupted.
        """
        began = pending(self.root)
        if began is not None:
            raise StateError(
                f"{self.root.path}: the change to {began.bundle_id} was interrupted",
                hint=ways_on(began.bundle_id),
            )

    def settings(self, measured: str, step: Step, engine: EngineAdapter) -> Applied:
        """Put the settings of a comparison's winner in use.

        Args:
            measured: id of the release that was compared.
            step: the winner's settings, and which comparison says so.
            engine: refuses what it cannot run.

        Raises:
            StateError: another release is in use by now, or a change was interrupted.
            SpecError: the engine cannot run it.
            TrustError: the bundle was revoked or rejected meanwhile.
        """
        with self.root.alone():
            self.check_may_begin()
            _, record = current_release(self.root)
            self._check_still(measured, record)
            open_for_return(self.root, record.bundle_id, self.gate)
            made = variant(record, step.changes, engine, step.service)
            if same_settings(made.services, record.services):
                return Applied(
                    record.release_id, False, f"{record.release_id} has these settings already"
                )
            base = read_release(self.root.release(record.bundle_id))
            if base is None:
                raise StateError(f"{record.bundle_id}: is not wholly installed")
            if same_settings(made.services, base.services):
                switch(self.root, base.release_id)
                return Applied(base.release_id, True, _said(base.release_id, record.release_id))
            steps = (*(record.variant.steps if record.variant else ()), step)
            # As it will be read, so that nothing is written that cannot be.
            services = with_steps(base.services, steps)
            name = f"{base.bundle_id}{MARK}{_digest(services)}"
            self._write(name, base, Variant(
                base=base.bundle_id, manifest_sha256=base.manifest_sha256, steps=steps,
            ))  # fmt: skip
            switch(self.root, name)
            return Applied(name, True, _said(name, record.release_id))

    def release(self, measured: str, wanted: str) -> Applied:
        """Put another installed release in use, which a comparison found better. Raises as `settings` does."""
        with self.root.alone():
            self.check_may_begin()
            _, record = current_release(self.root)
            self._check_still(measured, record)
            name = pick_release(self.root, wanted).name
            target = read_release(self.root.release(name))
            if target is None:
                raise StateError(f"{name}: is not wholly installed")
            if name == record.release_id:
                return Applied(name, False, f"{name} is the release in use already")
            open_for_return(self.root, target.bundle_id, self.gate)
            switch(self.root, name)
            return Applied(name, True, _said(name, record.release_id))

    def _check_still(self, measured: str, record: ReleaseRecord) -> None:
        if record.release_id != measured:
            raise StateError(
                f"{record.release_id} is in use, and {measured} was when this was compared",
                hint="Put that one in use first (airbundle rollback), or compare again.",
            )

    def _write(self, name: str, base: ReleaseRecord, made: Variant) -> None:
        folder = self.root.release(name)
        self.root.make(folder)
        link = folder / _ENVIRONMENT
        with disk_errors("writing", link):
            # Scripts that were exported name programs by `current/venv`, whichever release that is.
            if not link.is_symlink():
                link.symlink_to(Path("..") / base.bundle_id / _ENVIRONMENT)
        self.root.write(folder / VARIANT_FILE, to_bytes(made))
        with disk_errors("writing", folder):
            _sync(folder.parent)


def _sync(folder: Path) -> None:
    """Make a new name in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _said(now: str, before: str) -> str:
    return f"{now} is the release in use; `airbundle rollback` goes back to {before}"


def _digest(services: tuple[Service, ...]) -> str:
    """The same settings have the same id, whichever comparisons led to them."""
    words = [service.model_dump(mode="json", exclude_defaults=True) for service in services]
    return sha256_hex(json.dumps(words, sort_keys=True).encode())[:_DIGITS]
