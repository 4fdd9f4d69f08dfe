"""What a second bundle changes against one that was approved: for the second approval."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bundler.domain.record import Record, Sha256

Area = Literal[
    "trust", "component", "file", "execution", "vulnerability", "policy", "setting", "record",
]  # fmt: skip
AREAS: tuple[Area, ...] = (
    "trust", "component", "file", "execution", "vulnerability", "policy", "setting", "record",
)  # fmt: skip
What = Literal["added", "removed", "changed"]


class RedlineChange(Record):
    """One thing that differs. `old` or `new` is empty where there is none."""

    area: Area
    what: What
    component: str = Field("", description="The component, or the part of the settings.")
    name: str = Field(
        "",
        description="Its field, file, finding, vulnerability or setting; empty: the whole of it.",
    )
    old: str = ""
    new: str = ""
    rank: str = Field(
        "",
        description="Of an execution its rank, of a vulnerability its severity, of a policy its judgement,"
        " as the newer bundle has it, else as the older one.",
    )


class Uncompared(Record):
    """An area that was not compared, or not on one footing. That is not the same as no change."""

    area: Area
    why: str


class RedlineSide(Record):
    """One of the two bundles, and from what it was read."""

    bundle_id: str
    manifest_sha256: Sha256
    sequence: int | None = None
    key_id: str | None = Field(
        None, description="The key that signed; None: unsigned or not known."
    )
    source: Literal["bundle", "manifest", "inventory"]
    verified: bool = Field(description="Whether a signature was checked, by a key that was given.")


class Redline(Record):
    """Everything that differs between two bundles. Dates, volumes and parity are no difference."""

    old: RedlineSide
    new: RedlineSide
    changes: tuple[RedlineChange, ...]
    uncompared: tuple[Uncompared, ...] = ()

    def of(self, area: Area) -> tuple[RedlineChange, ...]:
        """The changes of one area, in order."""
        return tuple(one for one in self.changes if one.area == area)
