"""The search over a simulated engine that fails when too many ask at once."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bundler.accept.capacity import Finder, search_plan
from bundler.accept.search import Search
from bundler.domain.capacity import CapacityRecord
from bundler.domain.spec import Acceptance, Slo
from bundler.domain.verdict import Verdict
from bundler.ports import ChatRequest, Delta
from tests.unit.accept.fake_chat import Behaviour, CountingProgress, FakeChat, SimulatedTime
from tests.unit.accept.known import H200, bundle
from tests.unit.accept.test_acceptance_pipeline import state


@pytest.fixture(autouse=True)
def _no_real_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bundler.accept.load._LONGEST_STAGGER_S", 0.0)


class Queueing(FakeChat):
    """Each user beyond `limit` makes everybody wait half a second more for the first token."""

    limit = 5
    interrupt_at = 10**9

    async def _deltas(self, request: ChatRequest, number: int) -> AsyncIterator[Delta]:
        if number >= self.interrupt_at:
            raise KeyboardInterrupt
        await self.time.wait(0.5 * max(0, self.in_flight - self.limit))
        async for delta in super()._deltas(request, number):
            yield delta


def finder(chat: Queueing, kept: list[CapacityRecord], budget_s: float = 1e6) -> Finder:
    verified = bundle(Acceptance(concurrency=(1,), requests=60))
    return Finder(
        state=state("chat"),
        service=verified.manifest.services[0],
        verified=verified,
        plan=search_plan(verified.manifest.acceptance, Slo(ttft_ms=300)),
        search=Search(1, 32),
        budget_s=budget_s,
        chat=chat,
        clock=chat.time,
        progress=CountingProgress(),
        host=H200,
        keep=kept.append,
    )


@pytest.mark.slow
def test_the_limit_is_found_and_every_level_is_kept() -> None:
    kept: list[CapacityRecord] = []
    record = finder(Queueing(SimulatedTime(), Behaviour()), kept).run()
    assert (record.verdict, record.best, record.edge) == (Verdict.PASS, 5, 6)
    levels = [trial.metrics.concurrency for trial in record.trials]
    assert levels == [1, 2, 4, 8, 6, 5, 6, 5]
    assert [len(one.trials) for one in kept] == [1, 2, 3, 4, 5, 6, 7, 8, 8]
    assert {one.verdict for one in kept[:-2]} == {Verdict.INCONCLUSIVE}
    assert CapacityRecord.model_validate_json(record.model_dump_json()) == record
    assert record.fingerprint.gpu == "NVIDIA H200"


def test_a_level_gets_requests_enough_to_pass_with_two_misses() -> None:
    plan = Acceptance(requests=60)
    assert search_plan(plan, Slo(attainment=0.95)).requests == 124
    assert search_plan(plan, Slo(attainment=0.99)).requests == 628
    assert search_plan(Acceptance(requests=500), Slo(attainment=0.95)).requests == 500


def test_no_level_begins_after_the_budget() -> None:
    kept: list[CapacityRecord] = []
    # One user: 126 requests of 0.41 s.
    record = finder(Queueing(SimulatedTime(), Behaviour()), kept, budget_s=60).run()
    assert [trial.metrics.concurrency for trial in record.trials] == [1, 2]
    assert record.verdict is Verdict.INCONCLUSIVE
    assert record.reason == "the budget of 60 s is used up; passed at 2"
    assert record.best == 2


def test_an_interrupted_search_keeps_the_levels_that_it_has() -> None:
    kept: list[CapacityRecord] = []
    chat = Queueing(SimulatedTime(), Behaviour())
    chat.interrupt_at = 200
    with pytest.raises(KeyboardInterrupt):
        finder(chat, kept).run()
    assert kept[-1].reason == "interrupted; passed at 1"
    assert [trial.metrics.concurrency for trial in kept[-1].trials] == [1]


def test_an_engine_that_answers_nothing_fails() -> None:
    kept: list[CapacityRecord] = []
    dead = Queueing(SimulatedTime(), Behaviour(fails=lambda number: "HTTP 500: boom"))
    record = finder(dead, kept).run()
    assert (record.verdict, record.best) == (Verdict.FAIL, None)
    assert record.reason == "fails at 1 already, the lowest level that was asked for"
