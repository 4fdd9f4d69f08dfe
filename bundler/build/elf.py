"""One wheel's shared objects, read with pyelftools: symbol versions, libraries needed and brought.

A wheel's tag promises a glibc; what the loader will ask for stands in .gnu.version_r
(https://refspecs.linuxfoundation.org/LSB_5.0.0/LSB-Core-generic/LSB-Core-generic/symversion.html).
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

from bundler.domain.native import SymbolVersion, WheelNeeds
from bundler.errors import IntegrityError

_MAGIC = b"\x7fELF"
_FAMILIES = ("GLIBC", "GLIBCXX", "CXXABI")
_MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
# Not worth opening: texts and data. Anything else is looked at, since programs have no ending.
_NEVER = (
    ".py", ".pyi", ".pyc", ".json", ".txt", ".h", ".hpp", ".cuh", ".cu", ".md", ".rst", ".c", ".cpp",
    ".inl", ".cmake", ".html", ".js", ".css", ".yaml", ".yml", ".npy", ".npz", ".png", ".svg", ".pxd",
    ".f90", ".mo", ".ts", ".map", ".gz", ".csv", ".proto", ".toml", ".cubin", ".fatbin", ".jinja",
)  # fmt: skip
_IN_MEMORY = 32 * 2**20
# Tables of a real library have some hundreds of entries; a lying one would go on for ever.
_MAX_ENTRIES = 100_000


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
    """
    found = _Found(arch)
    try:
        with zipfile.ZipFile(path) as wheel:
            for info in wheel.infolist():
                if not info.is_dir() and not info.filename.lower().endswith(_NEVER):
                    _look(wheel, info, found, folder)
                advance(info.compress_size)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as cause:
        raise IntegrityError(f"{path}: is no wheel: {cause}") from cause
    return found.record()


def _look(wheel: zipfile.ZipFile, info: zipfile.ZipInfo, found: _Found, folder: Path) -> None:
    with wheel.open(info) as member:
        magic = member.read(4)
        if magic != _MAGIC:
            return
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, dir=str(folder)) as copy:
            copy.write(magic)
            shutil.copyfileobj(member, copy, 1 << 20)
            copy.seek(0)
            found.take(info.filename, copy)


class _Found:
    """Gathers object by object."""

    def __init__(self, arch: str) -> None:
        self._arch = arch
        self._objects = 0
        self._newest: dict[str, tuple[tuple[int, ...], SymbolVersion]] = {}
        self._needed: dict[str, str] = {}
        self._provided: set[str] = set()
        self._foreign: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}

    def take(self, name: str, stream: IO[bytes]) -> None:
        """Read one object; what its tables get wrong is noted."""
        self._objects += 1
        self._provided.add(name.rsplit("/", 1)[-1])
        try:
            elf = ELFFile(stream)
            machine = str(elf.header["e_machine"])
            if machine != _MACHINES[self._arch]:
                self._foreign[name] = machine.removeprefix("EM_").lower()
                return
            for library in _libraries(elf):
                self._needed.setdefault(library, name)
            self._provided |= set(_soname(elf))
            for text in _versions(elf):
                self._note(text, name)
        # A library that reads bytes by their own word lets out whatever it runs into.
        except (ELFError, ConstructError, ValueError, ArithmeticError, LookupError, TypeError,
                AttributeError, AssertionError, MemoryError, RecursionError) as cause:  # fmt: skip
            self._unreadable[name] = str(cause)[:200] or type(cause).__name__

    def _note(self, text: str, name: str) -> None:
        family, _, version = text.rpartition("_")
        numbers = version.split(".")
        if family not in _FAMILIES or not all(part.isdigit() and len(part) < 6 for part in numbers):
            return
        key = tuple(map(int, numbers))
        if family not in self._newest or key > self._newest[family][0]:
            self._newest[family] = (key, SymbolVersion(version=version, object=name))

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


def _libraries(elf: ELFFile) -> Iterator[str]:
    for tag in _tags(elf, "DT_NEEDED"):
        yield str(tag.needed)


def _soname(elf: ELFFile) -> Iterator[str]:
    for tag in _tags(elf, "DT_SONAME"):
        yield str(tag.soname)


def _tags(elf: ELFFile, kind: str) -> Iterator[Any]:
    for count, segment in enumerate(elf.iter_segments()):
        if count > _MAX_ENTRIES:
            raise ValueError("too many segments")
        if isinstance(segment, DynamicSegment):
            for at, tag in enumerate(segment.iter_tags(kind)):
                if at > _MAX_ENTRIES:
                    raise ValueError("too many dynamic entries")
                yield tag


def _versions(elf: ELFFile) -> Iterator[str]:
    if elf.num_sections() > _MAX_ENTRIES:
        raise ValueError("too many sections")
    section = elf.get_section_by_name(".gnu.version_r")
    if not isinstance(section, GNUVerNeedSection):
        return
    count = 0
    for _, auxiliaries in section.iter_versions():
        for auxiliary in auxiliaries:
            count += 1
            if count > _MAX_ENTRIES:
                raise ValueError("too many symbol versions")
            yield str(auxiliary.name)
