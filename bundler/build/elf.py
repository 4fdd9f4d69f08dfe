"""One wheel's shared objects and programs: symbol versions, libraries needed and brought.

A wheel's tag promises a glibc; what the loader will ask for stands in the objects themselves.
"""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from bundler.build.elfobject import LoadedObject, read_object
from bundler.domain.native import SymbolVersion, WheelNeeds
from bundler.domain.sizes import human
from bundler.errors import IntegrityError, as_error, disk_errors
from bundler.format.digests import CHUNK
from bundler.format.untrusted import shown
from bundler.format.wheelzip import open_wheel

_MAGIC = b"\x7fELF"
_VERSION = re.compile(r"(GLIBC|GLIBCXX|CXXABI)_([0-9]{1,5}(?:\.[0-9]{1,5}){0,4})")
# glibc has this name from 2.36 on, for objects with DT_RELR (glibc's NEWS for 2.36).
_MARKS = {"GLIBC_ABI_DT_RELR": "GLIBC_2.36"}
# Not worth opening: texts and data. Anything else is looked at, since programs have no ending.
_NEVER = (
    ".py", ".pyi", ".pyc", ".json", ".txt", ".h", ".hpp", ".cuh", ".cu", ".md", ".rst", ".c", ".cpp",
    ".inl", ".cmake", ".html", ".js", ".css", ".yaml", ".yml", ".npy", ".npz", ".png", ".svg", ".pxd",
    ".f90", ".mo", ".ts", ".map", ".gz", ".csv", ".proto", ".toml", ".cubin", ".fatbin", ".jinja",
)  # fmt: skip
_IN_MEMORY = 32 * 2**20
# Of one wheel. The largest objects known have 2 GiB, and an object some hundred table entries; a
# lying table would go on for ever, and a packed desert of zeros fill the disk.
_MAX_BYTES = 32 * 2**30
_MAX_ENTRIES = 500_000
_MAX_SHOWN = 300


def read_wheel(
    path: Path, arch: str, folder: Path, advance: Callable[[int], None] = lambda _: None
) -> WheelNeeds:
    """What the objects of a wheel need and bring.

    Args:
        path: the wheel.
        arch: the target's processor; objects for another are named.
        folder: for temporary files: an object may have more than a gigabyte.
        advance: told of compressed bytes as they are done.

    Raises:
        IntegrityError: the wheel is no archive.
        SpaceError, FileAccessError: of the temporary file.
    """
    found = _Found(arch)
    faulty = f"{path}: is no wheel"
    with as_error(IntegrityError, faulty):
        wheel = open_wheel(path)
    with wheel:
        for info in wheel.infolist():
            if not info.is_dir() and not info.filename.lower().endswith(_NEVER):
                with as_error(IntegrityError, faulty):
                    _look(wheel, info, found, folder)
            advance(info.compress_size)
    return found.record()


def _look(wheel: zipfile.ZipFile, info: zipfile.ZipInfo, found: _Found, folder: Path) -> None:
    with wheel.open(info) as member:
        piece = member.read(len(_MAGIC))
        if piece != _MAGIC or not found.has_room(info):
            return
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, dir=str(folder)) as copy:
            while piece:
                # Only the writing: a broken archive raises errors of the same kind.
                with disk_errors("writing below", folder):
                    copy.write(piece)
                piece = member.read(CHUNK)
            copy.seek(0)
            found.take(info.filename, copy)


class _Found:
    """Gathers object by object."""

    def __init__(self, arch: str) -> None:
        self._arch = arch
        self._objects = 0
        self._bytes = 0
        self._entries = 0
        self._newest: dict[str, tuple[tuple[int, ...], SymbolVersion]] = {}
        self._needed: dict[str, str] = {}
        self._provided: set[str] = set()
        self._foreign: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}

    def has_room(self, info: zipfile.ZipInfo) -> bool:
        """Whether an object of that size is unpacked; one that is not counts as unreadable."""
        if self._bytes + info.file_size > _MAX_BYTES:
            self._objects += 1
            self._unreadable[shown(info.filename, _MAX_SHOWN)] = (
                f"it has {human(info.file_size)}; {human(_MAX_BYTES)} of a wheel are read"
            )
            return False
        self._bytes += info.file_size
        return True

    def take(self, member: str, stream: IO[bytes]) -> None:
        """Read one object; what its tables get wrong is noted."""
        # Names come from strangers, go to a terminal and cross the gap.
        name = shown(member, _MAX_SHOWN)
        try:
            read = read_object(stream, self._arch, self._spend)
        except IntegrityError as cause:
            self._objects += 1
            self._provided.add(_file(member))
            self._unreadable[name] = shown(str(cause), _MAX_SHOWN)
            return
        if read is None:
            return
        self._objects += 1
        if read.machine != self._arch:
            self._foreign[name] = read.machine
            return
        self._provided |= {_file(member)} | ({shown(read.soname)} if read.soname else set())
        self._keep(read, name)

    def _keep(self, read: LoadedObject, name: str) -> None:
        for library in read.libraries:
            self._needed.setdefault(shown(library), name)
        for text, library in read.versions:
            match = _VERSION.fullmatch(_MARKS.get(text, text))
            if match is None:
                continue
            family, version = match.groups()
            # auditwheel renames what it copies into a wheel: libstdc++-1b2c3d4e.so.6 is its own.
            if family != "GLIBC" and library.startswith("libstdc++-"):
                continue
            key = tuple(map(int, version.split(".")))
            if family not in self._newest or key > self._newest[family][0]:
                self._newest[family] = (key, SymbolVersion(version=version, object=name))

    def _spend(self) -> None:
        self._entries += 1
        if self._entries > _MAX_ENTRIES:
            raise ValueError(f"over {_MAX_ENTRIES} entries in the tables of one wheel")

    def record(self) -> WheelNeeds:
        """The sum."""
        return WheelNeeds(
            objects=self._objects,
            newest={family: item for family, (_, item) in sorted(self._newest.items())},
            needed=dict(sorted(self._needed.items())),
            provided=tuple(sorted(self._provided)),
            foreign=self._foreign,
            unreadable=self._unreadable,
        )


def _file(member: str) -> str:
    return shown(member.rsplit("/", 1)[-1])
