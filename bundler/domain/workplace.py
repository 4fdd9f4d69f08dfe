"""Observed: what `airbundle doctor` sees of the place where it runs, beside what `domain/host.py` holds.

None, or an empty text, is what could not be found out: then nothing is said to be right.
"""

from typing import Literal

from pydantic import Field

from bundler.domain.record import Record

Role = Literal["connected", "closed"]


class Package(Record):
    """A library that an extra asks for; the empty extra is the base install."""

    extra: str
    name: str
    version: str = Field("", description="Empty: not installed.")


class Folder(Record):
    """A folder that is written to, or will be."""

    path: str
    exists: bool
    writable: bool | None = Field(None, description="It, or its nearest parent that exists.")
    case_sensitive: bool | None = None
    open_to_others: bool = Field(False, description="Anybody may write into it.")


class KeyFile(Record):
    """A private key's file."""

    path: str
    mode: int = Field(description="Permission bits.")


class Program(Record):
    """What a program of this host says of itself."""

    name: str
    version: str = ""
    fault: str = Field("", description="Why it gave no answer.")


class Workplace(Record):
    """This process's surroundings."""

    airbundle: str
    python: str
    executable: str
    packages: tuple[Package, ...] = ()
    programs: tuple[Program, ...] = ()
    folders: tuple[Folder, ...] = ()
    keys: tuple[KeyFile, ...] = ()
    encoding: str = Field("", description="Of standard output.")
    locale: str = ""
    terminal: bool = False
    code_from: str = Field("", description="Newest time of airbundle's own files, UTC.")


class Answer(Record):
    """What a server said when it was asked."""

    what: str
    url: str = Field(description="Without credentials.")
    status: int | None = None
    fault: str = ""
    seconds: float = 0.0
    date: str = Field("", description="Its clock, UTC ISO-8601; empty: it does not say.")


class StoreHealth(Record):
    """The download cache."""

    path: str
    files: int = 0
    bytes: int = 0
    partial_files: int = 0
    partial_bytes: int = 0
    doubtful: tuple[str, ...] = Field((), description="Objects whose size is not what was noted.")
    fault: str = ""
