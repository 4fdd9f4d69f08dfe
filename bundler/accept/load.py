"""Closed-loop load: so many requests in flight, the next sent as soon as one ends.

Every measured request becomes a sample; one that failed says so and is never left out. What the figures
mean is for `metrics` and `judge`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from bundler.accept.prompts import Length, calibrated, corrected, probe_words, prompt
from bundler.accept.statistics import quantile
from bundler.domain.facts import RequestSample
from bundler.domain.spec import Acceptance
from bundler.errors import EngineError
from bundler.ports import ChatRequest, ChatSession, Clock, Delta, Progress, Task

# The first requests of a shape compile kernels and fill pools; they would be measured as latency.
_LEAST_WARM_UP = 4
_MOST_WARM_UP = 256
_LONGEST_STAGGER_S = 2.0
# An engine that never answered and let so many requests time out hangs; more would cost as long each.
_MOST_FIRST_TIME_OUTS = 2
# Clocks differ a little: a request that failed after this share of its time-out has timed out.
_TIMED_OUT = 0.99
UNSENT = "not sent"


@dataclass(frozen=True)
class Level:
    """What to send: `model` is the name that clients send, `salt` makes this run's prompts new.

    `doubtful` says that the level before failed as a whole, so one failed request is enough to end this.
    """

    model: str
    concurrency: int
    plan: Acceptance
    salt: str
    doubtful: bool = False

    @property
    def requests(self) -> int:
        """Measured requests."""
        return self.plan.requests_at(self.concurrency)

    @property
    def warm_up(self) -> int:
        """Unmeasured requests: two waves, or one where two would be very many; at least four."""
        two_waves = min(2 * self.concurrency, max(self.concurrency, _MOST_WARM_UP))
        return max(two_waves, _LEAST_WARM_UP)

    @property
    def give_up_after(self) -> int:
        """Failures in a row after which the engine counts as gone: two waves."""
        return max(2 * self.concurrency, _LEAST_WARM_UP)


@dataclass(frozen=True)
class LevelRun:
    """What was measured at one level."""

    samples: tuple[RequestSample, ...]
    duration_s: float


@dataclass
class _Loop:
    """The state that the workers of one level share; all run on one event loop."""

    session: ChatSession
    level: Level
    clock: Clock
    task: Task
    length: Length = field(default_factory=Length)
    answered: bool = False
    failed_in_a_row: int = 0
    timed_out_in_a_row: int = 0
    last_error: str = ""
    sent: int = 0

    async def one(self, began: float, words: int | None = None) -> RequestSample:
        """Send one request and measure it."""
        plan = self.level.plan
        self.sent += 1
        seed = f"{self.level.salt}/{self.level.model}/{self.level.concurrency}/{self.sent}"
        request = ChatRequest(
            model=self.level.model,
            prompt=prompt(seed, words or self.length.words(plan.input_tokens)),
            max_tokens=plan.output_tokens,
            timeout_s=plan.request_timeout_s,
        )
        sample = await _measure(self.session, request, self.clock, began)
        self._note(sample)
        self.task.advance(1)
        return sample

    def _note(self, sample: RequestSample) -> None:
        self.answered = self.answered or sample.ok
        self.failed_in_a_row = 0 if sample.ok else self.failed_in_a_row + 1
        self.last_error = sample.error or self.last_error
        limit_ms = 1000 * self.level.plan.request_timeout_s
        timed_out = not sample.ok and sample.e2e_ms >= _TIMED_OUT * limit_ms
        self.timed_out_in_a_row = self.timed_out_in_a_row + 1 if timed_out else 0

    @property
    def hangs(self) -> bool:
        """Whether one more request would most likely cost another whole time-out."""
        if self.level.doubtful and not self.answered:
            return self.failed_in_a_row > 0
        # A whole wave and the first of the next: waiting for all of that one would start a third.
        most = self.level.concurrency + 1 if self.answered else _MOST_FIRST_TIME_OUTS
        return self.timed_out_in_a_row >= most

    @property
    def gone(self) -> bool:
        """Whether so many requests failed in a row that more would only cost time."""
        return self.hangs or self.failed_in_a_row >= self.level.give_up_after


async def run_level(
    *, session: ChatSession, level: Level, clock: Clock, progress: Progress
) -> LevelRun:
    """Warm up, then measure the level's requests with `concurrency` of them in flight.

    When two waves of requests failed in a row the rest is not sent and counts as failed: an engine that
    hangs would otherwise hold the run for hours and give the same verdict. Before the first answer two
    time-outs are enough, and after a level that failed as a whole one failure is.

    Raises:
        asyncio.CancelledError: the run was interrupted; no request is left behind.
    """
    total = level.warm_up + level.requests
    label = f"{level.model} x{level.concurrency}"
    with progress.task(label, total, "requests") as task:
        loop = _Loop(session, level, clock, task)
        stagger_s = await _warm_up(loop)
        return await _measured(loop, stagger_s)


async def _warm_up(loop: _Loop) -> float:
    """Send the unmeasured requests; gives the seconds over which to spread the measured start."""
    began = loop.clock.monotonic()
    counted: list[tuple[int, int]] = []
    for words in probe_words(loop.level.plan.input_tokens):
        counted.append((words, (await loop.one(began, words)).input_tokens))
        if loop.gone:
            return 0.0
    few, many = counted
    loop.length = calibrated(few, many)
    words = loop.length.words(loop.level.plan.input_tokens)
    samples = await _workers(loop, loop.level.warm_up - 2, began, 0.0)
    tokens = quantile([sample.input_tokens for sample in samples if sample.input_tokens], 0.5)
    if tokens:
        loop.length = corrected(loop.length, words, tokens)
    times = [sample.e2e_ms for sample in samples if sample.ok]
    # Half a request's time: enough to part the waves, too little to leave the level unfilled.
    return min(_LONGEST_STAGGER_S, (quantile(times, 0.5) or 0.0) / 2000)


async def _measured(loop: _Loop, stagger_s: float) -> LevelRun:
    began = loop.clock.monotonic()
    # An engine that failed the warm-up but quickly is asked once more by each worker: it may be back.
    samples = [] if loop.hangs else await _workers(loop, loop.level.requests, began, stagger_s)
    duration_s = loop.clock.monotonic() - began
    unsent = loop.level.requests - len(samples)
    times = f"{loop.failed_in_a_row} failure{'s' if loop.failed_in_a_row > 1 else ''} in a row"
    error = f"{UNSENT} after {times}: {loop.last_error}"
    rest = [
        RequestSample(ok=False, error=error, started_s=round(duration_s, 6), e2e_ms=0.0)
        for _ in range(unsent)
    ]
    samples.sort(key=lambda sample: sample.started_s)
    return LevelRun((*samples, *rest), duration_s)


async def _workers(loop: _Loop, count: int, began: float, stagger_s: float) -> list[RequestSample]:
    """Let the level's workers send `count` requests; fewer when the engine is gone."""
    numbers = iter(range(count))
    workers = min(loop.level.concurrency, count)
    tasks = [
        asyncio.ensure_future(_work(loop, numbers, began, stagger_s * place / workers))
        for place in range(workers)
    ]
    try:
        parts = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [sample for part in parts for sample in part]


