"""Ollama's release archive as a wheel, so that the whole road of wheels serves it: hashes, checks, install.

A wheel's `data` folder becomes part of the environment (PEP 427): `bin/ollama` and `lib/ollama/` lie there beside
each other, as Ollama looks for its libraries (`lib/ollama` beside the folder of the program).

A wheel holds no links. A shared object is stored once, under its SONAME where one of its names in a folder is that:
it is the name that the loader asks for, and the longer ones (`libcublasLt.so.12.8.4.1`, hundreds of megabytes) are
for people. Any other link becomes a copy. `LINKS` in the wheel says what became of each name.

Same archive, same bytes: stored, sorted, without dates. The tag is the glibc that the objects ask for.
"""

from __future__ import annotations

import base64
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from packaging.version import InvalidVersion, Version

from bundler.build.elfobject import LoadedObject, read_object
from bundler.build.unpacking import Unpacked
from bundler.errors import IntegrityError, SourceError, SpecError, disk_errors
from bundler.format.digests import read_chunks
from bundler.format.untrusted import shown

# Change it with whatever changes the wheel's bytes: what was made before is not taken for the same then.
MAKING = 1
DISTRIBUTION = "ollama-runtime"
PROGRAM = "bin/ollama"
_LIBRARIES = "lib/ollama/"
_TEXTS = re.compile(r"(?:LICEN[CS]E|NOTICE|README)[\w.-]{0,40}", re.IGNORECASE)
_EPOCH = (1980, 1, 1, 0, 0, 0)
_GLIBC = re.compile(r"GLIBC_2\.([0-9]{1,2})(?:\.[0-9]{1,3})?")
# manylinux begins with glibc 2.17 for both processors (PEP 599).
_OLDEST_GLIBC = 17
_MAX_ENTRIES = 500_000


@dataclass(frozen=True)
class Source:
    """Of what a wheel is made, for its metadata. The version is `canonical`."""

    version: str
    arch: str
    sha256: str


def canonical(version: str) -> str:
    """A release's version as wheels write it: `0.33.0-rc2` is `0.33.0rc2`.

    Raises:
        SpecError: it is none.
    """
    try:
        return str(Version(version))
    except InvalidVersion as cause:
        raise SpecError(
            f"engine.version: {version!r} is no version", hint="Write it like `0.33.0`."
        ) from cause


def write_archive_wheel(
    unpacked: Unpacked, source: Source, folder: Path, advance: Callable[[int], None]
) -> Path:
    """Write the wheel into `folder` and give its path.

    Raises:
        SourceError: the archive is not Ollama's, or for another processor.
        SpaceError, FileAccessError: of the disk.
    """
    version = source.version
    module = DISTRIBUTION.replace("-", "_")
    info, data = f"{module}-{version}.dist-info", f"{module}-{version}.data/data"
    carried = list(_checked([*unpacked.files, *unpacked.links]))
    objects = _objects(unpacked.files, source.arch)
    if objects.get(PROGRAM) and objects[PROGRAM].machine != source.arch:
        raise SourceError(
            f"engine.archive: is for {objects[PROGRAM].machine}, the target is {source.arch}",
            hint="Take the archive for the target's processor.",
        )
    places, notes = _places(carried, unpacked, objects)
    members = {f"{data}/{name}": unpacked.files[place] for name, place in places.items()}
    members |= {f"{info}/licenses/{name}": unpacked.files[unpacked.links.get(name, name)]
                for name in carried if "/" not in name}  # fmt: skip
    programs = {f"{data}/{name}" for name, place in places.items() if place in unpacked.programs}
    tag = f"py3-none-manylinux_2_{_glibc(objects)}_{source.arch}"
    texts = {
        f"{info}/METADATA": _metadata(version, source, members),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: airbundle\nRoot-Is-Purelib: false\nTag: {tag}\n",
        f"{info}/LINKS": "".join(notes),
    }
    path = folder / f"{module}-{version}-{tag}.whl"
    with disk_errors("writing", path):
        _write(path, members, programs, texts, f"{info}/RECORD", advance)
    return path


