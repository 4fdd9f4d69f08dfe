"""What is in a wheel: who made it, its licence, what it needs, and what in it can run."""

from __future__ import annotations

import email.parser
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from typing import IO

from bundler.domain.inventory import Executable, LicenceFacts, LicenceText, Rank
from bundler.format.digests import sha256_hex
from bundler.format.untrusted import shown
from bundler.format.weightsafety import is_pickle
from bundler.format.wheelzip import DAMAGE, open_wheel
from bundler.review.licences import wheel_licence
from bundler.review.licencetexts import MAX_TEXT
from bundler.review.pickles import MAX_PICKLE, PickleFacts, read_pickles

_MAX_METADATA = 4 * 2**20
_MAX_MEMBERS = 500_000
_MAX_LICENCES = 40
_MAX_SMALL = 2**20
_HEAD = 1024
_LICENCE_FILE = re.compile(
    r"^(licen[cs]e|copying|notice|eula)s?([._-][^/]*)?$|^[^/]*licen[cs]e(\.(txt|md|rst))?$",
    re.IGNORECASE,
)
_STARTS_ALONE = re.compile(r"^import[ \t]")
_EVIL_WORDS = re.compile(
    r"\b(exec|eval|compile|base64|b64decode|marshal|zlib|subprocess|popen|system|socket|"
    r"urllib|requests|http|ctypes)\b"
)
_PICKLE_NAMES = (".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".joblib", ".dill")
# Groups of entry points that a carried engine calls by itself when it starts
# (https://docs.vllm.ai/en/latest/design/plugin_system.html).
_SELF_STARTING = ("vllm.general_plugins", "vllm.platform_plugins", "vllm.io_processor_plugins",
                  "vllm.stat_logger_plugins", "torch.backends")  # fmt: skip
_MACHINE = {
    b"\x7fELF": "ELF",
    b"\xcf\xfa\xed\xfe": "Mach-O",
    b"\xca\xfe\xba\xbe": "Mach-O",
}


@dataclass(frozen=True)
class WheelFacts:
    """What a wheel says, and what was seen in it."""

    name: str = ""
    version: str = ""
    summary: str = ""
    supplier: str = ""
    home: str = ""
    requires: tuple[str, ...] = ()
    licence: LicenceFacts = field(default_factory=LicenceFacts)
    executes: tuple[Executable, ...] = ()


@dataclass
class _Seen:
    native: dict[str, list[str]] = field(default_factory=dict)
    found: list[Executable] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)


def read_wheel(file: IO[bytes]) -> WheelFacts:
    """Look into a wheel: its directory, the beginning of every member, and small members whole.

    What cannot be read becomes a finding of its own; nothing is passed over in silence.

    Raises:
        BundlerError: whatever the file's own reading raises.
    """
    try:
        with open_wheel(file) as archive:
            return _read(archive)
    except DAMAGE as cause:
        return WheelFacts(executes=(_unreadable("", f"is no sound wheel: {shown(str(cause))}"),))


def _read(archive: zipfile.ZipFile) -> WheelFacts:
    members = sorted(archive.infolist(), key=lambda info: info.header_offset)
    if len(members) > _MAX_MEMBERS:
        return WheelFacts(executes=(_unreadable("", f"has {len(members)} members"),))
    seen = _Seen()
    for info in members:
        if not info.is_dir():
            try:
                _look(archive, info, seen)
            except DAMAGE as cause:
                name = shown(info.filename)
                seen.found.append(_unreadable(name, f"cannot be read: {shown(str(cause))}"))
    metadata = _metadata(archive, members)
    if "Name" not in metadata:
        seen.found.append(_unreadable("", "has no METADATA that names it"))
    return WheelFacts(
        name=_line(metadata, "Name"),
        version=_line(metadata, "Version"),
        summary=_line(metadata, "Summary"),
        supplier=_supplier(metadata),
        home=_home(metadata),
        requires=tuple(
            shown(str(text), 500) for text in (metadata.get_all("Requires-Dist") or [])[:1000]
        ),
        licence=wheel_licence(metadata, tuple(_licence_texts(archive, members))),
        executes=(*seen.found, *_summed(seen), *_entry_points(archive, members)),
    )


