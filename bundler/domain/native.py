"""What the shared objects of one wheel need and bring, as their own ELF tables state it."""

from pydantic import Field

from bundler.domain.record import Record

NATIVE_VERSION = 3


class SymbolVersion(Record):
    """The newest version of a library's symbols that any object of the wheel needs."""

    version: str = Field(description="`2.34` of GLIBC_2.34.")
    object: str = Field(description="The member of the wheel that needs it.")


class WheelNeeds(Record):
    """One wheel."""

    objects: int = Field(0, description="Those that a loader loads; no code for GPUs.")
    newest: dict[str, SymbolVersion] = Field(
        {}, description="GLIBC, GLIBCXX, CXXABI -> the newest version needed."
    )
    needed: dict[str, str] = Field({}, description="DT_NEEDED library -> an object that needs it.")
    provided: tuple[str, ...] = Field((), description="File names and DT_SONAMEs of its objects.")
    foreign: dict[str, str] = Field(
        {},
        description="Object for another processor -> which. Wheels that bring their own as well may"
        " carry such, for instance stubs to link against.",
    )
    unreadable: dict[str, str] = Field({}, description="Object -> why it could not be read.")
