import asyncio
from collections import Counter

import pytest

from bundler.accept import load, watching
from bundler.accept.load import Level, LevelRun, run_level
from bundler.accept.prompts import Length, calibrated, prompt
from bundler.domain.facts import RequestSample
from bundler.domain.spec import Acceptance
from bundler.domain.telemetry import EngineObservation
from tests.unit.accept.fake_chat import Behaviour, CountingProgress, FakeChat, SimulatedTime

PLAN = Acceptance(requests=40, input_tokens=200, output_tokens=11)


class Measured:
    def __init__(
        self,
        behaviour: Behaviour,
        concurrency: int = 4,
        plan: Acceptance = PLAN,
        doubtful: bool = False,
    ) -> None:
        self.time = SimulatedTime()
        self.chat = FakeChat(self.time, behaviour)
        self.progress = CountingProgress()
        self.level = Level("chat", concurrency, plan, "run 1", doubtful)
        self.run = asyncio.run(self._run())

    async def _run(self) -> LevelRun:
        return await run_level(
            session=self.chat, level=self.level, clock=self.time, progress=self.progress
        )


@pytest.fixture(autouse=True)
def _no_real_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "_LONGEST_STAGGER_S", 0.0)


def test_each_worker_sends_its_next_request_as_soon_as_the_last_ended() -> None:
    seen = Measured(Behaviour(ttft_s=0.1, gap_s=0.01))
    assert seen.chat.most_in_flight == 4
    assert len(seen.run.samples) == 40
    assert seen.run.duration_s == pytest.approx(10 * 0.2)
    assert [s.started_s for s in seen.run.samples[:5]] == pytest.approx([0, 0, 0, 0, 0.2])


def test_a_sample_has_the_times_of_its_tokens() -> None:
    sample = Measured(Behaviour(ttft_s=0.1, gap_s=0.01)).run.samples[0]
    assert sample.ok
    assert sample.ttft_ms == pytest.approx(100)
    assert sample.tpot_ms == pytest.approx(10)
    assert sample.e2e_ms == pytest.approx(200)
    assert sample.itl_ms == pytest.approx((10.0,) * 10)
    assert (sample.output_tokens, sample.finish_reason) == (11, "length")


