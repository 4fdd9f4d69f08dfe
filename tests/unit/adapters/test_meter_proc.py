"""What processes use, from this machine's own /proc and from made-up ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bundler.adapters.meter_proc import ProcMeter

HOLDS = (
    "import subprocess, sys, time; data = bytearray(60_000_000); data[::4096] = b'x' * len(data[::4096]);"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    "print('ready', flush=True); time.sleep(60)"
)


def test_a_session_is_its_leader_and_all_its_children() -> None:
    leader = subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert leader.stdout is not None
        assert leader.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 30
        found = ProcMeter().use(leader.pid)
        while (found is None or found.processes < 2) and time.monotonic() < deadline:
            time.sleep(0.05)
            found = ProcMeter().use(leader.pid)
        assert found is not None
        assert found.processes == 2
        assert 60_000_000 < found.rss < 600_000_000
        assert found.cpu_s >= 0
    finally:
        os.killpg(leader.pid, signal.SIGKILL)
        leader.communicate()
    # The child is somebody else's now, who may be slow to bury it.
    deadline = time.monotonic() + 30
    while ProcMeter().use(leader.pid) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ProcMeter().use(leader.pid) is None


def stat(folder: Path, pid: int, name: str, state: str, session: int) -> None:
    (folder / str(pid)).mkdir()
    fields = [state, "1", "1", str(session), *["0"] * 7, "250", "50", *["0"] * 8, "10", "0"]
    (folder / str(pid) / "stat").write_bytes(f"{pid} ({name}) {' '.join(fields)}\n".encode())


def test_names_and_states_that_mislead(tmp_path: Path) -> None:
    stat(tmp_path, 10, "a) S 1 1 99 (b", "S", 10)
    stat(tmp_path, 11, "zombie", "Z", 10)
    stat(tmp_path, 12, "stranger", "S", 12)
    (tmp_path / "13").mkdir()  # gone between the listing and the reading
    (tmp_path / "14").mkdir()
    (tmp_path / "14" / "stat").write_text("14 (cut) S 1")
    found = ProcMeter(tmp_path).use(10)
    assert found is not None
    assert (found.processes, found.cpu_s) == (1, 3.0)
    assert found.rss == 10 * 4096
    assert ProcMeter(tmp_path / "nowhere").use(10) is None
