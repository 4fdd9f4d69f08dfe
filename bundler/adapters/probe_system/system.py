"""SystemProbe: what Linux tells of this host without root, each thing alone and in well under a second."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from bundler.adapters.probe_system.files import mount_of, port_owners
from bundler.domain.host import Host
from bundler.errors import ToolError
from bundler.ports import Clock, CommandRunner

T = TypeVar("T")
_PROGRAMS = ("gcc", "g++", "nvcc", "ninja", "openssl")
_CUDA = Path("/usr/local/cuda/bin")
_LIMITS = {
    "nofile": resource.RLIMIT_NOFILE,
    "memlock": resource.RLIMIT_MEMLOCK,
    "nproc": resource.RLIMIT_NPROC,
}
_PROXY = re.compile(r"^(https?|all|ftp)_proxy$", re.IGNORECASE)
_ASK = (
    "import os, sys, sysconfig as s; d = s.get_path('include');"
    "print(sys.implementation.name, '%d.%d' % sys.version_info[:2], sys.executable,"
    " d if os.path.isfile(os.path.join(d, 'Python.h')) else '', sep='\\n')"
)
_ANSWER_WITHIN_S = 5


class LinuxSystem:
    """This machine."""

    def __init__(self, runner: CommandRunner, clock: Clock, files: Path = Path("/")) -> None:
        """`files` is the root of /proc, /sys, /dev and /run: tests give their own."""
        self._runner = runner
        self._clock = clock
        self._at = files

    def host(self, places: tuple[Path, ...], python: str) -> Host:
        """Look. Never raises.

        Args:
            places: paths whose file systems matter: the root, the folder for temporary files.
            python: the wanted Python, 3.x.
        """
        unread: dict[str, str] = {}

        def tried(what: str, question: Callable[[], T]) -> T | None:
            try:
                return question()
            except (OSError, ValueError, LookupError, ToolError) as cause:
                unread[what] = str(cause) or type(cause).__name__
                return None

        memory = tried("memory", self._memory) or {}
        found = tried("python", lambda: self._python(python)) or ("", "")
        libraries = tried("libraries", self._libraries)
        glibcxx, cxxabi = tried("libstdc++", lambda: self._cxx(libraries)) or ("", "")
        return Host(
            os=platform.system().lower(),
            arch=platform.machine(),
            kernel=platform.release(),
            glibc=platform.libc_ver()[1],
            glibcxx=glibcxx,
            cxxabi=cxxabi,
            libraries=frozenset(libraries) if libraries is not None else None,
            pythons={python: found[0]} if found[0] else {},
            headers={python: found[1]} if found[1] else {},
            programs=dict(_programs()),
            memory_bytes=memory.get("MemTotal"),
            available_bytes=memory.get("MemAvailable"),
            swap_bytes=memory.get("SwapTotal"),
            shm_bytes=tried("shm", self._shm),
            hugepages=tried("huge pages", self._hugepages) or "",
            limits={
                name: None if soft == resource.RLIM_INFINITY else soft
                for name, number in _LIMITS.items()
                for soft, _ in [resource.getrlimit(number)]
            },
            mounts=tuple(
                mount
                for place in places
                if (mount := tried(f"mount {place}", partial(mount_of, place, self._at)))
            ),
            ports_taken=tried("ports", lambda: port_owners(self._at)) or {},
            selinux=self._selinux(),
            apparmor=self._apparmor(),
            now=self._clock.now(),
            synchronised=True if self._exists("run/systemd/timesync/synchronized") else None,
            proxies=tuple(sorted(name for name in os.environ if _PROXY.match(name))),
            container=self._container(),
            cgroup_memory_bytes=tried("cgroup", self._cgroup_memory),
            cores=len(os.sched_getaffinity(0)),
            user=str(os.getuid()),
            unread=unread,
        )

    def _text(self, path: str) -> str:
        return (self._at / path).read_text(errors="replace")

    def _exists(self, path: str) -> bool:
        return (self._at / path).exists()

    def _memory(self) -> dict[str, int]:
        lines = re.findall(r"^(\w+):\s+(\d+) kB$", self._text("proc/meminfo"), re.MULTILINE)
        return {name: int(value) * 1024 for name, value in lines}

    def _python(self, wanted: str) -> tuple[str, str]:
        """The program and, when Python.h is there, the folder of its headers."""
        for name in (f"python{wanted}", "python3"):
            program = shutil.which(name)
            if program is None:
                continue
            done = self._runner.run([program, "-c", _ASK], timeout_s=_ANSWER_WITHIN_S)
            lines = done.stdout.split("\n")
            if done.returncode == 0 and lines[:2] == ["cpython", wanted]:
                return lines[2], lines[3]
        return "", ""

    def _libraries(self) -> dict[str, str]:
        """Name -> path of what the loader's cache has and what LD_LIBRARY_PATH adds."""
        program = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin")
        if program is None:
            raise ToolError("ldconfig is not here")
        done = self._runner.run([program, "-p"], timeout_s=_ANSWER_WITHIN_S)
        found = dict(re.findall(r"^\s+(\S+) \(.*\) => (\S+)$", done.stdout, re.MULTILINE))
        for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
            if Path(folder).is_dir():
                found |= {path.name: str(path) for path in Path(folder).glob("*.so*")}
        return found

    def _cxx(self, libraries: dict[str, str] | None) -> tuple[str, str]:
        """Newest GLIBCXX and CXXABI of libstdc++: its version names stand in it as text."""
        place = (libraries or {}).get("libstdc++.so.6")
        if place is None:
            return "", ""
        data = Path(place).read_bytes()
        return (
            _newest(data, rb"GLIBCXX_(3\.4(?:\.\d{1,3})?)\b"),
            _newest(data, rb"CXXABI_(1\.3(?:\.\d{1,3})?)\b"),
        )

    def _shm(self) -> int:
        room = os.statvfs(self._at / "dev/shm")
        return room.f_blocks * room.f_frsize

    def _hugepages(self) -> str:
        found = re.search(r"\[(\w+)\]", self._text("sys/kernel/mm/transparent_hugepage/enabled"))
        return found[1] if found else ""

    def _selinux(self) -> str:
        try:
            return (
                "enforcing" if self._text("sys/fs/selinux/enforce").strip() == "1" else "permissive"
            )
        except OSError:
            return ""

    def _apparmor(self) -> str:
        try:
            profile = self._text("proc/self/attr/current").strip("\0\n ")
        except OSError:
            return ""
        return "" if profile in ("unconfined", "") or ":" in profile else profile

    def _container(self) -> str:
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            return "kubernetes"
        for path, name in ((".dockerenv", "docker"), ("run/.containerenv", "podman")):
            if self._exists(path):
                return name
        if "microsoft" in platform.release().lower():
            return "wsl"
        try:
            found = re.search(r"\b(docker|podman|lxc|containerd)\b", self._text("proc/1/cgroup"))
        except OSError:
            return ""
        return found[1] if found else ""

    def _cgroup_memory(self) -> int | None:
        for path in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
            if self._exists(path):
                text = self._text(path).strip()
                # Version 1 states no limit as a number near 2^63.
                return int(text) if text.isdigit() and int(text) < 2**60 else None
        return None


def _programs() -> Iterator[tuple[str, str]]:
    for name in _PROGRAMS:
        found = shutil.which(name)
        if found is None and name == "nvcc" and (_CUDA / name).is_file():
            found = str(_CUDA / name)
        if found is not None:
            yield name, found


def _newest(data: bytes, form: bytes) -> str:
    found = {match.decode() for match in re.findall(form, data)}
    return max(found, key=lambda text: [int(part) for part in text.split(".")], default="")
