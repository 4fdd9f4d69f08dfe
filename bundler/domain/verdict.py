"""Concluded: findings about bytes, gates of measurements, checks of figures, and the verdict over them."""

from enum import Enum
from typing import Literal

from pydantic import Field

from bundler.domain.record import Record


class Damage(Record):
    """Something wrong with the bundle: where, what was promised, what was found."""

    where: str = Field(description="File beside the volumes, or `volume: path inside`.")
    what: str = Field(description="changed, missing, truncated, unexpected ...")
    expected: str = ""
    found: str = ""

    def line(self) -> str:
        """One line for people."""
        detail = f" (expected {self.expected}, found {self.found})" if self.expected else ""
        return f"{self.where}: {self.what}{detail}"


class Verdict(str, Enum):
    """The outcome of an acceptance run. Exit codes: PASS 0, FAIL 10, the other two 11.

    INCONCLUSIVE: the measurement is sound, and does not decide. NOT COMPARABLE: it is not sound, as a
    gate says, so its figures stand for nothing.
    """

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_COMPARABLE = "NOT COMPARABLE"


class Gate(Record):
    """Whether a measurement is what it claims to be, in one respect, before anything is judged by it."""

    service: str
    concurrency: int
    name: str = Field(description="Such as `client lag`; docs/acceptance.md lists them.")
    state: Literal["ok", "failed", "unknown"] = Field(
        description="`unknown`: nothing was there to tell by."
    )
    measured: str = Field(description="The figure that decided; empty when there is none.")
    limit: str = Field(description="What it must keep.")
    reason: str = Field("", description="In plain words, when it failed or is unknown.")


class Check(Record):
    """One judged statement about the service."""

    service: str
    concurrency: int = Field(description="Requests in flight; 0: of the service, at any load.")
    what: str = Field(description="What is judged, e.g. `SLO: TTFT <= 10000 ms for 95 %`.")
    verdict: Verdict
    measured: str = Field(description="The figure that decided.")
    reason: str = ""


def overall(checks: tuple[Check, ...]) -> Verdict:
    """FAIL beats NOT COMPARABLE beats INCONCLUSIVE beats PASS; nothing judged is INCONCLUSIVE.

    A check that failed in spite of a failed gate is one that no better measurement could excuse, so it
    stands. A doubtful level is told before an undecided one: more requests would not mend it.
    """
    verdicts = {check.verdict for check in checks}
    for verdict in (Verdict.FAIL, Verdict.NOT_COMPARABLE):
        if verdict in verdicts:
            return verdict
    return Verdict.PASS if verdicts == {Verdict.PASS} else Verdict.INCONCLUSIVE