def licence_in(archive: zipfile.ZipFile) -> LicenceFacts:
    """The licence alone: METADATA and the licence files are read, nothing else.

    Raises:
        What `DAMAGE` lists: the archive is damaged.
    """
    members = archive.infolist()
    return wheel_licence(_metadata(archive, members), tuple(_licence_texts(archive, members)))


def _look(archive: zipfile.ZipFile, info: zipfile.ZipInfo, seen: _Seen) -> None:
    name = info.filename
    base = name.rsplit("/", 1)[-1]
    with archive.open(info) as member:
        head = member.read(_HEAD)
    machine = _machine(head)
    if machine:
        seen.native.setdefault(machine, []).append(name)
    elif _is_path_file(name):
        seen.found += _path_file(archive, info)
    elif base in ("sitecustomize.py", "usercustomize.py") and _at_root(name):
        seen.found.append(
            Executable(rank="attention", kind="path-file", where=shown(name),
                       what="runs at every start of this Python")
        )  # fmt: skip
    elif is_pickle(head) or name.lower().endswith(_PICKLE_NAMES):
        seen.found += _pickle(archive, info, sure=name.lower().endswith(_PICKLE_NAMES))
    if ".data/scripts/" in name:
        seen.scripts.append(name)


def _machine(head: bytes) -> str:
    if head[:2] == b"MZ" and len(head) > 64:
        return "Windows"
    return _MACHINE.get(head[:4], "")


def _pickle(archive: zipfile.ZipFile, info: zipfile.ZipInfo, *, sure: bool) -> Iterator[Executable]:
    if info.file_size > MAX_PICKLE:
        yield _unreadable(
            shown(info.filename), f"a pickle of {info.file_size} bytes, too long to be looked into"
        )
        return
    with archive.open(info) as member:
        found = read_pickles(member, info.file_size)
    # Of bytes that only begin like one, what ends as none is none.
    if sure or not found.fault or found.dangerous:
        yield pickle_finding(shown(info.filename), found)


def pickle_finding(where: str, found: PickleFacts, digest: str | None = None) -> Executable:
    """One line for a pickle."""
    rank: Rank = "usual"
    if found.dangerous:
        rank, what = "alarm", f"calls {_few(found.dangerous)} when it is loaded"
    elif found.others:
        rank, what = "attention", f"fetches {_few(found.others)} when it is loaded"
    else:
        what = "a pickle of numbers and tensors alone"
    if found.fault:
        rank = "alarm" if rank == "alarm" else "attention"
        what += f"; it {found.fault}"
    return Executable(rank=rank, kind="pickle", where=where, what=what, digest=digest)


