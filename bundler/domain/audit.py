"""Recorded: who did what to an installation root, and when. One line of the audit log."""

from typing import Literal

from pydantic import Field

from bundler.domain.record import Record, Sha256

FIRST = "0" * 64
Outcome = Literal["begun", "done", "failed", "interrupted"]


class AuditEntry(Record):
    """A line of `audit.jsonl`; each names the SHA-256 of the line before, its newline included."""

    number: int = Field(ge=1, description="Of the line, from 1.")
    at: str = Field(max_length=40, description="UTC time by this host's clock.")
    who: str = Field(
        max_length=200,
        description="User that ran the command, and who logged in where that is another.",
    )
    what: str = Field(max_length=40, description="The command.")
    outcome: Outcome
    of: int | None = Field(None, description="Number of the line that says that it began.")
    bundle_id: str | None = Field(None, max_length=200)
    manifest_sha256: Sha256 | None = None
    detail: str = Field("", max_length=1000, description="What came out, or why it failed.")
    tool: str = Field(max_length=40, description="Version of airbundle.")
    previous: Sha256 = Field(description=f"{FIRST[:4]}... in the first line.")


class AuditHead(Record):
    """Where the log ends, kept apart from it, so that lines cut off its end are missed."""

    lines: int = Field(ge=0)
    sha256: Sha256 = Field(description="Of the last line.")
