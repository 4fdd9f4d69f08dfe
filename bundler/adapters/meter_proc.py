"""ProcessMeter through /proc: what the processes of a session use (proc_pid_stat(5)).

An engine is started as the leader of a session of its own, and its workers stay in it.
"""

from __future__ import annotations

import os
from pathlib import Path

from bundler.instruments import ProcessUse

# Fields of /proc/PID/stat behind the command's name, which may hold anything: state is the first.
_SESSION, _UTIME, _STIME, _RSS_PAGES = 3, 11, 12, 21


class ProcMeter:
    """Reads /proc anew at every look; other users' processes are readable there as well."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._tick = os.sysconf("SC_CLK_TCK")

    def use(self, leader: int) -> ProcessUse | None:
        """Of the session that `leader` leads; None when nothing of it lives, or /proc is not there."""
        pages = ticks = count = 0
        for pid in self._pids():
            fields = self._fields(pid)
            if fields is None or fields[0] == "Z" or int(fields[_SESSION]) != leader:
                continue
            count += 1
            pages += int(fields[_RSS_PAGES])
            ticks += int(fields[_UTIME]) + int(fields[_STIME])
        if not count:
            return None
        return ProcessUse(rss=pages * self._page, cpu_s=ticks / self._tick, processes=count)

    def _pids(self) -> list[str]:
        try:
            return [one.name for one in self._proc.iterdir() if one.name.isdecimal()]
        except OSError:
            return []

    def _fields(self, pid: str) -> list[str] | None:
        try:
            text = (self._proc / pid / "stat").read_text("utf-8", "replace")
        except OSError:
            return None  # gone since
        fields = text.rpartition(")")[2].split()
        return fields if len(fields) > _RSS_PAGES else None
