"""What the host says of itself: the real one, and one made of files."""

from __future__ import annotations

import os
import platform
import socket
import sys
from pathlib import Path

import pytest

from bundler import wiring
from bundler.adapters.probe_system.files import mount_of, port_owners
from bundler.adapters.probe_system.system import LinuxSystem
from bundler.domain.host import Host

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def look(files: Path, *places: Path) -> Host:
    return LinuxSystem(wiring.runner(), wiring.clock(), files).host(places, PYTHON)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A /proc and /sys with what a host needs to have."""
    put(tmp_path, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 600 kB\nSwapTotal: 0 kB\n")
    put(tmp_path, "proc/self/mountinfo", "1 0 8:1 / / rw,relatime - ext4 /dev/sda rw\n")
    put(tmp_path, "proc/net/tcp", "header\n")
    put(tmp_path, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    (tmp_path / "dev/shm").mkdir(parents=True)
    return tmp_path


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_this_host(tmp_path: Path) -> None:
    found = wiring.system_probe().host((tmp_path, Path("/nowhere/at all")), PYTHON)
    assert (found.os, found.arch) == ("linux", platform.machine())
    assert found.memory_bytes
    assert found.available_bytes
    assert found.glibc == platform.libc_ver()[1]
    assert PYTHON in found.pythons
    assert [mount.path for mount in found.mounts] == [str(tmp_path), "/nowhere/at all"]
    assert found.mounts[0].free_bytes > 0
    assert found.limits["nofile"] is None or found.limits["nofile"] > 0


def test_a_host_of_files(files: Path) -> None:
    found = look(files, files)
    assert (found.memory_bytes, found.available_bytes) == (1000 * 1024, 600 * 1024)
    assert found.hugepages == "madvise"
    assert (found.container, found.selinux, found.apparmor, found.synchronised) == (
        "",
        "",
        "",
        None,
    )
    put(files, ".dockerenv", "")
    put(files, "sys/fs/selinux/enforce", "1")
    put(files, "proc/self/attr/current", "snap.airbundle (enforce)\n")
    put(files, "run/systemd/timesync/synchronized", "")
    put(files, "sys/fs/cgroup/memory.max", "123456\n")
    found = look(files, files)
    assert (found.container, found.selinux, found.synchronised) == ("docker", "enforcing", True)
    assert found.apparmor == "snap.airbundle (enforce)"
    assert found.cgroup_memory_bytes == 123456
    put(files, "sys/fs/cgroup/memory.max", "max\n")
    assert look(files, files).cgroup_memory_bytes is None


def test_what_cannot_be_read_is_said_and_hides_nothing_else(tmp_path: Path) -> None:
    found = look(tmp_path, tmp_path)
    assert {"memory", "ports", "shm", "huge pages"} <= set(found.unread)
    assert found.memory_bytes is None
    assert found.shm_bytes is None
    assert found.mounts == ()
    assert found.glibc == platform.libc_ver()[1]


MOUNTS = r"""20 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
21 20 8:2 / PLACE ro,nosuid - ext4 /dev/sdb1 rw
22 20 8:3 / PLACE/my\040disk rw,noexec - nfs4 server:/x rw
23 20 8:4 / PLACE/over rw - tmpfs a rw
24 20 8:5 / PLACE/over rw - xfs b ro
a line of nonsense
"""


def test_mounts(files: Path) -> None:
    place = files / "place"
    for name in ("my disk", "over/deep"):
        (place / name).mkdir(parents=True)
    put(files, "proc/self/mountinfo", MOUNTS.replace("PLACE", str(place)))
    below = mount_of(place / "my disk" / "not there" / "yet", files)
    assert (below.mount, below.noexec, below.network, below.read_only) == (
        f"{place}/my disk", True, True, False,
    )  # fmt: skip
    assert mount_of(place / "x", files).read_only
    assert mount_of(files / "placebo", files).mount == "/"
    # The later mount hides the earlier one, and its own options count.
    over = mount_of(place / "over" / "deep", files)
    assert (over.file_system, over.read_only) == ("xfs", True)


def test_ports_and_who_holds_them() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert f"process {os.getpid()} " in port_owners(Path("/"))[port]
    assert port not in port_owners(Path("/"))


def test_a_port_of_another_user_has_no_name(files: Path) -> None:
    row = "  0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:0 0 0 0 99999 1 0 100"
    gone = "  1: 0100007F:1F41 00000000:0000 06 00000000:00000000 00:0 0 0 0 99998 1 0 100"
    put(files, "proc/net/tcp", f"header\n{row}\n{gone}\n")
    assert port_owners(files) == {8000: ""}
