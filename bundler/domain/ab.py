"""Compared: the same service measured with two settings, restarted for each run, and what is worth keeping."""

from typing import Literal

from pydantic import Field

from bundler.domain.record import Record
from bundler.domain.running import Running
from bundler.domain.verdict import Verdict

ArmName = Literal["A", "B"]
# Runs of each arm, unless asked otherwise: with four a gap of 1.3 is found where starts differ by up to 7 %.
PAIRS = 4


class Arm(Record):
    """One of the two ways to run it."""

    name: ArmName
    changes: dict[str, str] = Field(
        description="Setting -> value, where it differs from the other; `release`: an installed one."
    )
    release: str = Field("", description="Id of the release that was started.")
    manifest_sha256: str = Field("", description="Of the bundle whose files it uses.")

    @property
    def words(self) -> str:
        """For people."""
        return ", ".join(f"{name}={value}" for name, value in self.changes.items())


class ArmRun(Record):
    """One start of the engine in one arm, and what was measured then."""

    arm: ArmName
    pair: int = Field(ge=1, description="Runs of one pair follow each other.")
    figures: dict[str, float] = Field(description="`service@users metric` -> figure.")
    running: dict[str, Running] = Field({}, description="Service -> which kernels it said it runs.")
    verdict: Verdict | None = Field(None, description="Of its acceptance checks.")
    wrong: str = Field("", description="What its answers got wrong; empty when nothing.")
    void: str = Field("", description="Why it proves nothing; empty when it does.")


class Comparison(Record):
    """B against A in one figure. Ratios are B / A, geometric means over the pairs."""

    figure: str
    better: Literal["higher", "lower"]
    ratio: float
    low: float = Field(description="95 % interval of the ratio by Student's t on its logarithm.")
    high: float
    bootstrap_low: float = Field(description="95 % interval by resampling the pairs.")
    bootstrap_high: float
    pairs: tuple[float, ...] = Field(description="Ratio of each pair.")
    wins: ArmName | None = Field(description="The arm that is better beyond the margin, if any.")
    said: str


class ABRecord(Record):
    """A comparison of two settings on one machine."""

    bundle_id: str
    manifest_sha256: str
    release: str = Field("", description="Id of the release in use; its plan was used.")
    service: str | None = Field(None, description="The one service that was changed; None: each.")
    pairs: int = Field(0, description="Runs of each arm that were wanted; 0: an older record.")
    arms: tuple[Arm, Arm]
    began: str
    ended: str
    margin: float
    primary: str = Field(description="The figure that decides.")
    runs: tuple[ArmRun, ...]
    comparisons: tuple[Comparison, ...]
    keep: ArmName | None = Field(description="The better arm; None without a difference.")
    decided: bool = Field(description="False when runs were void: then nothing is concluded.")
    said: str
