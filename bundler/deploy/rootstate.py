"""What a root is like inside: half-finished work, records of what is gone, locks, the policy.

Only read: not even the lock is taken, so that it can be asked while another command works.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator

from bundler.deploy.garbage import Collector
from bundler.deploy.importing import missing_volumes
from bundler.deploy.launch import Launcher
from bundler.deploy.policyfile import kept_policy
from bundler.deploy.releases import linked_release, read_release, releases
from bundler.deploy.root import Root
from bundler.deploy.switching import pending
from bundler.deploy.trustroot import Gate, open_record
from bundler.domain.host import Row
from bundler.domain.sizes import human
from bundler.errors import BundlerError


def root_rows(root: Root, launcher: Launcher, gate: Gate, now: str) -> Iterator[Row]:
    """Judge a root. Never raises for what it finds: a record that was changed is a row that fails.

    Args:
        root: it may not exist yet.
        launcher: knows what runs.
        gate: checks records and policy.
        now: UTC, ISO-8601.
    """
    if not root.path.is_dir():
        yield Row(name="root", state="ok", found=f"{root.path}: nothing there yet")
        return
    if _held(root):
        yield Row(name="root", state="warn", found="another airbundle command is at work here",
                  fix="Ask again when it has ended: what is half done may be its work.")  # fmt: skip
    yield _policy(root, gate)
    yield from _imports(root, gate, now)
    yield from _releases(root)
    yield from _running(launcher)
    yield _garbage(root, launcher, gate)


def _held(root: Root) -> bool:
    try:
        with (root.path / ".lock").open("r") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _policy(root: Root, gate: Gate) -> Row:
    try:
        policy = kept_policy(root)
        trust = gate.site(root)
    except BundlerError as error:
        return Row(name="policy", state="fail", found=str(error),
                   fix=error.hint or "Put a good one in force: airbundle trust use POLICY --replace")  # fmt: skip
    if policy is None:
        return Row(name="policy", state="ok", found="none is in force: --key decides")
    expired = [key.key_id for key in trust.keys if trust.why_not(key)]
    return Row(name="policy", state="warn" if expired else "ok",
               found=f"requires {', '.join(policy.require) or 'nothing'}"
               + (f"; out of use: {', '.join(expired)}" if expired else ""),
               fix="airbundle trust show says why." if expired else "")  # fmt: skip


def _imports(root: Root, gate: Gate, now: str) -> Iterator[Row]:
    folders = root.bundles()
    if not folders:
        yield Row(name="imports", state="ok", found="none yet")
    for folder in folders:
        name = f"import {folder.name}"
        try:
            verified = open_record(root, folder.name, gate)
            missing = missing_volumes(root, verified)
        except BundlerError as error:
            yield Row(
                name=name, state="fail", found=str(error), fix=error.hint or "Import it again."
            )
            continue
        if missing:
            yield Row(name=name, state="warn", found=f"still to come: {', '.join(missing)}",
                      fix="Import those volumes; the same command goes on where it stopped.")  # fmt: skip
        elif now and verified.manifest.created > now:
            yield Row(name=name, state="warn", found=f"was made at {verified.manifest.created}, it is {now}",
                      fix="Set the clock.")  # fmt: skip
        else:
            yield Row(name=name, state="ok", found="whole")


def _releases(root: Root) -> Iterator[Row]:
    try:
        began = pending(root)
    except BundlerError as error:
        yield Row(
            name="upgrade", state="fail", found=str(error), fix=error.hint or "airbundle rollback"
        )
        began = None
    if began is not None:
        yield Row(name="upgrade", state="fail", found=f"the one to {began.bundle_id} was interrupted",
                  fix=f"`airbundle rollback` ends it, `airbundle upgrade {began.bundle_id}` goes on.")  # fmt: skip
    try:
        here = releases(root)
    except BundlerError as error:
        yield Row(
            name="releases", state="fail", found=str(error), fix=error.hint or "install --again"
        )
        return
    for one in here:
        name = f"release {one.bundle_id}"
        if one.record is None:
            yield Row(name=name, state="warn", found="half installed",
                      fix=f"airbundle install {one.bundle_id} goes on; airbundle gc removes it.")  # fmt: skip
        elif one.record.root != str(root.path):
            yield Row(name=name, state="fail", found=f"its programs name {one.record.root}",
                      fix="The root was moved: `airbundle install` makes the release anew.")  # fmt: skip
        else:
            yield Row(name=name, state="ok", found=one.use or "installed")
    current = linked_release(root.current)
    if current is not None and read_release(root.release(current)) is None:
        yield Row(name="current", state="fail", found=f"points to {current}, which is not whole",
                  fix=f"airbundle install {current}")  # fmt: skip


def _running(launcher: Launcher) -> Iterator[Row]:
    try:
        states = list(launcher.states())
    except BundlerError as error:
        yield Row(name="services", state="fail", found=str(error), fix=error.hint)
        return
    gone = [state.service for state in states if not launcher.alive(state)]
    if gone:
        yield Row(name="services", state="warn", found=f"died or the host restarted: {', '.join(gone)}",
                  fix="airbundle logs SERVICE says why; airbundle start starts them.")  # fmt: skip
    living = [state.service for state in states if state.service not in gone]
    if living or not gone:
        yield Row(name="services", state="ok", found=f"running: {', '.join(living) or 'none'}")


def _garbage(root: Root, launcher: Launcher, gate: Gate) -> Row:
    try:
        found = Collector(root, launcher, gate).find()
    except BundlerError as error:
        return Row(name="garbage", state="unknown", found=str(error))
    size = human(sum(one.size for one in found))
    return Row(name="garbage", state="ok", found=f"{len(found)} found, {size}" if found else "none",
               fix="airbundle gc shows it." if found else "")  # fmt: skip