async def _work(
    loop: _Loop, numbers: Iterator[int], began: float, wait_s: float
) -> list[RequestSample]:
    """One worker: after `wait_s` its first request, then each as the last has ended."""
    if wait_s:
        await asyncio.sleep(wait_s)
    samples: list[RequestSample] = []
    for _ in numbers:
        samples.append(await loop.one(began))
        if loop.gone:
            break
    return samples


@dataclass
class _Answer:
    """What has arrived of one answer."""

    arrivals: list[float] = field(default_factory=list)
    finish_reason: str = ""
    input_tokens: int = 0
    output_tokens: int = 0

    def take(self, delta: Delta) -> None:
        """Note one event."""
        if delta.text:
            self.arrivals.append(delta.at)
        self.finish_reason = delta.finish_reason or self.finish_reason
        self.input_tokens = delta.input_tokens or self.input_tokens
        self.output_tokens = delta.output_tokens or self.output_tokens


async def _measure(
    session: ChatSession, request: ChatRequest, clock: Clock, began: float
) -> RequestSample:
    answer = _Answer()
    error = ""
    start = clock.monotonic()
    try:
        async for delta in session.stream(request):
            answer.take(delta)
    except EngineError as cause:
        error = str(cause)
    if not error and not answer.arrivals:
        error = f"an answer without text ({answer.output_tokens} output tokens by usage)"
    return _sample(answer, error, start - began, start, clock.monotonic())


def _sample(
    answer: _Answer, error: str, started_s: float, start: float, now: float
) -> RequestSample:
    at = answer.arrivals
    tpot = None
    if not error and answer.output_tokens > 1:
        tpot = _ms(at[-1] - at[0]) / (answer.output_tokens - 1)
    return RequestSample(
        ok=not error,
        error=error,
        started_s=round(started_s, 6),
        ttft_ms=_ms(at[0] - start) if at else None,
        tpot_ms=None if tpot is None else round(tpot, 4),
        e2e_ms=_ms((now if error else at[-1]) - start),
        itl_ms=tuple(_ms(later - sooner) for sooner, later in pairwise(at)),
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        finish_reason=answer.finish_reason,
    )


def _ms(seconds: float) -> float:
    """Milliseconds to a tenth of a microsecond: finer is noise and makes records long."""
    return round(seconds * 1000, 4)
