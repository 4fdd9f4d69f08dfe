"""CommandRunner: the only file that starts processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bundler.errors import ToolError, disk_errors
from bundler.ports import Completed


class LocalProcesses:
    """Starts programs on this host."""

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str | None] | None = None,
        timeout_s: float | None = None,
    ) -> Completed:
        """Run to the end and capture."""
        try:
            done = subprocess.run(
                list(argv),
                env=_merged(env or {}),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except FileNotFoundError as cause:
            raise ToolError(f"{argv[0]}: no such command") from cause
        except PermissionError as cause:
            raise ToolError(f"{argv[0]}: {cause.strerror}") from cause
        except subprocess.TimeoutExpired as cause:
            raise ToolError(f"{argv[0]}: no end after {timeout_s:.0f} s") from cause
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)

    def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path) -> int:
        """Start detached: a session of its own, no terminal, output appended to `log`."""
        with disk_errors("writing", log), log.open("ab") as output:
            try:
                process = subprocess.Popen(
                    list(argv),
                    env=dict(env),
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except FileNotFoundError as cause:
                raise ToolError(f"{argv[0]}: no such command") from cause
            except PermissionError as cause:
                raise ToolError(f"{argv[0]}: {cause.strerror}") from cause
        # Never waited for here: `start_ticks` treats the zombie of our own child as gone.
        process.returncode = 0
        return process.pid

    def start_ticks(self, pid: int) -> int | None:
        """Field 22 of /proc/PID/stat (proc_pid_stat(5)); None for a zombie or no process."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = stat.rsplit(")", 1)[1].split()
        return None if fields[0] in "ZX" else int(fields[19])

    def signal_group(self, pid: int, *, kill: bool) -> None:
        """SIGTERM or SIGKILL for every process of the session; those gone already are fine."""
        for member in _session(pid):
            try:
                os.kill(member, signal.SIGKILL if kill else signal.SIGTERM)
            except ProcessLookupError:
                continue

    def group_alive(self, pid: int) -> bool:
        """Whether a process of the session still runs (zombies do not count)."""
        return any(True for _ in _session(pid))

    def port_is_free(self, port: int) -> bool:
        """Whether 127.0.0.1:`port` can be bound."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
        return True


def _merged(changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _session(leader: int) -> Iterator[int]:
    """Live processes whose session id (proc_pid_stat(5), field 6) is the leader's pid."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == leader and fields[0] not in "ZX":
            yield int(stat.parent.name)
