"""The load of one level: so many users, closed loop or arrivals at a rate.

Every measured request becomes a sample; one that failed says so and is never left out. What the figures
mean is for `metrics`, `validity` and `judge`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bundler.accept.arrivals import due_times, think_times
from bundler.accept.measuring import measure
from bundler.accept.prompts import Length, calibrated, corrected, probe_words, prompt
from bundler.accept.statistics import quantile
from bundler.accept.watching import watching
from bundler.domain.facts import RequestSample, ServerWindow
from bundler.domain.spec import Acceptance
from bundler.instruments import LoadView
from bundler.ports import ChatRequest, ChatSession, Clock, Progress, Task

# The first requests of a shape compile kernels and fill pools; they would be measured as latency.
_LEAST_WARM_UP = 4
_MOST_WARM_UP = 256
_LONGEST_STAGGER_S = 2.0
# Waves beyond the first two, for an engine that has not settled after these.
_MORE_WAVES = 4
# Two waves agree within a tenth or within what a clock tick moves.
SETTLED, SETTLED_MS = 0.10, 5.0
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
    lag_ms_p99: float | None = None
    server: ServerWindow | None = None
    warm_up_ttft_ms: tuple[float, ...] = ()
    template_tokens: float | None = None


class Meeting:
    """Levels of several services that are measured at the same time; all on one event loop."""

    def __init__(self, levels: int) -> None:
        self._levels = levels
        self._warm, self._done = 0, 0
        self._begin, self._end = asyncio.Event(), asyncio.Event()

    async def begin(self) -> None:
        """Wait until every level has warmed up."""
        self._warm += 1
        if self._warm == self._levels:
            self._begin.set()
        await self._begin.wait()

    def end(self) -> None:
        """One level has been measured."""
        self._done += 1
        if self._done == self._levels:
            self._end.set()

    def until_all_are_done(self) -> Iterator[None]:
        """More to send, as long as another level is still being measured."""
        while not self._end.is_set():
            yield None


@dataclass
class _Loop:
    """The state that the workers of one level share; all run on one event loop."""

    session: ChatSession
    level: Level
    clock: Clock
    task: Task
    view: LoadView | None = None
    length: Length = field(default_factory=Length)
    waves: list[float] = field(default_factory=list)
    answered: bool = False
    failed_in_a_row: int = 0
    timed_out_in_a_row: int = 0
    last_error: str = ""
    sent: int = 0
    shown: bool = True

    @property
    def seed(self) -> str:
        """What this level's prompts and schedule are made from."""
        return f"{self.level.salt}/{self.level.model}/{self.level.concurrency}"

    def request(self, words: int | None = None) -> ChatRequest:
        """A request unlike every other."""
        plan = self.level.plan
        self.sent += 1
        words = words or self.length.words(plan.input_tokens)
        return ChatRequest(
            model=self.level.model,
            prompt=prompt(f"{self.seed}/{self.sent}", words, plan.language),
            max_tokens=plan.output_tokens,
            timeout_s=plan.request_timeout_s,
            api=plan.api,
        )

    async def one(
        self, request: ChatRequest, began: float, due: float | None = None
    ) -> RequestSample:
        """Send one request and measure it."""
        sample = await measure(self.session, request, self.clock, began, due)
        self._note(sample)
        if self.shown:
            self.task.advance(1)
            if self.view is not None:
                self.view.answered(sample)
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
    *,
    session: ChatSession,
    level: Level,
    clock: Clock,
    progress: Progress,
    meeting: Meeting | None = None,
) -> LevelRun:
    """Warm up, then measure the level's requests with `concurrency` of them in flight.

    When two waves of requests failed in a row the rest is not sent and counts as failed: an engine that
    hangs would otherwise hold the run for hours and give the same verdict. Before the first answer two
    time-outs are enough, and after a level that failed as a whole one failure is.

    With a `meeting` it begins when the others do, and its users go on until the others are done too.

    Raises:
        asyncio.CancelledError: the run was interrupted; no request is left behind.
    """
    total = level.warm_up + level.requests
    label = f"{level.model} x{level.concurrency}"
    with progress.task(label, total, "requests") as task:
        view = progress if isinstance(progress, LoadView) else None
        loop = _Loop(session, level, clock, task, view)
        stagger_s = await _warm_up(loop)
        if meeting is not None:
            await meeting.begin()
        run = await _measured(loop, stagger_s)
        if meeting is not None:
            meeting.end()
            loop.shown = False
            if not loop.gone:
                more, began = meeting.until_all_are_done(), clock.monotonic()
                await _workers(loop, more, level.concurrency, began, 0.0, think=True)
        return run


