"""What the connected side found out before the trip, and what to do about it."""

from collections.abc import Iterable
from enum import Enum

from pydantic import Field

from bundler.domain.record import Record


class Level(str, Enum):
    """How much a finding weighs."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Kind(Record):
    """One sort of finding, as `airbundle plan --explain CODE` and docs/findings.md describe it."""

    code: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="Stable name.")
    level: Level = Field(description="Its usual level; a finding may state another.")
    title: str = Field(description="One line.")
    meaning: str = Field(description="Why it matters, and how it shows on the target.")
    remedy: str = Field(description="What to do.")


class Finding(Record):
    """One thing found. `what` names the thing and the place, `fix` what to do about it."""

    code: str
    level: Level
    subject: str = Field(description="Service, model, package or spec key that it is about.")
    what: str
    fix: str = ""
    applied: str = Field("", description="The setting that airbundle added by itself, if it did.")

    def line(self) -> str:
        """One line for people."""
        return f"{self.subject}: {self.what}" if self.subject else self.what


_ORDER = {Level.ERROR: 0, Level.WARNING: 1, Level.NOTE: 2}


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors first, then warnings, then notes; twins once; otherwise as they came."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda item: _ORDER[item.level]))


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those because of which it cannot work."""
    return tuple(item for item in findings if item.level is Level.ERROR)
