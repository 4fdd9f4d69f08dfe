"""Observed and concluded: whether a service's answers are right, when idle and under load."""

from enum import Enum
from typing import Literal

from pydantic import Field

from bundler.domain.record import Record, Sha256

GOLDEN_VERSION = 1
Probe = Literal["golden", "nll", "garbage", "needle", "tools", "json", "korean"]
Phase = Literal["idle", "load"]


class Alternative(Record):
    """A token that the model thought likely."""

    token: str = Field(max_length=1000)
    logprob: float = Field(le=1e-3)


class Step(Record):
    """One generated token, and the likeliest ones at its place."""

    token: str = Field(max_length=1000)
    logprob: float = Field(le=1e-3)
    top: tuple[Alternative, ...] = Field((), max_length=100)


class Greedy(Record):
    """A greedy answer to one fixed prompt."""

    prompt: str = Field(max_length=100, description="Name of the prompt.")
    steps: tuple[Step, ...] = Field(max_length=1000)


class Nll(Record):
    """Mean negative log-likelihood of a fixed text, nats for each token."""

    text: str = Field(max_length=100, description="Name of the text.")
    tokens: int = Field(ge=1)
    mean: float


class Golden(Record):
    """What a model said on a set-up that is known to be right, to be compared with elsewhere."""

    golden_version: int = GOLDEN_VERSION
    model_digest: Sha256 = Field(description="Of the model's files, see `model_digest`.")
    model: str
    engine: str = Field(description="Name and version of the engine that said it.")
    recorded: str = Field(description="UTC time.")
    greedy: tuple[Greedy, ...] = Field((), max_length=100)
    nll: tuple[Nll, ...] = Field((), max_length=100)


class Outcome(str, Enum):
    """How a probe ended. NOT_OFFERED: this engine has no way to ask."""

    RIGHT = "right"
    WRONG = "wrong"
    NOT_OFFERED = "not offered"
    UNKNOWN = "unknown"


class CorrectnessResult(Record):
    """One probe of one service in one phase."""

    service: str
    probe: Probe
    phase: Phase
    outcome: Outcome
    judged: bool = Field(description="Whether it decides; otherwise it is only shown.")
    in_flight: int = Field(0, description="Background requests while it ran.")
    measured: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = Field((), description="Short excerpts, without control characters.")
