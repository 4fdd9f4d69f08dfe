"""One ELF object as the loader sees it: PT_DYNAMIC, DT_NEEDED, DT_SONAME and DT_VERNEED.

Sections are not asked: an object may have none, and the loader reads none
(https://refspecs.linuxfoundation.org/LSB_5.0.0/LSB-Core-generic/LSB-Core-generic/symversion.html).
Every table is walked with a count, since pyelftools follows a lying one for as long as it lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from elftools.common.utils import struct_parse
from elftools.elf.elffile import ELFFile

from bundler.errors import IntegrityError, as_error

# Code for GPUs and the kernel lies in wheels as ELF too, and relocatable objects are for linkers.
_NOT_FOR_THE_LOADER = {"EM_CUDA", "EM_AMDGPU", "EM_BPF"}
_LOADED = {"ET_DYN", "ET_EXEC"}
# Real objects have about a dozen segments, and names of some tens of letters.
_MAX_SEGMENTS = 512
_MAX_NAME = 4096
# A version that is only wanted by weak symbols may be absent (glibc, elf/dl-version.c).
_WEAK = 0x2


@dataclass(frozen=True)
class LoadedObject:
    """What one object needs and is called. `versions` are pairs of symbol version and library."""

    machine: str
    libraries: tuple[str, ...] = ()
    soname: str = ""
    versions: tuple[tuple[str, str], ...] = ()


def read_object(stream: IO[bytes], arch: str, spend: Callable[[], None]) -> LoadedObject | None:
    """Read an object; of one for another processor only which. None for what no loader loads.

    Args:
        stream: the file, seekable.
        arch: the target's processor.
        spend: called for each table entry that is read; raises when there were too many.

    Raises:
        IntegrityError: its tables contradict themselves or the file.
    """
    with as_error(IntegrityError, "its tables"):
        elf = ELFFile(stream)
        named = str(elf.header["e_machine"])
        if named in _NOT_FOR_THE_LOADER or elf.header["e_type"] not in _LOADED:
            return None
        machine = named.removeprefix("EM_").lower() + ("" if elf.elfclass == 64 else ", 32 bit")
        return LoadedObject(machine) if machine != arch else _Tables(elf, spend).read(machine)


class _Tables:
    """The tables of one object, found by addresses as the loader finds them."""

    def __init__(self, elf: ELFFile, spend: Callable[[], None]) -> None:
        self._stream = elf.stream
        self._structs: Any = elf.structs
        self._spend = spend
        self._segments = list(self._headers(elf.header))
        entries = list(self._dynamic())
        self._needed = [value for tag, value in entries if tag == "DT_NEEDED"]
        self._values = dict(entries)

    def read(self, machine: str) -> LoadedObject:
        """All of it."""
        soname = self._values.get("DT_SONAME")
        return LoadedObject(
            machine=machine,
            libraries=tuple(map(self._name, self._needed)),
            soname="" if soname is None else self._name(soname),
            versions=tuple(self._versions()),
        )

    def _parse(self, kind: Any, at: int) -> Any:
        self._spend()
        return struct_parse(kind, self._stream, stream_pos=at)

    def _headers(self, header: Any) -> Iterator[Any]:
        size = self._structs.Elf_Phdr.sizeof()
        if header["e_phnum"] > _MAX_SEGMENTS:
            raise ValueError(f"{header['e_phnum']} segments")
        if header["e_phnum"] and header["e_phentsize"] != size:
            raise ValueError(f"segment headers of {header['e_phentsize']} bytes")
        for number in range(header["e_phnum"]):
            yield self._parse(self._structs.Elf_Phdr, header["e_phoff"] + number * size)

    def _dynamic(self) -> Iterator[tuple[str, int]]:
        found = [segment for segment in self._segments if segment["p_type"] == "PT_DYNAMIC"]
        if not found:
            return
        size = self._structs.Elf_Dyn.sizeof()
        start = found[-1]["p_offset"]
        for at in range(start, start + found[-1]["p_filesz"] - size + 1, size):
            entry = self._parse(self._structs.Elf_Dyn, at)
            if entry["d_tag"] == "DT_NULL":
                return
            yield str(entry["d_tag"]), entry["d_val"]

    def _offset(self, tag: str) -> int:
        """Where in the file the table lies whose address the tag gives."""
        address = self._values[tag]
        for segment in self._segments:
            inside = address - segment["p_vaddr"]
            if segment["p_type"] == "PT_LOAD" and 0 <= inside < segment["p_filesz"]:
                return int(segment["p_offset"] + inside)
        raise ValueError(f"{tag} lies outside of what is loaded")

    def _name(self, index: int) -> str:
        self._spend()
        room = self._values.get("DT_STRSZ", 0) - index
        self._stream.seek(self._offset("DT_STRTAB") + index)
        name, end, _ = self._stream.read(max(0, min(room, _MAX_NAME))).partition(b"\0")
        if not end:
            raise ValueError("a name has no end")
        return name.decode(errors="replace")

    def _versions(self) -> Iterator[tuple[str, str]]:
        left = self._values.get("DT_VERNEEDNUM", 0) if "DT_VERNEED" in self._values else 0
        at = self._offset("DT_VERNEED") if left else 0
        while left:
            need = self._parse(self._structs.Elf_Verneed, at)
            yield from self._of_library(need, at + need["vn_aux"])
            left = left - 1 if need["vn_next"] else 0
            at += need["vn_next"]

    def _of_library(self, need: Any, at: int) -> Iterator[tuple[str, str]]:
        library = self._name(need["vn_file"])
        for _ in range(need["vn_cnt"]):
            auxiliary = self._parse(self._structs.Elf_Vernaux, at)
            if not auxiliary["vna_flags"] & _WEAK:
                yield self._name(auxiliary["vna_name"]), library
            if not auxiliary["vna_next"]:
                return
            at += auxiliary["vna_next"]
