"""One service in this very process, for systemd and other supervisors: the engine takes the process over.

The pid stays and with it the kernel's start time, so that `start` (which waits until it is ready), `status`, `accept`,
`kernels` and `stop` know it as one of theirs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal, NoReturn

from bundler.deploy.launch import Launcher
from bundler.deploy.preparing import prepare
from bundler.domain.facts import ReleaseRecord
from bundler.domain.seat import Seat
from bundler.domain.spec import Service
from bundler.errors import StateError, ToolError, disk_errors
from bundler.format.codec import to_bytes
from bundler.ports import CommandRunner

# A name of a host, or an IP address without a zone; it becomes a word of a command line.
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}")


def run_here(
    launcher: Launcher,
    folder: Path,
    record: ReleaseRecord,
    name: str,
    *,
    to_log: bool,
    any_gpu: bool,
    seat: Seat | None = None,
) -> NoReturn:
    """Become the engine of a service; returns only by an error.

    Args:
        launcher: knows what runs already.
        folder: the release.
        record: its record.
        name: the service.
        to_log: write the engine's output to the root's log, where `logs` and `kernels` look for it.
        any_gpu: as for `prepare`.
        seat: this host's place when several serve together.

    Raises:
        StateError: the release has no such service, it runs already, or it has another number of nodes.
        PortInUseError: something else listens on its port.
        ToolError: the engine's program cannot be run.
    """
    service = named(record, name)
    _check_seat(service, seat)
    with launcher.root.alone():
        running = {state.service: state for state in launcher.living()}
        recorded = seat is None or seat.way != "ray-node" or seat.rank > 0
        if recorded and (name in running or seat is None or seat.serves):
            launcher.check_free(service, running.get(name))
        engine = launcher.engines[record.engine_name]()
        start = prepare(launcher.root, folder, record, service, engine, any_gpu=any_gpu, seat=seat)
        _lead_session()
        # On the head the server is recorded, and the Ray node beside it is the script's.
        if recorded:
            state = launcher.state_of(start, record, os.getpid(), seat)
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
        if recorded:
            launcher.root.state(name).unlink(missing_ok=True)
        raise ToolError(
            f"{start.plan.argv[0]}: cannot be run: {cause.strerror}",
            hint="Install the release again: airbundle install --root ROOT",
        ) from cause


def find_seat(
    runner: CommandRunner,
    way: Literal["native", "ray", "ray-node"],
    rank: int,
    head: str,
    port: int,
) -> Seat:
    """A seat, with the address that this host has towards the head, unless VLLM_HOST_IP gives another.

    Raises:
        ToolError: there is no way to the head.
        StateError: `head` is no address and no name of a host.
    """
    if not _HOST.fullmatch(head):
        raise StateError(f"{head[:80]!r} is no address of a head", hint="Write it as 10.0.0.5.")
    own = os.environ.get("VLLM_HOST_IP") or runner.address_towards(head)
    return Seat(way=way, rank=rank, head=head, port=port, own=own)


def _check_seat(service: Service, seat: Seat | None) -> None:
    if seat is None and service.nodes > 1:
        raise StateError(
            f"{service.name}: spans {service.nodes} nodes; which of them this one is, is not said",
            hint="Run the scripts that `airbundle export --format multinode` or ray writes.",
        )
    if seat is not None and seat.rank >= service.nodes:
        raise StateError(
            f"{service.name}: has no node {seat.rank}; its nodes are 0 to {service.nodes - 1}"
        )


def named(record: ReleaseRecord, name: str) -> Service:
    """A service of a release.

    Raises:
        StateError: the release has no such service.
    """
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