async def _warm_up(loop: _Loop) -> float:
    """Send the unmeasured requests; gives the seconds over which to spread the measured start.

    After two probes of the prompt's length, waves of the real shape until the engine has settled.
    """
    began = loop.clock.monotonic()
    counted: list[tuple[int, int]] = []
    for words in probe_words(loop.level.plan.input_tokens):
        sample = await loop.one(loop.request(words), began)
        counted.append((words, sample.input_tokens))
        if loop.gone:
            return 0.0
    few, many = counted
    loop.length = calibrated(few, many)
    words = loop.length.words(loop.level.plan.input_tokens)
    left = loop.level.warm_up - 2
    first = await _wave(loop, left - left // 2, began)
    tokens = quantile([sample.input_tokens for sample in first if sample.input_tokens], 0.5)
    if tokens:
        loop.length = corrected(loop.length, words, tokens)
    last = await _wave(loop, left // 2, began) or first
    for _ in range(_MORE_WAVES):
        if loop.gone or settled(loop.waves):
            break
        last = await _wave(loop, max(loop.level.concurrency, _LEAST_WARM_UP // 2), began)
    times = [sample.e2e_ms for sample in last if sample.ok]
    # Half a request's time: enough to part the waves, too little to leave the level unfilled.
    return min(_LONGEST_STAGGER_S, (quantile(times, 0.5) or 0.0) / 2000)


def settled(waves: Sequence[float], slack_ms: float = SETTLED_MS) -> bool:
    """Whether the last two waves' medians agree; also when there are no two to compare."""
    if len(waves) < 2:
        return True
    before, last = waves[-2:]
    return abs(last - before) <= max(SETTLED * before, slack_ms)


async def _wave(loop: _Loop, count: int, began: float) -> list[RequestSample]:
    """So many requests that start together."""
    if loop.gone or not count:
        return []
    samples = await _workers(loop, iter([None] * count), count, began, 0.0)
    times = [sample.ttft_ms for sample in samples if sample.ok and sample.ttft_ms is not None]
    median = quantile(times, 0.5)
    if median is not None:
        loop.waves.append(round(median, 4))
    return samples


async def _measured(loop: _Loop, stagger_s: float) -> LevelRun:
    plan, count = loop.level.plan, loop.level.requests
    if plan.ramp_s is not None:
        stagger_s = plan.ramp_s
    samples: list[RequestSample] = []
    if loop.view is not None:
        loop.view.measuring()
    async with watching(loop.session) as watch:
        began = loop.clock.monotonic()
        # An engine that failed the warm-up but quickly is asked once more by each worker: it may be back.
        if not loop.hangs:
            due = due_times(plan, count, loop.seed)
            spread_s = stagger_s if plan.arrivals == "closed" else 0.0
            samples = await _workers(loop, due, count, began, spread_s, think=True)
        duration_s = loop.clock.monotonic() - began
    unsent = count - len(samples)
    times = f"{loop.failed_in_a_row} failure{'s' if loop.failed_in_a_row > 1 else ''} in a row"
    error = f"{UNSENT} after {times}: {loop.last_error}"
    rest = [
        RequestSample(ok=False, error=error, started_s=round(duration_s, 6), e2e_ms=0.0)
        for _ in range(unsent)
    ]
    samples.sort(key=lambda sample: sample.started_s)
    return LevelRun(
        samples=(*samples, *rest),
        duration_s=duration_s,
        lag_ms_p99=watch.lag_ms_p99,
        server=watch.server,
        warm_up_ttft_ms=tuple(loop.waves),
        template_tokens=loop.length.fixed or None,
    )


async def _workers(
    loop: _Loop, due: Iterator[float | None], count: int, began: float, stagger_s: float,
    *, think: bool = False,
) -> list[RequestSample]:  # fmt: skip
    """Let the level's workers send `count` requests; fewer when the engine is gone."""
    workers = min(loop.level.concurrency, count)
    tasks = [
        asyncio.ensure_future(
            _work(loop, due, began, stagger_s * place / workers, f"{place}" if think else "")
        )
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
    loop: _Loop, due: Iterator[float | None], began: float, wait_s: float, thinker: str
) -> list[RequestSample]:
    """One worker: after `wait_s` its first request, then the next that is due, until none is left.

    In open loop a request that is due while every worker is busy is sent late, and its times count from
    when it was due.
    """
    pauses = think_times(loop.level.plan, f"{loop.seed}/{thinker}") if thinker else None
    if wait_s:
        await asyncio.sleep(wait_s)
    samples: list[RequestSample] = []
    for at_s in due:
        if samples and pauses is not None and (pause := next(pauses)):
            await asyncio.sleep(pause)
        request = loop.request()  # made before it is due: a long prompt takes time
        at = None if at_s is None else began + at_s
        if at is not None and (early := at - loop.clock.monotonic()) > 0:
            await asyncio.sleep(early)
        samples.append(await loop.one(request, began, at))
        if loop.gone:
            break
    return samples
