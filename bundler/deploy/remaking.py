"""A release made anew from the store, in the place of the one that is there: repair of what has changed.

The old one serves until the new one is whole. Their exchange is two renames with a stop before and a start
after them, for a process whose folder goes would lose what it has not read yet.
"""

from __future__ import annotations

from dataclasses import dataclass

from bundler.deploy.install import Installer
from bundler.deploy.launch import Launcher
from bundler.deploy.releases import read_release
from bundler.deploy.removing import remove_tree
from bundler.deploy.switching import exchange
from bundler.domain.facts import ReleaseRecord, ServiceState
from bundler.domain.manifest import VerifiedManifest


@dataclass(frozen=True)
class Remaker:
    """Everything that making anew needs."""

    installer: Installer
    launcher: Launcher
    timeout_s: float

    def remake(self, verified: VerifiedManifest) -> tuple[ReleaseRecord, tuple[ServiceState, ...]]:
        """The new release's record, and the services that ran and were started again.

        Raises:
            BundlerError: see `Installer.install`; then the old one is as it was.
            EngineError: a service does not start again.
        """
        root = self.installer.root
        with root.alone():
            record = self.installer.make_beside(verified)
            name = verified.bundle_id
            served = [state for state in self.launcher.living() if state.bundle_id == name]
            for state in served:
                self.launcher.stop(state)
            exchange(root, name)
            # What ran may have had other settings than the bundle's.
            ran = read_release(root.release(served[0].release_id)) if served else None
            states = (
                self.launcher.start(root.release(name), ran or record, timeout_s=self.timeout_s)
                if served
                else []
            )
            remove_tree(root.gone)
            return record, tuple(states)
