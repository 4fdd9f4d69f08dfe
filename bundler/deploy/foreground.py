"""One service in this very process, for systemd and other supervisors: the engine takes the process over.

The pid stays and with it the kernel's start time, so that `start` (which waits until it is ready), `status`, `accept`,
`kernels` and `stop` know it as one of theirs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from bundler.deploy.launch import Launcher
from bundler.deploy.preparing import prepare
from bundler.domain.facts import ReleaseRecord
from bundler.domain.spec import Service
from bundler.errors import StateError, ToolError, disk_errors
from bundler.format.codec import to_bytes


def run_here(
    launcher: Launcher,
    folder: Path,
    record: ReleaseRecord,
    name: str,
    *,
    to_log: bool,
    any_gpu: bool,
) -> NoReturn:
    """Become the engine of a service; returns only by an error.

    Args:
        launcher: knows what runs already.
        folder: the release.
        record: its record.
        name: the service.
        to_log: write the engine's output to the root's log, where `logs` and `kernels` look for it.
        any_gpu: as for `prepare`.

    Raises:
        StateError: the release has no such service, or it runs already.
        PortInUseError: something else listens on its port.
        ToolError: the engine's program cannot be run.
    """
    service = _named(record, name)
    with launcher.root.alone():
        running = {state.service: state for state in launcher.living()}
        launcher.check_free(service, running.get(name))
        engine = launcher.engines[record.engine_name]()
        start = prepare(launcher.root, folder, record, service, engine, any_gpu=any_gpu)
        _lead_session()
        state = launcher.state_of(start, record, os.getpid())
        launcher.root.write(launcher.root.state(name), to_bytes(state))
    if to_log:
        with disk_errors("writing", start.log):
            handle = os.open(start.log, os.O_WRONLY | os.O_APPEND)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        os.close(handle)
    try:
        os.chdir(folder)
        os.execve(start.plan.argv[0], start.plan.argv, start.env)  # noqa: S606 - no shell is wanted
    except OSError as cause:
        launcher.root.state(name).unlink(missing_ok=True)
        raise ToolError(
            f"{start.plan.argv[0]}: cannot be run: {cause.strerror}",
            hint="Install the release again: airbundle install --root ROOT",
        ) from cause


def _named(record: ReleaseRecord, name: str) -> Service:
    for service in record.services:
        if service.name == name:
            return service
    known = ", ".join(service.name for service in record.services) or "none"
    raise StateError(f"{name}: no service of {record.bundle_id}; it has {known}")


def _lead_session() -> None:
    """`stop` ends the whole session of a service, so it must not be a shell's: systemd gives one of its own."""
    if os.getsid(0) == os.getpid():
        return
    try:
        os.setsid()
    except PermissionError as cause:
        raise StateError(
            "`run` was started as a job of an interactive shell, whose session it may not leave",
            hint="Use `airbundle start`, or: setsid --wait airbundle run SERVICE --root ROOT",
        ) from cause
