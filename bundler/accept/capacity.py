"""The search for the highest concurrency that passes, over a running service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from bundler.accept.fingerprint import fingerprint_of
from bundler.accept.judge import judge, sample_key
from bundler.accept.load import Level, LevelRun
from bundler.accept.metrics import level_metrics
from bundler.accept.pipeline import UNSIGNED, one_level
from bundler.accept.search import Search
from bundler.accept.statistics import requests_needed
from bundler.domain.capacity import CapacityRecord, Trial
from bundler.domain.facts import ServiceState
from bundler.domain.manifest import VerifiedManifest
from bundler.domain.spec import Acceptance, Service, Slo
from bundler.domain.variants import Changed
from bundler.domain.verdict import Verdict, overall
from bundler.ports import ChatClient, Clock, Progress

# So many requests may miss and a level can still pass: with fewer, chance alone would end the search.
_MISSES_ALLOWED = 2
_GOING_ON = "the search was not finished"


def search_plan(plan: Acceptance, slo: Slo) -> Acceptance:
    """The plan of a search: the objective, and requests enough to tell a level from a better one."""
    return plan.model_copy(
        update={
            "slo": slo,
            "expected": (),
            "requests": max(plan.requests, requests_needed(slo.attainment, _MISSES_ALLOWED)),
        }
    )


@dataclass
class Finder:
    """Searches one service.

    Args:
        state: the running service.
        service: the same in the bundle.
        verified: the bundle.
        plan: as `search_plan` gives it.
        search: where to begin and where to end.
        budget_s: seconds after which no more is measured; a level under way is cut off.
        keep: told of every state of the evidence, so that it can be written down.
        changed: how the settings differ from those that were signed, and why.
    """

    state: ServiceState
    service: Service
    verified: VerifiedManifest
    plan: Acceptance
    search: Search
    budget_s: float
    chat: ChatClient
    clock: Clock
    progress: Progress
    host: dict[str, str]
    keep: Callable[[CapacityRecord], None]
    changed: Changed | None = None
    _trials: list[Trial] = field(default_factory=list)
    _began: str = ""

    def run(self) -> CapacityRecord:
        """Search to the end, or until the budget is used up.

        Raises:
            KeyboardInterrupt: it was interrupted; what was measured was given to `keep`.
        """
        self._began = self.clock.now()
        start = self.clock.monotonic()
        cut = ""
        try:
            while (level := self.search.next()) is not None:
                left = self.budget_s - (self.clock.monotonic() - start)
                if left <= 0 or not self._measure(level, left):
                    cut = f"the budget of {self.budget_s:g} s is used up"
                    break
                self.keep(self._record(_GOING_ON if self.search.next() is not None else ""))
        except KeyboardInterrupt:
            self.keep(self._record("interrupted"))
            raise
        record = self._record(cut)
        self.keep(record)
        return record

    def _measure(self, concurrency: int, left_s: float) -> bool:
        """One trial; False when the time was not enough for it."""
        plan = self.plan.model_copy(update={"concurrency": (concurrency,)})
        salt = f"{self._began}/{self.clock.monotonic()}"
        level = Level(self.state.service, concurrency, plan, salt)
        try:
            run = asyncio.run(self._within(level, left_s))
        except asyncio.TimeoutError:
            return False
        metrics = level_metrics(self.state.service, concurrency, run, plan)
        samples = {sample_key(self.state.service, concurrency): run.samples}
        checks, _ = judge(plan, [metrics], samples)
        trial = Trial(metrics=metrics, verdict=overall(checks), checks=checks, samples=run.samples)
        self._trials.append(trial)
        self.search.take(concurrency, trial.verdict)
        self.progress.note(_line(trial))
        return True

    async def _within(self, level: Level, left_s: float) -> LevelRun:
        measuring = one_level(self.state.url, level, self.chat, self.clock, self.progress)
        return await asyncio.wait_for(measuring, left_s)

    def _record(self, cut: str) -> CapacityRecord:
        found = self.search.found(cut=cut)
        manifest = self.verified.manifest
        return CapacityRecord(
            bundle_id=self.verified.bundle_id,
            manifest_sha256=self.verified.digest,
            key_id=self.verified.key_id,
            name=manifest.name,
            service=self.state.service,
            engine_name=manifest.engine.name,
            engine_version=manifest.engine.version,
            fingerprint=fingerprint_of(manifest, self.service, self.state, self.host),
            host=self.host,
            plan=self.plan,
            began=self._began,
            ended=self.clock.now(),
            verdict=found.verdict,
            best=found.best,
            edge=found.edge,
            reason=found.reason,
            trials=tuple(self._trials),
            warnings=(
                *(() if self.verified.signed else (UNSIGNED,)),
                *((self.changed.words,) if self.changed else ()),
            ),
        )


def _line(trial: Trial) -> str:
    level = trial.metrics
    deciding = next((c for c in trial.checks if c.verdict is trial.verdict), None)
    why = ""
    if deciding is not None and trial.verdict is not Verdict.PASS:
        why = f": {deciding.reason or deciding.measured}"
    return f"{level.service} x{level.concurrency}: {trial.verdict.value}{why}"
