"""Observed: the highest concurrency that a service stands within its objective."""

from pydantic import Field

from bundler.domain.facts import LevelMetrics, RequestSample
from bundler.domain.profile import Fingerprint
from bundler.domain.record import Record
from bundler.domain.spec import Acceptance
from bundler.domain.verdict import Check, Verdict


class Trial(Record):
    """One measurement of one level."""

    metrics: LevelMetrics
    verdict: Verdict
    checks: tuple[Check, ...]
    samples: tuple[RequestSample, ...]


class CapacityRecord(Record):
    """The evidence of `accept --find-max`. PASS: `best` users pass, shown twice, and the next level not."""

    bundle_id: str
    manifest_sha256: str
    key_id: str | None
    name: str
    service: str
    engine_name: str
    engine_version: str
    fingerprint: Fingerprint
    host: dict[str, str]
    plan: Acceptance = Field(description="With the objective that was searched for.")
    began: str
    ended: str
    verdict: Verdict
    best: int | None = Field(description="Users at once; None when no level passed.")
    edge: int | None = Field(description="Lowest level above it that did not pass.")
    reason: str
    trials: tuple[Trial, ...]
    warnings: tuple[str, ...] = ()
