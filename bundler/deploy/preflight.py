"""What a bundle needs x what this host is -> a table: ok, warn, fail, could not check; each with the fix.

Pure: hosts and GPUs come in as records, so that every row is tested in every state without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bundler.deploy.preflight_gpu import gpu_rows
from bundler.domain.host import Devices, Host, Mount, Row
from bundler.domain.manifest import Manifest
from bundler.domain.sizes import human

GIB = 2**30
# Wheels unpack to about this much more, bytecode included (vLLM 0.17.1: 4.8 GiB to 11.6 GiB).
UNPACKED = 2.5
_SMALL_SHM, _SHM = 256 * 2**20, GIB
_FILES = 4096
_HEADROOM = 4 * GIB


@dataclass(frozen=True)
class Case:
    """Everything that is judged together.

    `bytes_to_come` is what the root's disk must still take for the import; `own_ports` are listened on by
    services of this root, which make way for a new release.
    """

    manifest: Manifest
    host: Host
    devices: Devices
    bytes_to_come: int = 0
    own_ports: frozenset[int] = frozenset()

    @property
    def gpus_of_a_service(self) -> int:
        """Most GPUs of one host that share one model."""
        return max((service.gpus_per_node for service in self.manifest.services), default=1)

    @property
    def wants_gpu(self) -> bool:
        """Whether the engine runs on GPUs."""
        return bool(self.manifest.target.gpus or self.manifest.needs.cuda_runtime)

    def weights(self, model: str) -> int:
        """Bytes of a model's files."""
        begin = f"models/{model}/"
        return sum(entry.size for entry in self.manifest.entries if entry.path.startswith(begin))


def preflight(case: Case) -> tuple[Row, ...]:
    """Judge everything; the order is that of the table."""
    rows = [*_system(case), *_native(case), *_python(case), *_tools(case), *_memory(case),
            *_disks(case), *_ports(case), *_surroundings(case)]  # fmt: skip
    found = case.devices
    needs = case.manifest.needs
    return (
        *rows,
        *gpu_rows(
            found, case.manifest.services, case.manifest.target.gpus, needs.driver,
            needs.cuda_runtime, {s.name: case.weights(s.model) for s in case.manifest.services},
            wanted=case.wants_gpu, engine=case.manifest.engine.name,
        ),
    )  # fmt: skip


def _system(case: Case) -> Iterator[Row]:
    host, target = case.host, case.manifest.target
    yield _same("operating system", host.os, target.os, "Use a Linux host.")
    yield _same("processor", host.arch, target.arch, f"Have the bundle built for {host.arch}.")
    where = host.container or "none seen"
    if host.container:
        fix = (
            "Give it the GPUs, enough /dev/shm (--shm-size) and no memory limit below the weights."
        )
        yield Row(name="container", state="warn", found=where, fix=fix)
    else:
        yield Row(name="container", state="ok", found=where)


def _native(case: Case) -> Iterator[Row]:
    needs, host = case.manifest.needs, case.host
    newer = "Use a newer system, or have the bundle built for this one (target.glibc)."
    for name, has, wants in (
        ("glibc", host.glibc, needs.glibc or case.manifest.target.glibc),
        ("GLIBCXX", host.glibcxx, needs.glibcxx),
        ("CXXABI", host.cxxabi, needs.cxxabi),
    ):
        if wants:
            yield _at_least(name, has, wants, newer, host.unread.get("libstdc++", ""))
    if needs.libraries:
        if host.libraries is None:
            why = host.unread.get("libraries", "")
            yield Row(
                name="libraries", state="unknown", found=why, wanted=", ".join(needs.libraries)
            )
            return
        # The driver brings these; its own rows judge them.
        wanted = [
            name for name in needs.libraries if not re.match(r"lib(cuda|nvidia-ml)\.so", name)
        ]
        missing = [name for name in wanted if name not in host.libraries]
        yield Row(
            name="libraries",
            state="fail" if missing else "ok",
            found=f"missing: {', '.join(missing)}" if missing else f"{len(wanted)} found",
            fix="Install the packages that bring them." if missing else "",
        )


