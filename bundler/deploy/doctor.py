"""What a host is like for its role -> rows: ok, warn, fail, could not check; each with what to do.

Pure, as `preflight` is, which compares a host with one bundle. Here no bundle is needed: it is the first look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bundler.domain.host import Devices, Host, Mount, Row
from bundler.domain.sizes import human
from bundler.domain.workplace import Folder, Program, Role, Workplace

_GIB = 2**30
# Below the first nothing of use fits; below the second no model of the shipped manifests does.
_LITTLE, _ROOM = 2 * _GIB, 60 * _GIB
_FILES = 1024
# File systems without Unix permissions and links: a release is made of both.
_FOREIGN = {"vfat", "msdos", "exfat", "ntfs", "ntfs3", "fuseblk"}
_OLDEST_PYTHON = (3, 10)
_OLDEST_OPENSSL = (3, 0)


def host_rows(place: Workplace, host: Host, role: Role) -> Iterator[Row]:
    """Judge what every role needs: Python, libraries, disks, clock, terminal, limits, keys."""
    yield _python(place)
    yield from _packages(place, role)
    for program in place.programs:
        yield _program(program, role)
    yield from _disks(host, place.folders)
    yield _clock(place, host)
    yield from _terminal(place)
    yield _files(host)
    yield from _keys(place)


def device_rows(devices: Devices, role: Role) -> Iterator[Row]:
    """Judge the GPUs: a connected host needs none."""
    if devices.fault:
        state = "ok" if role == "connected" else "warn"
        fix = "" if role == "connected" else "For a GPU service: `nvidia-smi` must list the GPUs."
        yield Row(name="GPUs", state=state, found=devices.fault, fix=fix)
        return
    names = [one.name for one in devices.gpus]
    found = ", ".join(f"{names.count(name)}x {name}" for name in dict.fromkeys(names))
    yield Row(name="GPUs", state="ok" if names else "warn", found=found or "the driver lists none")
    cuda = f", CUDA up to {devices.cuda}" if devices.cuda else ""
    yield Row(name="driver", state="ok" if devices.driver else "unknown",
              found=f"{devices.driver or 'not readable'}{cuda}")  # fmt: skip
    for one in devices.gpus:
        if one.ecc_errors:
            yield Row(name=f"GPU {one.index}", state="fail", found=f"{one.ecc_errors} memory errors",
                      fix="Reset or replace the GPU: its answers cannot be relied on.")  # fmt: skip
        if any(not process.alive for process in one.processes):
            yield Row(name=f"GPU {one.index}", state="warn", found="memory of a process that is gone",
                      fix="Reset the GPU, or restart the host.")  # fmt: skip


def _python(place: Workplace) -> Row:
    numbers = _numbers(place.python)[:2]
    good = numbers >= _OLDEST_PYTHON
    return Row(name="Python", state="ok" if good else "fail",
               found=f"{place.python}, airbundle {place.airbundle or '?'} ({place.executable})",
               wanted="3.10 or newer", fix="" if good else "Install a newer Python.")  # fmt: skip


def _packages(place: Workplace, role: Role) -> Iterator[Row]:
    if not place.packages:
        yield Row(name="packages", state="unknown", found="airbundle's own metadata is not here")
    for extra in dict.fromkeys(one.extra for one in place.packages):
        mine = [one for one in place.packages if one.extra == extra]
        missing = [one.name for one in mine if not one.version]
        needed = extra == "" or (extra == "connected" and role == "connected")
        name = f"extra {extra}" if extra else "packages"
        if not missing:
            found = ", ".join(f"{one.name} {one.version}" for one in mine)
            yield Row(name=name, state="ok", found=found)
        elif needed:
            what = f"airbundle[{extra}]" if extra else "airbundle"
            yield Row(name=name, state="fail", found=f"missing: {', '.join(missing)}",
                      fix=f"pip install '{what}'")  # fmt: skip
        else:
            yield Row(name=name, state="ok", found=f"not installed ({len(missing)} missing)")


def _program(program: Program, role: Role) -> Row:
    """Stock programs: most only serve checks by other means, or another way to the same end."""
    name, found = program.name, program.version or program.fault
    if name == "openssl" and program.version:
        good = _numbers(program.version) >= _OLDEST_OPENSSL
        return Row(name=name, state="ok" if good else "warn", found=found, wanted="3.0 or newer",
                   fix="" if good else "Older ones cannot check Ed25519 over a file; airbundle itself can.")  # fmt: skip
    if program.version:
        return Row(name=name, state="ok", found=found)
    if name == "uv" and role == "connected":
        return Row(
            name=name, state="fail", found=found, fix="pip install uv: it resolves the wheels."
        )
    fixes = {
        "uv": "Not needed: pip installs as well, only slower.",
        "pip": "uv resolves and installs; `resolver: pip-tools` needs pip.",
        "openssl": "Only the bootstrap and checks by hand use it.",
        "unshare": "Only the demo's proof that no network is used needs it.",
    }
    return Row(name=name, state="warn", found=found, fix=fixes.get(name, ""))


def _disks(host: Host, folders: tuple[Folder, ...]) -> Iterator[Row]:
    mounts = {mount.path: mount for mount in host.mounts}
    for folder in folders:
        mount = mounts.get(folder.path)
        if mount is None:
            why = host.unread.get(f"mount {folder.path}", "")
            yield Row(name=f"disk {folder.path}", state="unknown", found=why or "not readable")
        else:
            yield _room(folder, mount)
            yield from _kind(folder, mount)
        if folder.writable is False:
            yield Row(name=f"write {folder.path}", state="fail", found="this user may not write there",
                      fix="Give another place (--root, --cache), or have it given to this user.")  # fmt: skip
        if folder.case_sensitive is False:
            yield Row(name=f"names {folder.path}", state="fail",
                      found="upper and lower case are one name there",
                      fix="Use another file system: wheels hold names that differ in case alone.")  # fmt: skip
        if folder.open_to_others:
            yield Row(name=f"mode {folder.path}", state="warn", found="anybody may write there",
                      fix=f"chmod o-w {folder.path}")  # fmt: skip


def _room(folder: Folder, mount: Mount) -> Row:
    state = "fail" if mount.free_bytes < _LITTLE else "warn" if mount.free_bytes < _ROOM else "ok"
    fix = "" if state == "ok" else "Free space, or give another place: models take tens of GB."
    return Row(name=f"disk {folder.path}", state=state, fix=fix, wanted=human(_ROOM),
               found=f"{human(mount.free_bytes)} free on {mount.mount} ({mount.file_system or '?'})")  # fmt: skip


def _kind(folder: Folder, mount: Mount) -> Iterator[Row]:
    name = f"kind {folder.path}"
    if mount.file_system in _FOREIGN:
        yield Row(name=name, state="fail", found=f"{mount.file_system} on {mount.mount}",
                  fix="It has neither links nor permissions: use a Linux file system. Sticks may be so.")  # fmt: skip
    if mount.noexec:
        yield Row(name=name, state="fail", found=f"{mount.mount} is mounted noexec",
                  fix="Mount it with exec, or give another place.")  # fmt: skip
    if mount.read_only:
        yield Row(name=name, state="fail", found=f"{mount.mount} is read-only",
                  fix="Mount it writable, or give another place.")  # fmt: skip
    if mount.network:
        yield Row(name=name, state="warn", found=f"{mount.mount} is a network file system",
                  fix="Use a local disk: locks and start-up suffer from the network.")  # fmt: skip


def _clock(place: Workplace, host: Host) -> Row:
    now, code = host.now, place.code_from
    if not re.match(r"\d{4}-\d\d-\d\dT", now) or not code:
        return Row(name="clock", state="unknown", found=now or "not readable")
    if now < code:
        return Row(name="clock", state="fail", found=now, wanted=f"after {code}, when airbundle came here",
                   fix="Set the clock: approvals expire by it, and certificates count by it.")  # fmt: skip
    kept = "kept by a time service" if host.synchronised else "no time service seen"
    return Row(name="clock", state="ok", found=f"{now}, {kept}")


def _terminal(place: Workplace) -> Iterator[Row]:
    good = place.encoding in ("utf-8", "utf8")
    where = "a terminal" if place.terminal else "no terminal: plain lines, no questions"
    yield Row(name="text", state="ok" if good else "warn",
              found=f"{place.encoding or '?'}, locale {place.locale or '?'}, {where}",
              fix="" if good else "Korean is shown as escapes; set LANG=C.UTF-8 or ko_KR.UTF-8.")  # fmt: skip


def _files(host: Host) -> Row:
    if "nofile" not in host.limits:
        return Row(name="open files", state="unknown", found="not readable")
    most = host.limits["nofile"]
    good = most is None or most >= _FILES
    return Row(name="open files", state="ok" if good else "warn", wanted=str(_FILES),
               found="no limit" if most is None else str(most),
               fix="" if good else "ulimit -n 65536, or LimitNOFILE of the unit.")  # fmt: skip


def _keys(place: Workplace) -> Iterator[Row]:
    for key in place.keys:
        good = not key.mode & 0o077
        yield Row(name=f"key {key.path}", state="ok" if good else "fail", found=f"mode {key.mode:o}",
                  wanted="600", fix="" if good else f"chmod 600 {key.path}: others can read it.")  # fmt: skip


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
