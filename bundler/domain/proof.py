"""The answer of `airbundle plan`: can it work there, and why (not)."""

from enum import Enum

from pydantic import Field

from bundler.domain.findings import Finding, Level
from bundler.domain.fit import Fit
from bundler.domain.model_facts import ModelFacts
from bundler.domain.needs import HostNeeds
from bundler.domain.record import Record
from bundler.domain.spec import Service


class Answer(str, Enum):
    """Whether the bundle can work on its target, as far as that can be known before the trip."""

    YES = "can work"
    WITH_WARNINGS = "can work, with warnings"
    NO = "cannot work"


class Proof(Record):
    """What was proved before the trip."""

    findings: tuple[Finding, ...]
    fits: tuple[Fit, ...] = ()
    needs: HostNeeds = HostNeeds()
    models: tuple[ModelFacts, ...] = ()
    services: tuple[Service, ...] = Field(
        description="With the settings that were added because they are safe and needed."
    )

    @property
    def answer(self) -> Answer:
        """NO for any error, WITH_WARNINGS for any warning."""
        levels = {item.level for item in self.findings}
        if Level.ERROR in levels:
            return Answer.NO
        return Answer.WITH_WARNINGS if Level.WARNING in levels else Answer.YES
