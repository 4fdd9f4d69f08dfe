"""What a site's antivirus said of a bundle's files: by which engine and patterns, and of which files nothing."""

from __future__ import annotations

from pydantic import Field

from bundler.domain.record import Record, Sha256


class AntivirusHit(Record):
    """A file in which something was found."""

    path: str = Field(description="As the log has it.")
    name: str = Field(description="What was found, in the engine's words.")
    in_bundle: bool = Field(description="Whether a file of the bundle has this name.")


class Uncovered(Record):
    """A file of the bundle of which the log does not say that it was scanned."""

    path: str
    why: str


class AntivirusResult(Record):
    """An imported log. A log names files and no digests: who scanned vouches for what lay there."""

    log: str = Field(description="Name of the log's file.")
    log_sha256: Sha256
    engine: str
    engine_version: str = ""
    pattern_version: str = ""
    pattern_date: str = ""
    known_viruses: int | None = None
    scanned_files: int | None = None
    started: str = ""
    ended: str = ""
    hits: tuple[AntivirusHit, ...] = ()
    covered: int = Field(ge=0, description="Files of the bundle that were scanned.")
    uncovered: tuple[Uncovered, ...] = ()
    doubts: tuple[str, ...] = Field((), description="Why the log may not tell all; English.")

    @property
    def complete(self) -> bool:
        """Whether every file of the bundle was scanned, and nothing speaks against it."""
        return self.covered > 0 and not self.uncovered and not self.doubts
