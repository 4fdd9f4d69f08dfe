"""All shared objects of a bundle -> what the host must have, and whether the target has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bundler.build.cuda import driver_for, is_cpu_build, numbers, runtime_of
from bundler.build.driver import judge_driver
from bundler.build.elf import read_wheel
from bundler.build.recall import Recall
from bundler.build.tags import glibc_of
from bundler.domain.catalogue import finding
from bundler.domain.findings import Finding, Level
from bundler.domain.lock import LockedWheel
from bundler.domain.native import NATIVE_VERSION, WheelNeeds
from bundler.domain.needs import HostNeeds
from bundler.domain.target import Target
from bundler.errors import disk_errors
from bundler.format.workers import in_parallel
from bundler.ports import Progress, Task

_WORKERS = 2
# glibc's own: a glibc of the right version has them.
_GLIBC = {
    "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1",
    "libresolv.so.2", "libanl.so.1", "libnsl.so.1", "libcrypt.so.1", "libBrokenLocale.so.1",
    "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libmvec.so.1", "libnss_files.so.2",
}  # fmt: skip
# They come with the NVIDIA driver, and with it alone.
_DRIVER = {
    "libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvcuvid.so.1",
    "libnvidia-encode.so.1",
}  # fmt: skip
# What belongs to a system: library -> package of Debian and Ubuntu, package of RHEL. Other libraries
# that nothing brings belong to plugins for hardware, schedulers and compilers, as a rule.
_PACKAGES = {
    "libstdc++.so.6": ("libstdc++6", "libstdc++"), "libgcc_s.so.1": ("libgcc-s1", "libgcc"),
    "libgomp.so.1": ("libgomp1", "libgomp"), "libgomp.so.1.0.0": ("libgomp1", "libgomp"),
    "libnuma.so.1": ("libnuma1", "numactl-libs"),
    "libGL.so.1": ("libgl1", "mesa-libGL"), "libGLX.so.0": ("libglx0", "libglvnd-glx"),
    "libglib-2.0.so.0": ("libglib2.0-0", "glib2"), "libgthread-2.0.so.0": ("libglib2.0-0", "glib2"),
    "libz.so.1": ("zlib1g", "zlib"), "libX11.so.6": ("libx11-6", "libX11"),
    "libSM.so.6": ("libsm6", "libSM"), "libXext.so.6": ("libxext6", "libXext"),
    "libXrender.so.1": ("libxrender1", "libXrender"), "libICE.so.6": ("libice6", "libICE"),
    "libvulkan.so.1": ("libvulkan1", "vulkan-loader"), "libssl.so.3": ("libssl3", "openssl-libs"),
    "libcrypto.so.3": ("libssl3", "openssl-libs"), "libffi.so.8": ("libffi8", "libffi"),
    "libuuid.so.1": ("libuuid1", "libuuid"), "libexpat.so.1": ("libexpat1", "expat"),
    "libsndfile.so.1": ("libsndfile1", "libsndfile"), "liblzma.so.5": ("liblzma5", "xz-libs"),
    "libbz2.so.1.0": ("libbz2-1.0", "bzip2-libs"), "libatomic.so.1": ("libatomic1", "libatomic"),
    "libelf.so.1": ("libelf1", "elfutils-libelf"), "libtinfo.so.6": ("libtinfo6", "ncurses-libs"),
    "libxcb.so.1": ("libxcb1", "libxcb"), "libEGL.so.1": ("libegl1", "libglvnd-egl"),
}  # fmt: skip
# Any C++ program brings them; a host without them could not run much.
_EVERYWHERE = {"libstdc++.so.6", "libgcc_s.so.1"}


@dataclass(frozen=True)
class Native:
    """What was read: the sum for the manifest, and what only the judgement needs.

    `foreign`: objects of wheels that have none for the target. `mixed`: wheels that have some for it
    and some for others. `strangers`: libraries that neither the bundle nor a usual system has -> who
    needs each. `driver_for`: who needs the driver's libraries, empty when nobody does.
    """

    needs: HostNeeds
    foreign: Mapping[str, str]
    unreadable: Mapping[str, str]
    unread: int
    strangers: Mapping[str, str] = field(default_factory=dict)
    mixed: Mapping[str, str] = field(default_factory=dict)
    driver_for: str = ""


def read_native(
    wheels: Sequence[LockedWheel],
    arch: str,
    here: Callable[[LockedWheel], Path | None],
    recall: Recall,
    progress: Progress,
) -> Native:
    """Read the objects of every wheel that is here; those read once are remembered.

    Args:
        wheels: of the whole bundle.
        arch: the target's processor.
        here: the file of a wheel, or None when it is not on this machine.
        recall: keeps what was read under the wheel's digest.
        progress: told of bytes.

    Raises:
        IntegrityError: a wheel is no archive.
    """
    known = {wheel: _known(wheel, arch, recall) for wheel in wheels}
    todo = [(wheel, path) for wheel in wheels
            if known[wheel] is None and (path := here(wheel)) is not None]  # fmt: skip

    def read(item: tuple[LockedWheel, Path], task: Task) -> WheelNeeds:
        wheel, path = item
        return recall.of(
            WheelNeeds,
            _key(wheel, arch),
            lambda: read_wheel(path, arch, recall.folder, task.advance),
        )

    if todo:
        with disk_errors("creating", recall.folder):
            recall.folder.mkdir(parents=True, exist_ok=True)
        total = sum(path.stat().st_size for _, path in todo)
        with progress.task("read objects", total) as task:
            for (wheel, _), needs in zip(
                todo, in_parallel(_WORKERS, read, todo, task), strict=True
            ):
                known[wheel] = needs
    found = {wheel: needs for wheel, needs in known.items() if needs is not None}
    absent = _absent(found)
    return Native(
        needs=_sum(wheels, found, {k: v for k, v in absent.items() if k in _PACKAGES}),
        foreign={
            f"{wheel.filename}: {name}": machine
            for wheel, needs in found.items()
            if len(needs.foreign) == needs.objects
            for name, machine in needs.foreign.items()
        },
        unreadable={
            f"{w.filename}: {o}": m for w, n in found.items() for o, m in n.unreadable.items()
        },
        unread=len(wheels) - len(found),
        strangers={k: v for k, v in absent.items() if k not in _PACKAGES},
        mixed={
            wheel.filename: _mixture(needs)
            for wheel, needs in found.items()
            if 0 < len(needs.foreign) < needs.objects
        },
        driver_for=_driver_user(wheels, found),
    )


def _key(wheel: LockedWheel, arch: str) -> str:
    return f"{NATIVE_VERSION}-{arch}-{wheel.sha256}"


def _known(wheel: LockedWheel, arch: str, recall: Recall) -> WheelNeeds | None:
    return recall.find(WheelNeeds, _key(wheel, arch))


def _mixture(needs: WheelNeeds) -> str:
    name, machine = next(iter(needs.foreign.items()))
    return f"{len(needs.foreign)} of its {needs.objects} objects, first {name}, for {machine}"


def _driver_user(wheels: Sequence[LockedWheel], found: Mapping[LockedWheel, WheelNeeds]) -> str:
    if is_cpu_build({wheel.name: wheel.version for wheel in wheels}):
        return ""
    users = (
        f"{wheel.filename}: {name} needs {library}"
        for wheel, needs in found.items()
        for library, name in needs.needed.items()
        if library in _DRIVER
    )
    return next(users, "")


def _absent(found: Mapping[LockedWheel, WheelNeeds]) -> dict[str, str]:
    """Libraries that nothing brings -> an object that needs each."""
    needed: dict[str, str] = {}
    for wheel, needs in found.items():
        for library, name in needs.needed.items():
            needed.setdefault(library, f"{wheel.filename}: {name}")
    there = {name for needs in found.values() for name in needs.provided} | _GLIBC | _DRIVER
    return {name: who for name, who in sorted(needed.items()) if name not in there}


def _sum(
    wheels: Sequence[LockedWheel],
    found: Mapping[LockedWheel, WheelNeeds],
    libraries: Mapping[str, str],
) -> HostNeeds:
    newest: dict[str, str] = {}
    because: dict[str, str] = {}
    for wheel, needs in found.items():
        for family, item in needs.newest.items():
            if numbers(item.version) > numbers(newest.get(family, "0")):
                newest[family] = item.version
                because[family.lower()] = f"{wheel.filename}: {item.object}"
    linked = {library: "" for needs in found.values() for library in needs.needed}
    runtime = runtime_of({wheel.name: wheel.version for wheel in wheels}, linked)
    return HostNeeds(
        checked=len(found) == len(wheels),
        objects=sum(needs.objects for needs in found.values()),
        glibc=newest.get("GLIBC", ""),
        glibcxx=newest.get("GLIBCXX", ""),
        cxxabi=newest.get("CXXABI", ""),
        libraries=tuple(libraries),
        because=because | dict(libraries),
        cuda_runtime=runtime,
        driver=driver_for(runtime),
    )


def judge_native(native: Native, target: Target) -> Iterator[Finding]:
    """Whether the target has what the objects need, as far as the spec states it."""
    needs = native.needs
    if needs.glibc and numbers(needs.glibc) > numbers(target.glibc):
        who = needs.because["glibc"]
        yield finding(
            "glibc-too-old",
            "target.glibc",
            f"{who} needs glibc {needs.glibc}, the target has {target.glibc}{_promise(who, target)}",
        )
    for name, machine in native.foreign.items():
        yield finding("object-foreign", name, f"is for {machine}, the target is {target.arch}")
    for name, mixture in native.mixed.items():
        what = f"brings {mixture}, beside those for {target.arch}"
        yield finding("object-foreign", name, what, level=Level.NOTE)
    for name, why in native.unreadable.items():
        yield finding("object-unreadable", name, why)
    if needs.checked:
        # A wheel that was not read may bring the library.
        yield from (_missing(library, needs) for library in needs.libraries)
        if native.strangers:
            name, who = next(iter(native.strangers.items()))
            yield finding(
                "library-missing",
                ", ".join(native.strangers)[:500],
                f"nothing brings them; {name} is needed by {who}",
                fix="Plugins for other hardware name such; see whether the engine starts without.",
                level=Level.NOTE,
            )
    yield from judge_driver(needs, target, native.driver_for)
    if native.unread:
        yield finding(
            "native-unread", "wheels", f"{native.unread} are not here yet and were not read"
        )


def _promise(who: str, target: Target) -> str:
    """What the tag of that wheel says instead, when it says anything."""
    promised = glibc_of([who.partition(": ")[0]], target)
    return "" if promised == "2.0" else f"; the wheel's file name promises {promised}"


def _missing(library: str, needs: HostNeeds) -> Finding:
    debian, redhat = _PACKAGES[library]
    fix = f"Install {debian} (Debian, Ubuntu) or {redhat} (RHEL) on the target."
    level = Level.NOTE if library in _EVERYWHERE else None
    what = f"{needs.because[library]} needs it"
    return finding("library-missing", library, what, fix=fix, level=level)
