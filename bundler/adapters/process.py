"""CommandRunner: the only file that starts processes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bundler.errors import FileAccessError, ToolError, disk_errors
from bundler.ports import Completed

# Becomes the program when it is told to, and ends when who should tell it has ended.
_WAITING = 'read -r _ && exec "$0" "$@" </dev/null'


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

    def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        record: Callable[[int], None],
    ) -> int:
        """Start detached: a session of its own, no terminal, output appended to `log`."""
        if shutil.which(argv[0], path=env.get("PATH")) is None:
            there = Path(argv[0]).exists()
            raise ToolError(f"{argv[0]}: {'may not be run' if there else 'no such command'}")
        told, tell = os.pipe()
        try:
            with disk_errors("writing", log), log.open("ab") as output:
                try:
                    process = subprocess.Popen(
                        ["/bin/sh", "-c", _WAITING, *argv],
                        env=dict(env),
                        cwd=cwd,
                        stdin=told,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                except (ValueError, OSError) as cause:
                    # A NUL byte in an argument, or more arguments than the kernel takes.
                    raise ToolError(f"{argv[0]}: cannot be started: {cause}") from cause
            try:
                record(process.pid)
            except BaseException:
                process.kill()
                process.wait()
                raise
            os.write(tell, b"\n")
        finally:
            os.close(told)
            os.close(tell)
        # Never waited for here: `start_ticks` treats the zombie of our own child as gone.
        process.returncode = 0
        return process.pid

    def start_ticks(self, pid: int) -> int | None:
        """Field 22 of /proc/PID/stat (proc_pid_stat(5)); None for a zombie or no process."""
        fields = _stat(Path(f"/proc/{pid}/stat"))
        return None if fields is None else int(fields[19])

    def boot(self) -> str:
        """The kernel's random id of this boot (random(4))."""
        path = Path("/proc/sys/kernel/random/boot_id")
        return path.read_text().strip() if path.is_file() else ""

    def session(self, leader: int, since_ticks: int) -> tuple[int, ...]:
        """By session id, field 6 of /proc/PID/stat; zombies do not count."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            fields = _stat(stat)
            if fields and int(fields[3]) == leader and int(fields[19]) >= since_ticks:
                found.append(int(stat.parent.name))
        return tuple(found)

    def signal(self, pids: Sequence[int], *, kill: bool) -> None:
        """SIGTERM or SIGKILL."""
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL if kill else signal.SIGTERM)
            except ProcessLookupError:
                continue
            except PermissionError as cause:
                raise FileAccessError(
                    f"process {pid}: this user may not end it", hint="Stop it as its own user."
                ) from cause

    def port_is_free(self, host: str, port: int) -> bool:
        """Whether `port` of the address can be bound."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                return False
        return True

    def address_towards(self, host: str) -> str:
        """The address that the kernel would send from: a datagram socket that sends nothing."""
        try:
            found = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)
            family, kind, _, _, address = found[0]
            with socket.socket(family, kind) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0])
        except (OSError, UnicodeError) as cause:
            raise ToolError(
                f"{host}: no way to it from here: {getattr(cause, 'strerror', None) or cause}",
                hint="Name the head by an address of the network that the nodes share.",
            ) from cause


def _merged(changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _stat(path: Path) -> list[bytes] | None:
    """Fields of a stat file from the third on; None for a zombie or no process.

    The second field is the program's name, in whatever bytes it has, parentheses included.
    """
    try:
        fields = path.read_bytes().rsplit(b")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in (b"Z", b"X") else fields
