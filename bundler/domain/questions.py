"""Concluded: what the owner of a service asks its vendor, and what the records of a root say to it."""

from typing import Literal

from pydantic import Field

from bundler.domain.record import Record, Sha256

State = Literal["answered", "partly", "open"]


class Told(Record):
    """One sentence in both languages."""

    ko: str
    en: str


class Source(Record):
    """The record that a statement rests on."""

    record: str = Field(description="Path below the root; `audit.jsonl:5` is a line of it.")
    at: str = Field(description="UTC time, by the clock of that host.")
    sha256: Sha256 = Field(description="Of the file, or of the line with its line end.")


class Statement(Record):
    """Something that a record shows."""

    said: Told
    source: Source


class Lacking(Record):
    """A run that nobody has made here, and the command that makes it."""

    why: Told
    command: str


class Answer(Record):
    """One question. `partly`: there is evidence, and something is missing or undecided."""

    key: Literal["users", "software", "compatibility", "moe", "updates"]
    question: Told
    statements: tuple[Statement, ...]
    lacking: tuple[Lacking, ...]

    @property
    def state(self) -> State:
        """Whether it is answered."""
        if not self.statements:
            return "open"
        return "partly" if self.lacking else "answered"


class Answers(Record):
    """All five, about the release in use."""

    bundle_id: str
    manifest_sha256: Sha256
    signed: bool
    host: str = Field(description="GPUs or processor of the newest run; empty without one.")
    made: str = Field(description="UTC time.")
    answers: tuple[Answer, ...]
    unread: tuple[Told, ...] = Field((), description="Records that could not be used, and why.")
