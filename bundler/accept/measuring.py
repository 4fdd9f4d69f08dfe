"""One request to one sample: what the moments at which text arrived say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from bundler.domain.facts import RequestSample
from bundler.errors import EngineError
from bundler.ports import ChatRequest, ChatSession, Clock, Delta


@dataclass
class Arrivals:
    """What has arrived of one answer: when text came, and the tokens that there were by then."""

    at: list[float] = field(default_factory=list)
    counts: list[int | None] = field(default_factory=list)
    answer_at: float | None = None
    finish_reason: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int | None = None

    def take(self, delta: Delta) -> None:
        """Note one event."""
        if delta.text:
            self.at.append(delta.at)
            self.counts.append(delta.output_tokens)
            if self.answer_at is None and not delta.reasoning:
                self.answer_at = delta.at
        if delta.finish_reason:
            self.finish_reason = delta.finish_reason
        if delta.output_tokens is not None:
            self.output_tokens = delta.output_tokens
        if delta.input_tokens:
            self.input_tokens = delta.input_tokens
        if delta.cached_tokens is not None:
            self.cached_tokens = delta.cached_tokens


@dataclass(frozen=True)
class Gaps:
    """Milliseconds between tokens, or between chunks where nobody said how many tokens they held."""

    ms: tuple[float, ...]
    per_token: bool
    first_tokens: int


def gaps(arrivals: Arrivals, most_tokens: int) -> Gaps:
    """The gaps of an answer of at most `most_tokens` tokens.

    A chunk of k tokens that comes g after the one before it is k gaps of g/k: the tokens came together,
    and how they were made cannot be told finer. The count after each chunk is the engine's
    (`continuous_usage_stats`); without it a chunk is a token only when there were as many of them.
    """
    chunks = [_ms(later - sooner) for sooner, later in pairwise(arrivals.at)]
    tokens = _tokens(arrivals, most_tokens)
    if tokens is None:
        one_each = len(arrivals.at) == arrivals.output_tokens
        return Gaps(tuple(chunks), one_each, 1)
    shared = tuple(
        round(gap / count, 4)
        for gap, count in zip(chunks, tokens[1:], strict=True)
        for _ in range(count)
    )
    return Gaps(shared, True, tokens[0])


def _tokens(arrivals: Arrivals, most: int) -> list[int] | None:
    """How many tokens each chunk of text brought; None when the counts cannot be that."""
    known = [count for count in arrivals.counts if count is not None]
    if not known or len(known) != len(arrivals.counts) or known[-1] > most:
        return None
    tokens = [later - sooner for sooner, later in pairwise([0, *known])]
    return tokens if all(count > 0 for count in tokens) else None


async def measure(
    session: ChatSession, request: ChatRequest, clock: Clock, began: float, due: float | None = None
) -> RequestSample:
    """Send one request, wait for its whole answer, and sum it up. A failure is a sample too.

    Args:
        session: where to send it.
        request: what to send.
        clock: the clock of the deltas.
        began: when the level began.
        due: when the request was to be sent, in open loop. Its times count from there: a user who had to
            wait for us has waited (coordinated omission; Gil Tene, "How NOT to Measure Latency", 2015).
    """
    arrivals = Arrivals()
    error, done = "", True
    sent = clock.monotonic()
    try:
        done = await session.listen(request, arrivals.take)
    except EngineError as cause:
        error = str(cause)
    if not error and not arrivals.at:
        error = f"an answer without text ({arrivals.output_tokens} output tokens by usage)"
    start = sent if due is None else due
    at = arrivals.at
    between = gaps(arrivals, request.max_tokens)
    return RequestSample(
        ok=not error,
        error=error,
        started_s=round(start - began, 6),
        waited_ms=_ms(sent - start),
        ttft_ms=_ms(at[0] - start) if at else None,
        ttfa_ms=None if arrivals.answer_at is None else _ms(arrivals.answer_at - start),
        tpot_ms=None if error else _tpot(at, arrivals.output_tokens - between.first_tokens),
        e2e_ms=_ms((clock.monotonic() if error else at[-1]) - start),
        itl_ms=between.ms,
        itl_per_token=between.per_token,
        input_tokens=arrivals.input_tokens,
        output_tokens=arrivals.output_tokens,
        cached_tokens=arrivals.cached_tokens,
        finish_reason=arrivals.finish_reason,
        done=done,
    )


def _tpot(at: Sequence[float], later_tokens: int) -> float | None:
    """Time per token after those that came first; None when there are none."""
    return round((at[-1] - at[0]) * 1000 / later_tokens, 4) if later_tokens > 0 else None


def _ms(seconds: float) -> float:
    """Milliseconds to a tenth of a microsecond: finer is noise and makes records long."""
    return round(seconds * 1000, 4)