def _python(case: Case) -> Iterator[Row]:
    wanted = case.manifest.target.python
    carried = any(file.role == "python-runtime" for file in case.manifest.files)
    found = case.host.pythons.get(wanted, "")
    if carried:
        yield Row(name="python", state="ok", found="carried in the bundle", wanted=wanted)
    elif found:
        yield Row(name="python", state="ok", found=found, wanted=wanted)
    else:
        fix = f"Install CPython {wanted}, or have the bundle built with a python-runtime file."
        state = "unknown" if "python" in case.host.unread else "fail"
        yield Row(name="python", state=state, found=case.host.unread.get("python", "none on PATH"),
                  wanted=wanted, fix=fix)  # fmt: skip


def _tools(case: Case) -> Iterator[Row]:
    host, wanted = case.host, case.manifest.target.python
    for tool in case.manifest.needs.tools:
        if tool.name == "cuda-compat":
            continue
        if tool.name == "python-headers":
            found = host.headers.get(wanted, "")
            fix = f"Install the development package of Python {wanted} (Python.h)."
        else:
            found = host.programs.get(tool.name, "")
            fix = f"Install {tool.name}: {tool.why}"
        yield Row(name=tool.name, state="ok" if found else "fail", found=found or "not there",
                  wanted=tool.why, fix="" if found else fix)  # fmt: skip


def _memory(case: Case) -> Iterator[Row]:
    host = case.host
    sizes = {model.name: case.weights(model.name) for model in case.manifest.models}
    files = [e.size for e in case.manifest.entries if e.kind == "model"]
    need = (max(files, default=0) if case.wants_gpu else sum(sizes.values())) + _HEADROOM
    has = min(filter(None, (host.available_bytes or host.memory_bytes, host.cgroup_memory_bytes)),
              default=None)  # fmt: skip
    if has is None:
        yield Row(name="memory", state="unknown", found=host.unread.get("memory", "not readable"),
                  wanted=human(need))  # fmt: skip
    else:
        low = "warn" if case.wants_gpu else "fail"
        limit = " (a limit of its cgroup)" if has == host.cgroup_memory_bytes else ""
        yield Row(name="memory", state="ok" if has >= need else low, found=human(has) + limit,
                  wanted=human(need),
                  fix="" if has >= need else "Stop what holds memory, or raise the limit.")  # fmt: skip
    if case.gpus_of_a_service > 1:
        yield _shm(host)
    for name, least in (("nofile", _FILES), ("memlock", 2**16)):
        if name in host.limits:
            value = host.limits[name]
            good = value is None or value >= least
            yield Row(name=f"limit {name}", state="ok" if good else "warn",
                      found="none" if value is None else str(value), wanted=str(least),
                      fix="" if good else f"ulimit -{'n' if name == 'nofile' else 'l'} {least},"
                      " or LimitNOFILE= / LimitMEMLOCK= in the unit.")  # fmt: skip
    huge = host.hugepages
    yield Row(name="huge pages", state="ok" if huge in ("always", "madvise") else
              "warn" if huge else "unknown", found=huge or host.unread.get("huge pages", ""),
              wanted="always or madvise",
              fix="" if huge != "never" else "echo madvise >"
              " /sys/kernel/mm/transparent_hugepage/enabled")  # fmt: skip


def _shm(host: Host) -> Row:
    size = host.shm_bytes
    if size is None:
        return Row(name="shared memory", state="unknown", found=host.unread.get("shm", ""),
                   wanted=human(_SHM))  # fmt: skip
    state = "ok" if size >= _SHM else "warn" if size >= _SMALL_SHM else "fail"
    fix = "mount -o remount,size=8G /dev/shm, or --shm-size=8g for a container: NCCL shares it."
    return Row(name="shared memory", state=state, found=human(size), wanted=human(_SHM),
               fix="" if state == "ok" else fix)  # fmt: skip


def _disks(case: Case) -> Iterator[Row]:
    wheels = sum(entry.size for entry in case.manifest.entries if entry.kind == "wheel")
    need = case.bytes_to_come + int(wheels * UNPACKED)
    for number, mount in enumerate(case.host.mounts):
        yield from _mount(mount, need if number == 0 else GIB, root=number == 0)
    if not case.host.mounts:
        why = "; ".join(v for k, v in case.host.unread.items() if k.startswith("mount"))
        yield Row(name="disk", state="unknown", found=why or "not readable", wanted=human(need))


