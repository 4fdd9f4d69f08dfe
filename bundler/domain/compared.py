"""Concluded: two acceptance runs side by side, what differs between their set-ups first."""

from typing import Literal

from pydantic import Field

from bundler.domain.record import Record
from bundler.domain.verdict import Verdict


class RunHead(Record):
    """Which run a side is."""

    label: str = Field(description="Where it was read from.")
    name: str
    bundle_id: str
    key_id: str | None
    engine: str
    began: str
    ended: str
    verdict: Verdict


class SetupRow(Record):
    """One thing that figures depend on, as text. None: nobody said."""

    what: str = Field(description="`service: field`, `host: driver`, `plan: requests` ...")
    a: str | None
    b: str | None
    decides: bool = Field(
        description="Whether runs that differ in it are of two set-ups (the fingerprint's fields)."
    )


class FigureRow(Record):
    """One figure of both runs. Times in ms, rates in tokens a second."""

    concurrency: int
    metric: str
    a: float
    b: float
    worst: float | None = Field(description="B worse than this is beyond A's noise.")
    best: float | None = Field(description="B better than this is beyond A's noise.")
    outcome: Literal["within", "worse", "better", "not judged"]
    basis: str = Field(description="How A's range was made, or why it is not judged.")

    @property
    def ratio(self) -> float:
        """B over A."""
        return self.b / self.a


class LevelRow(Record):
    """A level's verdicts; None where a run did not measure it."""

    concurrency: int
    a: Verdict | None
    b: Verdict | None


class ServicePair(Record):
    """A service of A beside one of B."""

    a: str
    b: str
    differs: tuple[str, ...] = Field(description="Set-up fields that differ, with both values.")
    levels: tuple[LevelRow, ...]
    figures: tuple[FigureRow, ...]


class RunsCompared(Record):
    """B judged by A, as `baseline compare` does it."""

    a: RunHead
    b: RunHead
    setup: tuple[SetupRow, ...] = Field(description="What differs between the set-ups.")
    services: tuple[ServicePair, ...]
    not_comparable: tuple[str, ...] = Field(
        description="Why figures cannot be judged by each other: set-ups that differ, gates that failed."
    )

    @property
    def outcome(self) -> Literal["within", "worse", "better", "not comparable"]:
        """Over all figures that are judged: anything worse counts before anything better."""
        outcomes = {row.outcome for pair in self.services for row in pair.figures}
        if not outcomes - {"not judged"}:
            return "not comparable"
        return "worse" if "worse" in outcomes else "better" if "better" in outcomes else "within"