def _checked(names: Sequence[str]) -> Iterator[str]:
    """The names, when they are those of a release: nothing else may get into an environment's `bin`."""
    if PROGRAM not in names:
        raise SourceError(
            f"engine.archive: holds no {PROGRAM}",
            hint="Take ollama-linux-amd64.tar.zst (or .tgz) of the release; its ROCm and Jetson archives are"
            " additions to it.",
        )
    for name in sorted(names):
        if name == PROGRAM or name.startswith(_LIBRARIES) or _TEXTS.fullmatch(name):
            yield name
        else:
            raise SourceError(
                f"engine.archive: holds {shown(name)}; a release has {PROGRAM} and {_LIBRARIES} alone",
                hint="Take the archive as Ollama publishes it.",
            )


def _objects(files: Mapping[str, Path], arch: str) -> dict[str, LoadedObject]:
    """The shared objects and programs; one that cannot be read is left to the judgement of the whole wheel."""
    found, spent = {}, 0

    def spend() -> None:
        nonlocal spent
        spent += 1
        if spent > _MAX_ENTRIES:
            raise ValueError("too many entries in its tables")

    for name, path in files.items():
        with disk_errors("reading", path), path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
            file.seek(0)
            try:
                read = read_object(file, arch, spend)
            except IntegrityError:
                continue
        if read is not None:
            found[name] = read
    return found


def _places(
    carried: Sequence[str], unpacked: Unpacked, objects: Mapping[str, LoadedObject]
) -> tuple[dict[str, str], list[str]]:
    """Name in the environment -> file of the archive, and what became of names that are links."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in carried:
        if "/" in name:
            file = unpacked.links.get(name, name)
            groups.setdefault((file, name.rpartition("/")[0]), []).append(name)
    places: dict[str, str] = {}
    notes: list[str] = []
    for (file, folder), names in sorted(groups.items()):
        soname = objects[file].soname if file in objects else ""
        asked = f"{folder}/{soname}"
        kept = [asked] if soname and len(names) > 1 and asked in names else names
        places |= dict.fromkeys(kept, file)
        for name in names:
            if name not in kept:
                notes.append(f"{name}: is {asked}, as the loader asks for it\n")
            elif name != file:
                notes.append(f"{name}: holds the bytes of {file}\n")
    return places, sorted(notes)


def _glibc(objects: Mapping[str, LoadedObject]) -> int:
    asked = [
        int(match[1])
        for item in objects.values()
        for text, _ in item.versions
        if (match := _GLIBC.fullmatch(text))
    ]
    return max([_OLDEST_GLIBC, *asked])


def _metadata(version: str, source: Source, members: Mapping[str, Path]) -> str:
    cuda = any("/cuda_v" in name for name in members)
    licence = "MIT; NVIDIA's EULA for the CUDA libraries in it" if cuda else "MIT"
    return (
        f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {version}\n"
        "Summary: Ollama's Linux release as it is published, made into a wheel by airbundle\n"
        f"License: {licence}\n\n"
        f"Made from an archive with SHA-256 {source.sha256}.\n"
    )


def _write(
    path: Path,
    members: Mapping[str, Path],
    programs: set[str],
    texts: Mapping[str, str],
    record: str,
    advance: Callable[[int], None],
) -> None:
    """Stored: what deflate makes of the same bytes differs from one zlib to the next."""
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as wheel:
        for name in sorted({*members, *texts}):
            entry = _entry(name, 0o755 if name in programs else 0o644)
            if name in texts:
                chunks: Iterator[bytes] = iter([texts[name].encode()])
                entry.file_size = len(texts[name].encode())
            else:
                chunks = read_chunks(members[name])
                entry.file_size = members[name].stat().st_size
            digest = hashes.Hash(hashes.SHA256())
            with wheel.open(entry, "w") as target:
                for chunk in chunks:
                    digest.update(chunk)
                    target.write(chunk)
                    advance(len(chunk))
            stated = base64.urlsafe_b64encode(digest.finalize()).rstrip(b"=").decode()
            lines.append(f"{_quoted(name)},sha256={stated},{entry.file_size}\n")
        with wheel.open(_entry(record, 0o644), "w") as target:
            target.write("".join([*lines, f"{record},,\n"]).encode())


def _quoted(name: str) -> str:
    """A field of RECORD, which is CSV; paths with quotation marks are in no archive that is taken."""
    return f'"{name}"' if "," in name else name


def _entry(name: str, mode: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.create_system = 3
    entry.external_attr = (0o100000 | mode) << 16
    return entry