def _mount(mount: Mount, need: int, *, root: bool) -> Iterator[Row]:
    name = f"disk {mount.path}"
    where = f"{human(mount.free_bytes)} free on {mount.mount} ({mount.file_system or '?'})"
    bad = "fail" if root else "warn"
    if mount.read_only:
        yield Row(name=name, state=bad, found=f"{mount.mount} is read-only",
                  fix="Mount it writable, or give another --root.")  # fmt: skip
        return
    good = mount.free_bytes >= need
    yield Row(name=name, state="ok" if good else bad, found=where, wanted=human(need),
              fix="" if good else "Free space, or give another place.")  # fmt: skip
    if mount.noexec:
        fix = (
            "Mount it with exec, or give another --root."
            if root
            else "Set TMPDIR to another folder."
        )
        yield Row(
            name=f"exec {mount.path}", state=bad, found=f"{mount.mount} is mounted noexec", fix=fix
        )
    if root and mount.network:
        yield Row(name=f"kind {mount.path}", state="warn",
                  found=f"{mount.mount} is a network file system ({mount.file_system})",
                  fix="Use a local disk: locks and start-up suffer from the network.")  # fmt: skip


def _ports(case: Case) -> Iterator[Row]:
    for service in case.manifest.services:
        name = f"port {service.port}"
        if "ports" in case.host.unread:
            yield Row(name=name, state="unknown", found=case.host.unread["ports"])
        elif service.port not in case.host.ports_taken:
            yield Row(name=name, state="ok", found="free")
        elif service.port in case.own_ports:
            yield Row(name=name, state="ok", found="held by a service of this root")
        else:
            who = case.host.ports_taken[service.port] or "a process of another user"
            yield Row(name=name, state="fail", found=f"held by {who}",
                      fix="Stop it, or give the service another port in the spec.")  # fmt: skip


def _surroundings(case: Case) -> Iterator[Row]:
    host = case.host
    enforced = host.selinux == "enforcing"
    yield Row(name="SELinux", state="warn" if enforced else "ok", found=host.selinux or "not there",
              fix="A system unit needs bin_t on the release's programs: semanage fcontext, restorecon."
              if enforced else "")  # fmt: skip
    yield Row(name="AppArmor", state="warn" if host.apparmor else "ok",
              found=host.apparmor or "does not confine this process",
              fix="Let the profile read and execute below the root." if host.apparmor else "")  # fmt: skip
    yield _clock(case)
    held = ", ".join(host.proxies)
    yield Row(name="proxies", state="warn" if held else "ok", found=held or "none set",
              fix="Engines do not get them; set NO_PROXY=127.0.0.1,localhost for clients here."
              if held else "")  # fmt: skip


def _clock(case: Case) -> Row:
    """Without a time service the bundle's own date is all that a closed host has to compare with."""
    now, built = case.host.now, case.manifest.created
    if not re.match(r"\d{4}-\d\d-\d\dT", now) or not re.match(r"\d{4}-\d\d-\d\dT", built):
        return Row(name="clock", state="unknown", found=now or "not readable")
    if now < built:
        return Row(name="clock", state="fail", found=now, wanted=f"after {built}",
                   fix="Set the clock: the bundle is from later, and approvals expire by it.")  # fmt: skip
    kept = "kept by a time service" if case.host.synchronised else "no time service seen"
    return Row(name="clock", state="ok", found=f"{now}, {kept}", wanted=f"after {built}")


def _same(name: str, has: str, wants: str, fix: str) -> Row:
    state = "unknown" if not has else "ok" if has == wants else "fail"
    return Row(name=name, state=state, found=has or "not readable", wanted=wants,
               fix=fix if state == "fail" else "")  # fmt: skip


def _at_least(name: str, has: str, wants: str, fix: str, why: str) -> Row:
    if not has:
        return Row(name=name, state="unknown", found=why or "none found", wanted=wants)
    good = numbers(has) >= numbers(wants)
    return Row(name=name, state="ok" if good else "fail", found=has, wanted=wants,
               fix="" if good else fix)  # fmt: skip


def numbers(version: str) -> tuple[int, ...]:
    """The numbers in a version."""
    return tuple(int(part) for part in re.findall(r"\d+", version))
