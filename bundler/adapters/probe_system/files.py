"""Reads mounts and listening ports out of /proc; for `probe_system`."""

from __future__ import annotations

import os
import re
from pathlib import Path

from bundler.domain.host import Mount

_NETWORK = re.compile(r"^(nfs|cifs|smb|fuse\.sshfs|ceph|glusterfs|lustre|9p)")
_LISTEN = "0A"


def mount_of(place: Path, files: Path) -> Mount:
    """The file system that holds a path, or will: of one that is not there, its nearest parent's.

    Raises:
        OSError: /proc cannot be read.
    """
    here = place.absolute()
    while not here.exists():
        here = here.parent
    here = here.resolve()
    best, kind, options = "/", "", ""
    # https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html
    for line in (files / "proc/self/mountinfo").read_text(errors="replace").splitlines():
        words, _, rest = line.partition(" - ")
        fields, tail = words.split(), rest.split()
        if len(fields) < 6 or not tail:
            continue
        mount = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[4])
        # Of several on one place, the last one is what is seen.
        if (here == Path(mount) or Path(mount) in here.parents) and len(mount) >= len(best):
            best, kind = mount, tail[0]
            options = f"{fields[5]},{tail[2] if len(tail) > 2 else ''}"
    room = os.statvfs(here)
    words_of = set(options.split(","))
    return Mount(
        path=str(place),
        mount=best,
        file_system=kind,
        free_bytes=room.f_bavail * room.f_frsize,
        read_only="ro" in words_of,
        noexec="noexec" in words_of,
        network=bool(_NETWORK.match(kind)),
    )


def port_owners(files: Path) -> dict[int, str]:
    """TCP ports that something listens on, and who where this user may see it.

    Raises:
        OSError: /proc cannot be read.
    """
    sockets: dict[str, int] = {}
    for name in ("tcp", "tcp6"):
        path = files / "proc/net" / name
        if name == "tcp6" and not path.exists():
            continue
        for line in path.read_text().splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTEN:
                sockets[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    owners = dict.fromkeys(sockets.values(), "")
    for process in (files / "proc").glob("[0-9]*"):
        for inode in _sockets_of(process):
            if inode in sockets:
                owners[sockets[inode]] = f"process {process.name} ({_name(process)})"
    return owners


def _sockets_of(process: Path) -> list[str]:
    found = []
    try:
        for handle in (process / "fd").iterdir():
            target = str(handle.readlink())
            if target.startswith("socket:["):
                found.append(target[8:-1])
    except OSError:
        pass  # another user's, or gone by now
    return found


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(errors="replace").strip()
    except OSError:
        return "?"
