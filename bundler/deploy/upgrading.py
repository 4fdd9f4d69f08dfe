"""From the release in use to another and, when that one does not stand its test, back again.

The new release is installed beside the old one while that serves. What was in use is written down before
anything is stopped: whatever ends this process, the way back is known (`rollback`), and so is how far it
got (`upgrade` again).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bundler.deploy.install import Installer
from bundler.deploy.launch import Launcher
from bundler.deploy.releases import check_not_moved, pick_release, read_release
from bundler.deploy.root import Root
from bundler.deploy.switching import (
    Links,
    pending,
    previous_release,
    read_links,
    restore,
    switch,
    ways_on,
)
from bundler.deploy.trustroot import Gate, open_for_return
from bundler.domain.facts import ReleaseRecord, ServiceState, UpgradeRecord
from bundler.domain.manifest import VerifiedManifest
from bundler.domain.spec import Service
from bundler.domain.variants import MARK, bundle_of
from bundler.domain.verdict import Verdict
from bundler.errors import BundlerError, StateError, disk_errors
from bundler.format.atomic import remove
from bundler.format.codec import to_bytes
from bundler.format.rehearsal import instead

# Judges the running services of a release.
Judge = Callable[[ReleaseRecord], Verdict]


@dataclass(frozen=True)
class Outcome:
    """How a change ended: which release is in use, what serves, and one line that says so."""

    current: str | None
    serving: tuple[ServiceState, ...]
    said: str
    verdict: Verdict | None = None
    rolled_back: bool = False


@dataclass(frozen=True)
class Changer:
    """Everything that a change of releases needs; `tell` reaches a person even when all else is quiet."""

    root: Root
    launcher: Launcher
    gate: Gate
    timeout_s: float
    tell: Callable[[str], None]

    def upgrade(
        self, verified: VerifiedManifest, installer: Installer, judge: Judge, *, strict: bool
    ) -> Outcome:
        """Install beside, stop, switch, start, judge; on failure back to what was.

        Args:
            verified: the bundle to upgrade to.
            installer: makes its release.
            judge: measures the started services.
            strict: go back also when the judgement is INCONCLUSIVE or NOT COMPARABLE.

        Raises:
            StateError: it is in use already, holds no service, or another upgrade was interrupted.
            BundlerError: it could not be installed or started; the message says what serves now.
        """
        with self.root.alone():
            began = pending(self.root)
            if began is not None and began.bundle_id != verified.bundle_id:
                raise StateError(
                    f"{self.root.path}: the upgrade to {began.bundle_id} was interrupted",
                    hint=ways_on(began.bundle_id),
                )
            current = read_links(self.root).current
            if began is None and current and bundle_of(current) == verified.bundle_id:
                own = f"airbundle rollback {verified.bundle_id}"
                raise StateError(
                    f"{current}: is the release in use already",
                    hint="Import a newer bundle, or judge this one: airbundle accept --root ROOT"
                    + (f". Back to the bundle's own settings: {own}" if MARK in current else ""),
                )
            if not verified.manifest.services:
                raise StateError(
                    f"{verified.bundle_id}: holds an engine and no model, so that nothing could be"
                    " judged",
                    hint="Use: airbundle install",
                )
            _refuse_nodes(verified.manifest.services)
            release = installer.prepare(verified)
            return self._change(began or self._begin(release.release_id), release, judge, strict)

    def rollback(self, bundle_id: str | None, *, start: bool) -> Outcome:
        """Back to the previous release, to the named one, or to where an interrupted upgrade began.

        Services that run are stopped, and those of the other release started; when they do not start,
        what ran before is started again.

        Raises:
            StateError: there is none, or it is in use already.
            TrustError: it was revoked or rejected.
            BundlerError: it did not start; the message says what serves now.
        """
        with self.root.alone():
            began = pending(self.root)
            if began is not None and bundle_id in (None, began.current):
                return self._end(began, start=start)
            target = (
                pick_release(self.root, bundle_id).name
                if bundle_id is not None
                else previous_release(self.root)
            )
            if target == read_links(self.root).current:
                raise StateError(
                    f"{target}: is the release in use already",
                    hint="`airbundle start --root ROOT` starts it.",
                )
            release = self._usable(target)
            record = self._begin(target)
            if record.served and start:
                return self._change(record, release, None, strict=False)
            if record.served:
                self.launcher.stop_all()
            switch(self.root, target)
            self._done()
            return Outcome(target, (), f"{target} is the release in use; nothing serves")

    def _begin(self, bundle_id: str) -> UpgradeRecord:
        links = read_links(self.root)
        return UpgradeRecord(
            bundle_id=bundle_id,
            current=links.current,
            previous=links.previous,
            served=bool(self.launcher.living()),
        )

    def _change(
        self, record: UpgradeRecord, release: ReleaseRecord, judge: Judge | None, strict: bool
    ) -> Outcome:
        name = release.release_id
        _refuse_nodes(release.services)
        self.root.write(self.root.upgrade, to_bytes(record))
        verdict = None
        try:
            states = self._start(record, release)
            why = "measured and judged; when it fails, the old one serves again"
            if judge is not None and not instead("make", self.root.acceptance, why=why):
                verdict = judge(release)
        except BundlerError as error:
            said = self._go_back(record).said
            raise type(error)(f"{error}; {said}", hint=error.hint, details=error.details) from error
        except BaseException:
            self.tell(self._go_back(record).said)
            raise
        if verdict is Verdict.FAIL or (
            strict and verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_COMPARABLE)
        ):
            back = self._go_back(record)
            said = f"{name}: {verdict.value}; {back.said}"
            return Outcome(back.current, back.serving, said, verdict, rolled_back=True)
        self._done()
        return Outcome(name, states, f"{name} serves", verdict)

    def _start(self, record: UpgradeRecord, release: ReleaseRecord) -> tuple[ServiceState, ...]:
        """Start the new one in place of the old one, unless an interrupted change had done so."""
        serving = self._serving(release)
        if not serving:
            self.launcher.progress.note(f"stopping {record.current or 'what runs'}")
            self.launcher.stop_all()
        switch(self.root, release.release_id)
        folder = self.root.release(release.bundle_id)
        return serving or tuple(self.launcher.start(folder, release, timeout_s=self.timeout_s))

    def _serving(self, release: ReleaseRecord) -> tuple[ServiceState, ...]:
        """The release's services, if it is they that run: each one, ready, and nothing else."""
        states = {state.service: state for state in self.launcher.living()}
        whole = set(states) == {service.name for service in release.services} and all(
            state.release_id == release.release_id
            and state.ready_after_s is not None
            and self.launcher.alive(state)
            for state in states.values()
        )
        return tuple(states.values()) if whole else ()

    def _end(self, record: UpgradeRecord, *, start: bool) -> Outcome:
        """End an interrupted change by going back to where it began."""
        if record.current is None:
            raise StateError(
                f"{self.root.path}: no release was in use before {record.bundle_id}",
                hint=f"`airbundle uninstall {record.bundle_id} --force` removes it.",
            )
        self._usable(record.current)
        return self._go_back(record.model_copy(update={"served": record.served and start}))

    def _go_back(self, record: UpgradeRecord) -> Outcome:
        """Stop what runs, point the links to where they pointed, start what served."""
        old = None if record.current is None else read_release(self.root.release(record.current))
        states = self._serving(old) if old and record.served else ()
        why = ""
        if not states:
            self.launcher.progress.note(f"going back to {record.current or 'no release'}")
            try:
                self.launcher.stop_all()
            except BundlerError as error:
                why = f"; {error}"
        restore(self.root, Links(record.current, record.previous))
        if record.current is None:
            self._done()
            return Outcome(None, (), f"no release is in use, as before{why}")
        if record.served and not states:
            states, reason = self._start_old(record.current)
            why += reason
        self._done()
        if states:
            return Outcome(record.current, states, f"{record.current} serves again")
        return Outcome(record.current, (), f"{record.current} is in use again; nothing serves{why}")

    def _start_old(self, bundle_id: str) -> tuple[tuple[ServiceState, ...], str]:
        """Services of the old release, or why none serves."""
        try:
            release = self._usable(bundle_id)
            folder = self.root.release(release.bundle_id)
            return tuple(self.launcher.start(folder, release, timeout_s=self.timeout_s)), ""
        except BundlerError as error:
            return (), f", for it does not start: {error}"

    def _usable(self, bundle_id: str) -> ReleaseRecord:
        """The record of a release that may and can serve again."""
        record = read_release(self.root.release(bundle_id))
        if record is None:
            raise StateError(
                f"{bundle_id}: is not wholly installed",
                hint=f"Run: airbundle install {bundle_of(bundle_id)} --root ROOT",
            )
        check_not_moved(self.root, record)
        open_for_return(self.root, record.bundle_id, self.gate)
        return record

    def _done(self) -> None:
        with disk_errors("removing", self.root.upgrade):
            remove(self.root.upgrade)


def _refuse_nodes(services: tuple[Service, ...]) -> None:
    """One host alone can neither start such a service nor judge it."""
    for service in services:
        if service.nodes > 1:
            raise StateError(
                f"{service.name}: spans {service.nodes} nodes, and this starts what one host serves",
                hint="On each of them: airbundle stop, airbundle install (or rollback --no-start), then the"
                " scripts of `airbundle export`.",
            )