class Watching(CountingProgress):
    """Shows a load too."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def measuring(self) -> None:
        self.told.append("measuring")

    def answered(self, sample: RequestSample) -> None:
        self.told.append("ok" if sample.ok else "failed")

    def seen(self, engine: EngineObservation) -> None:
        self.told.append(engine.service)


def test_whoever_shows_a_load_is_told_of_each_request_and_of_the_end_of_the_warm_up() -> None:
    time, shown = SimulatedTime(), Watching()
    level = Level("chat", 4, PLAN, "run 1")
    chat = FakeChat(time, Behaviour())
    asyncio.run(run_level(session=chat, level=level, clock=time, progress=shown))
    assert shown.told == ["ok"] * 8 + ["measuring"] + ["ok"] * 40


def test_warm_up_requests_are_sent_first_and_not_measured() -> None:
    seen = Measured(Behaviour(), concurrency=8)
    assert len(seen.chat.requests) == 16 + 40
    assert seen.progress.done == seen.progress.total == 56
    assert seen.progress.units == ["requests"]


@pytest.mark.parametrize(
    ("concurrency", "count"), [(1, 4), (2, 4), (8, 16), (200, 256), (1000, 1000)]
)
def test_warm_up_is_two_waves_within_reason(concurrency: int, count: int) -> None:
    assert Level("chat", concurrency, PLAN, "").warm_up == count


@pytest.mark.parametrize("tokens_per_word", [1.3, 2.0, 4.5])
@pytest.mark.parametrize("asked", [64, 200, 4000])
def test_prompts_have_about_the_tokens_asked_for_whatever_the_tokenizer(
    tokens_per_word: float, asked: int
) -> None:
    plan = PLAN.model_copy(update={"input_tokens": asked})
    seen = Measured(Behaviour(tokens_per_word=tokens_per_word, template_tokens=20), plan=plan)
    assert all(abs(s.input_tokens - asked) <= 0.05 * asked for s in seen.run.samples)


def test_every_prompt_begins_with_a_word_of_its_own() -> None:
    seen = Measured(Behaviour(), concurrency=8)
    first = [request.prompt.split()[0] for request in seen.chat.requests]
    assert len(set(first)) == len(first)


def test_a_prompt_is_made_from_its_seed_alone() -> None:
    assert prompt("a/1", 30) == prompt("a/1", 30)
    assert prompt("a/1", 30).split()[0] != prompt("a/2", 30).split()[0]
    assert len(prompt("a/1", 30).split()) == 31


def test_an_engine_that_counts_no_tokens_leaves_the_guess() -> None:
    assert calibrated((8, 0), (32, 0)) == Length()
    assert calibrated((8, 100), (32, 90)) == Length()
    assert calibrated((8, 36), (32, 84)) == Length(2.0, 20.0)


def test_failed_requests_are_samples_too() -> None:
    seen = Measured(Behaviour(fails=lambda number: "HTTP 500: boom" if number % 5 == 0 else ""))
    failed = [s for s in seen.run.samples if not s.ok]
    assert len(seen.run.samples) == 40
    assert len(failed) == 8
    assert failed[0].error == "HTTP 500: boom"
    assert failed[0].ttft_ms is None
    assert failed[0].e2e_ms == pytest.approx(50)


HANG = Behaviour(fails=lambda _: "no whole answer within 600 s", fail_after_s=600)


def hang_after(number: int) -> Behaviour:
    error = "no whole answer within 600 s"
    return Behaviour(fails=lambda n: error if n > number else "", fail_after_s=600)


def test_an_engine_that_hangs_from_the_start_costs_two_time_outs_and_every_request_failed() -> None:
    seen = Measured(HANG)
    assert len(seen.chat.requests) == 2
    assert seen.time.at - 100 == pytest.approx(1200)
    assert len(seen.run.samples) == 40
    assert {(s.ok, s.error) for s in seen.run.samples} == {
        (False, "not sent after 2 failures in a row: no whole answer within 600 s")
    }


def test_after_a_level_that_failed_as_a_whole_one_failure_is_enough() -> None:
    seen = Measured(HANG, doubtful=True)
    assert len(seen.chat.requests) == 1
    assert {s.error for s in seen.run.samples} == {
        "not sent after 1 failure in a row: no whole answer within 600 s"
    }


def test_an_engine_that_came_back_is_measured_as_ever() -> None:
    seen = Measured(Behaviour(), doubtful=True)
    assert all(s.ok for s in seen.run.samples)
    assert len(seen.chat.requests) == 8 + 40


def test_one_slow_first_request_is_forgiven() -> None:
    first = Behaviour(fails=lambda n: "no whole answer" if n == 1 else "", fail_after_s=600)
    assert all(s.ok for s in Measured(first).run.samples)


@pytest.mark.parametrize(("concurrency", "waves"), [(1, 2), (4, 2)])
@pytest.mark.parametrize("answered", [2, 8, 20])
def test_an_engine_that_hangs_later_is_given_up_after_two_waves(
    concurrency: int, waves: int, answered: int
) -> None:
    seen = Measured(hang_after(answered), concurrency=concurrency)
    assert len(seen.chat.requests) <= answered + (waves + 1) * concurrency
    assert seen.time.at - 100 < 600 * (waves + 1)
    assert len(seen.run.samples) == 40


def test_an_engine_that_fails_at_once_is_given_up_after_two_waves() -> None:
    seen = Measured(Behaviour(fails=lambda _: "HTTP 500: boom"))
    assert len(seen.chat.requests) <= 8 + 2 * 4
    errors = Counter(s.error for s in seen.run.samples)
    assert errors == {
        "HTTP 500: boom": 4,
        "not sent after 12 failures in a row: HTTP 500: boom": 36,
    }


def test_an_engine_that_dies_midway_keeps_what_was_measured() -> None:
    seen = Measured(Behaviour(fails=lambda number: "cannot connect" if number > 28 else ""))
    assert sum(s.ok for s in seen.run.samples) == 20
    assert len(seen.run.samples) == 40


def test_an_answer_without_text_is_a_failure() -> None:
    seen = Measured(Behaviour(output_tokens=0))
    assert {s.error for s in seen.run.samples if "not sent" not in s.error} == {
        "an answer without text (0 output tokens by usage)"
    }


def test_without_usage_there_is_no_time_per_token() -> None:
    sample = Measured(Behaviour(usage=False)).run.samples[0]
    assert sample.ok
    assert sample.tpot_ms is None
    assert sample.output_tokens == 0


def test_the_start_is_spread_over_half_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    real = asyncio.sleep

    async def noted(seconds: float) -> None:
        if seconds not in (0, watching._TICK_S):
            waits.append(seconds)
        await real(0)

    monkeypatch.setattr(load, "_LONGEST_STAGGER_S", 2.0)
    monkeypatch.setattr(asyncio, "sleep", noted)
    Measured(Behaviour(ttft_s=0.1, gap_s=0.01))
    assert waits == pytest.approx([0.025, 0.05, 0.075])


def test_an_interrupted_level_leaves_no_request_behind() -> None:
    time = SimulatedTime()
    chat = FakeChat(time, Behaviour())

    async def interrupted() -> None:
        level = Level("chat", 4, PLAN, "x")
        running = asyncio.ensure_future(
            run_level(session=chat, level=level, clock=time, progress=CountingProgress())
        )
        while len(chat.requests) < 20:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert chat.in_flight == 0
        left = asyncio.all_tasks() - {asyncio.current_task(), time._mover}
        assert not left

    asyncio.run(interrupted())