def _few(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more


def _at_root(name: str) -> bool:
    """Whether a member lands in site-packages itself, where Python looks at each start."""
    inside = re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", name)
    return "/" not in inside


def _is_path_file(name: str) -> bool:
    return name.lower().endswith(".pth") and _at_root(name)


def _path_file(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[Executable]:
    with archive.open(info) as member:
        data = member.read(_MAX_SMALL + 1)
    where = shown(info.filename)
    if len(data) > _MAX_SMALL:
        yield _unreadable(where, f"a .pth file of {info.file_size} bytes")
        return
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    for line in lines:
        if _STARTS_ALONE.match(line):
            evil = _EVIL_WORDS.search(line)
            rank: Rank = "alarm" if evil else "attention"
            yield Executable(
                rank=rank, kind="path-file", where=where, digest=sha256_hex(data),
                what=f"runs at every start of this Python: {shown(line, 160)}",
            )  # fmt: skip


def _summed(seen: _Seen) -> Iterator[Executable]:
    for machine, names in seen.native.items():
        what = {
            "ELF": "machine code for Linux, loaded by the package or run as a program",
            "Windows": "machine code for Windows; does not run on the target",
            "Mach-O": "machine code for macOS or Java; does not run on the target",
        }[machine]
        yield Executable(
            rank="usual", kind="native", where=shown(names[0]), what=what, count=len(names)
        )
    if seen.scripts:
        yield Executable(
            rank="usual", kind="script", where=shown(seen.scripts[0]), count=len(seen.scripts),
            what="a program that is put on the environment's PATH",
        )  # fmt: skip


def _entry_points(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> Iterator[Executable]:
    info = next((m for m in members if _in_dist_info(m, "entry_points.txt")), None)
    if info is None:
        return
    try:
        with archive.open(info) as member:
            text = member.read(_MAX_SMALL).decode("utf-8", "replace")
    except DAMAGE as cause:
        yield _unreadable(shown(info.filename), f"cannot be read: {shown(str(cause))}")
        return
    group = ""
    programs, alone = [], []
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            group = line.strip("[]")
        elif "=" in line and not line.startswith(("#", ";")):
            name, _, target = (part.strip() for part in line.partition("="))
            if group in ("console_scripts", "gui_scripts"):
                programs.append(name)
            elif group in _SELF_STARTING:
                alone.append(f"{name} = {target} ({group})")
    where = shown(info.filename)
    if alone:
        yield Executable(
            rank="attention", kind="entry-point", where=where, count=len(alone),
            what=f"loaded by the engine by itself: {shown(', '.join(alone), 300)}",
        )  # fmt: skip
    if programs:
        yield Executable(
            rank="usual", kind="entry-point", where=where, count=len(programs),
            what=f"programs: {shown(', '.join(programs), 300)}",
        )  # fmt: skip


def _in_dist_info(info: zipfile.ZipInfo, name: str) -> bool:
    return info.filename.count("/") == 1 and info.filename.endswith(f".dist-info/{name}")


def _metadata(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> Message:
    info = next((m for m in members if _in_dist_info(m, "METADATA")), None)
    if info is None:
        return Message()
    with archive.open(info) as member:
        text = member.read(_MAX_METADATA).decode("utf-8", "replace")
    return parse_metadata(text)


def parse_metadata(text: str) -> Message:
    """The headers of METADATA."""
    return email.parser.HeaderParser().parsestr(text)


def is_licence_file(name: str) -> bool:
    """Whether a file of a wheel's dist-info or of a model is a licence by its name."""
    return _LICENCE_FILE.match(name.rsplit("/", 1)[-1]) is not None


def _licence_texts(
    archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]
) -> Iterator[LicenceText]:
    # PEP 639 puts them below dist-info/licenses; older wheels straight into dist-info.
    inside = [
        m
        for m in members
        if ".dist-info/" in m.filename
        and not m.is_dir()
        and ("/licenses/" in m.filename or is_licence_file(m.filename))
    ]
    if not inside:
        # Some (NVIDIA's, for one) put it into the package itself.
        inside = [
            m for m in members if m.filename.count("/") <= 2 and is_licence_file(m.filename)
            and m.filename.lower().endswith((".txt", ".md", "license", "copying"))
        ]  # fmt: skip
    for info in sorted(inside, key=lambda m: (m.filename.count("/"), m.filename))[:_MAX_LICENCES]:
        try:
            with archive.open(info) as member:
                text = member.read(MAX_TEXT).decode("utf-8", "replace")
        except DAMAGE:
            continue
        yield LicenceText(path=shown(info.filename, 300), text=text)


def _line(metadata: Message, key: str) -> str:
    return shown(" ".join(str(metadata.get(key) or "").split()), 200)


def _supplier(metadata: Message) -> str:
    for key in ("Author", "Maintainer", "Author-email", "Maintainer-email"):
        found = _line(metadata, key)
        if found:
            return found
    return ""


def _home(metadata: Message) -> str:
    found = _line(metadata, "Home-page")
    for url in map(str, metadata.get_all("Project-URL") or []):
        label, _, target = url.partition(",")
        if not found and label.strip().lower() in ("homepage", "source", "repository", "home"):
            found = shown(target.strip(), 200)
    return found if found.startswith(("https://", "http://")) else ""


def _unreadable(where: str, what: str) -> Executable:
    return Executable(rank="attention", kind="unreadable", where=where, what=what)
