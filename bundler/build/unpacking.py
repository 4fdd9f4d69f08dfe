"""A release's tar archive -> its files, under names of our own, so that no path in it reaches the disk.

What a stranger's archive may do is bounded: bytes, members, the size of one header; links lead to files of the
archive or nowhere. gzip, and zstd by the standard library of CPython 3.14 (PEP 784) or `backports.zstd` below.
"""

from __future__ import annotations

import gzip
import posixpath
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any, cast

from bundler.domain.sizes import human
from bundler.errors import BundlerError, FormatError, HostError, SourceError, disk_errors
from bundler.format.digests import CHUNK
from bundler.format.safepath import check_path
from bundler.format.untrusted import shown

_HINT = "Take the archive as its project publishes it, and state its SHA-256."
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# Ollama's largest release unpacks to some 5 GiB in some hundred files.
MOST_BYTES = 32 * 2**30
MOST_MEMBERS = 20_000
# What the reader may take between two members: real headers have some hundred bytes.
_HEADER = 2 * 2**20
_READ = 256 * 1024
_MOST_HOPS = 40


@dataclass(frozen=True)
class Unpacked:
    """An archive's files. `links` are further names -> the name of the file that they lead to."""

    files: Mapping[str, Path]
    programs: frozenset[str]
    links: Mapping[str, str]


def unpack(archive: Path, into: Path, advance: Callable[[int], None] = lambda _: None) -> Unpacked:
    """Unpack a tar archive into numbered files of a folder.

    Args:
        archive: plain, or packed with gzip or zstd; told by its first bytes.
        into: an empty folder.
        advance: told of packed bytes as they are read.

    Raises:
        SourceError: it is none, is cut short, or holds what no release has: devices, sparse files, absolute
            paths or `..`, links that lead out of it, more than is taken.
        HostError: it is packed with zstd, which this Python cannot read.
        SpaceError, FileAccessError: of the disk.
    """
    with (
        disk_errors("reading", archive),
        archive.open("rb") as packed,
        _refusing(archive),
        _plain(archive, _Counted(packed, advance)) as plain,
    ):
        return _Unpacking(into, _Bounded(plain)).run()


class _Unpacking:
    def __init__(self, into: Path, source: _Bounded) -> None:
        self._into = into
        self._source = source
        self._files: dict[str, Path] = {}
        self._programs: set[str] = set()
        self._links: dict[str, str] = {}
        self._seen: set[str] = set()

    def run(self) -> Unpacked:
        """All of it."""
        self._source.allow(_HEADER)
        # ignore_zeros stays off: what follows the end mark is no part of the archive.
        source = cast(IO[bytes], self._source)
        with tarfile.open(fileobj=source, mode="r|", bufsize=_READ) as tar:
            for member in tar:
                if len(self._seen) >= MOST_MEMBERS:
                    raise FormatError(f"it holds more than {MOST_MEMBERS} files")
                if not member.isdir():
                    self._take(tar, member)
                self._source.allow(_HEADER)
        if not self._files:
            raise FormatError("it holds no file")
        return Unpacked(self._files, frozenset(self._programs), _followed(self._links, self._files))

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = _name(member.name)
        if name in self._seen:
            raise FormatError(f"it holds {shown(name)} twice")
        self._seen.add(name)
        if member.issym():
            self._links[name] = _inside(posixpath.dirname(name), member.linkname, name)
        elif member.islnk():
            self._links[name] = _inside("", member.linkname, name)
        elif member.isreg() and not member.issparse():
            self._copy(tar, member, name)
        else:
            raise FormatError(f"{shown(name)} is a device, a pipe or a sparse file")

    def _copy(self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        if member.size > MOST_BYTES or member.size < 0:
            raise FormatError(f"{shown(name)} unpacks to {human(member.size)}")
        self._source.allow(member.size + _HEADER)
        path = self._into / str(len(self._files))
        data = tar.extractfile(member)
        if data is None:
            raise FormatError(f"{shown(name)} has no data")
        left = member.size
        with disk_errors("writing", path), path.open("wb") as copy:
            while left:
                piece = data.read(min(CHUNK, left))
                if not piece:
                    raise FormatError(f"it ends within {shown(name)}")
                copy.write(piece)
                left -= len(piece)
        self._files[name] = path
        if member.mode & 0o111:
            self._programs.add(name)


def _name(stated: str) -> str:
    """The path of a member, without the `./` that tar writes before it."""
    return check_path(stated.removeprefix("./").rstrip("/"))


def _inside(folder: str, target: str, name: str) -> str:
    """What a link in a folder leads to, as a path of the archive."""
    path = posixpath.normpath(posixpath.join(folder, target))
    if not target or target.startswith("/") or path.startswith(("../", "/")) or path in ("..", "."):
        raise FormatError(f"{shown(name)} is a link that leads out of the archive")
    return path


def _followed(links: Mapping[str, str], files: Mapping[str, Path]) -> dict[str, str]:
    """Each link's file, through links that lead to links."""
    found = {}
    for name, target in links.items():
        for _ in range(_MOST_HOPS):
            if target not in links:
                break
            target = links[target]
        if target not in files:
            raise FormatError(f"{shown(name)} is a link to no file of the archive")
        found[name] = target
    return found


class _Counted:
    """Tells how many packed bytes were read."""

    def __init__(self, file: IO[bytes], advance: Callable[[int], None]) -> None:
        self._file = file
        self._advance = advance

    def read(self, size: int = -1) -> bytes:
        """As of a file."""
        data = self._file.read(size)
        self._advance(len(data))
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class _Bounded:
    """The unpacked bytes, as many as were allowed: a packed desert of zeros fills neither memory nor disk."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = 0
        self._total = 0

    def allow(self, size: int) -> None:
        """How much may be read from here on."""
        self._left = size

    def read(self, size: int) -> bytes:
        """Some more."""
        data = self._file.read(size)
        self._left -= len(data)
        self._total += len(data)
        if self._left < 0:
            raise FormatError("a header of it is larger than that of any release")
        if self._total > MOST_BYTES:
            raise FormatError(f"it unpacks to more than {human(MOST_BYTES)}")
        return data


@contextmanager
def _plain(archive: Path, packed: _Counted) -> Iterator[IO[bytes]]:
    magic = packed.read(4)
    packed.seek(0)
    stream = cast(IO[bytes], packed)
    if magic.startswith(_GZIP):
        with gzip.GzipFile(fileobj=stream) as plain:
            yield cast(IO[bytes], plain)
    elif magic == _ZSTD:
        with _zstd(archive).ZstdFile(stream) as plain:
            yield plain
    else:
        yield stream


def _zstd(archive: Path) -> Any:
    """The module that reads zstd."""
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        return import_module(name)
    except ImportError as cause:
        raise HostError(
            f"{archive.name}: is packed with zstd, and {name} is not installed here",
            hint="pip install 'airbundle[connected]'",
        ) from cause


@contextmanager
def _refusing(archive: Path) -> Iterator[None]:
    """Whatever is wrong with an archive, as one kind of error. The libraries raise many."""
    try:
        yield
    except FormatError as cause:
        raise SourceError(f"{archive.name}: {cause}", hint=_HINT) from cause
    except (BundlerError, MemoryError):
        raise
    except Exception as cause:
        if isinstance(cause, OSError) and cause.errno is not None:
            raise
        text = shown(str(cause) or type(cause).__name__)
        raise SourceError(f"{archive.name}: is no whole tar archive: {text}", hint=_HINT) from cause
