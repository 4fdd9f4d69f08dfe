"""Concluded: findings about bytes, checks of figures, and the verdict over them."""

from enum import Enum

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
    """The outcome of an acceptance run. Exit codes: PASS 0, FAIL 10, INCONCLUSIVE 11."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


class Check(Record):
    """One judged statement about the service."""

    service: str
    concurrency: int = Field(description="Requests in flight; 0: of the service, at any load.")
    what: str = Field(description="What is judged, e.g. `SLO: TTFT <= 10000 ms for 95 %`.")
    verdict: Verdict
    measured: str = Field(description="The figure that decided.")
    reason: str = ""


def overall(checks: tuple[Check, ...]) -> Verdict:
    """FAIL beats INCONCLUSIVE beats PASS; nothing judged is INCONCLUSIVE."""
    verdicts = {check.verdict for check in checks}
    if Verdict.FAIL in verdicts:
        return Verdict.FAIL
    if Verdict.INCONCLUSIVE in verdicts or not verdicts:
        return Verdict.INCONCLUSIVE
    return Verdict.PASS
