"""The load that runs beside the probes: streams that are read and thrown away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bundler.accept.correctness.texts import background_prompt
from bundler.domain.spec import Acceptance
from bundler.errors import EngineError
from bundler.ports import ChatRequest, ChatSession

# Real failures showed with two or three requests at once (see docs/correctness.md); more than this adds time only.
_MOST = 32
_LEAST_TOKENS, _MOST_TOKENS = 16, 256
_FIRST_TOKEN_S = 60.0
_PAUSE_S = 0.2
_KEPT = 12


def in_flight(plan: Acceptance, slots: int | None) -> int:
    """Background requests: as many as the largest level less the probe itself, and a slot left free for it.

    `slots` is how many the engine computes at once, None for many. Zero where the engine computes one request at a time: nothing can run beside it.
    """
    wanted = max(1, min(max(plan.concurrency) - 1, _MOST))
    return wanted if slots is None else min(wanted, slots - 1)


@dataclass
class Load:
    """What the background has come to."""

    answered: int = 0
    streaming: set[int] = field(default_factory=set)
    error: str = ""
    texts: list[str] = field(default_factory=list)
    """Some of the answers, for the detectors."""


@asynccontextmanager
async def background(
    session: ChatSession, model: str, plan: Acceptance, count: int, salt: str
) -> AsyncIterator[Load]:
    """Keep `count` requests in flight inside the block, once each has had a first token (or failed)."""
    load = Load()
    tasks = [
        asyncio.ensure_future(_stream(session, model, plan, place, salt, load))
        for place in range(count)
    ]
    try:
        for _ in range(int(_FIRST_TOKEN_S / _PAUSE_S)):
            if len(load.streaming) == count or load.error:
                break
            await asyncio.sleep(_PAUSE_S)
        yield load
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _stream(
    session: ChatSession, model: str, plan: Acceptance, place: int, salt: str, load: Load
) -> None:
    sent = 0
    while True:
        sent += 1
        words = max(8, min(plan.input_tokens, 512) // 2)
        request = ChatRequest(
            model=model,
            prompt=background_prompt(f"{salt}/{place}/{sent}", words),
            max_tokens=max(_LEAST_TOKENS, min(plan.output_tokens, _MOST_TOKENS)),
            timeout_s=plan.request_timeout_s,
            # What a model says after its own end is nothing to judge; the next request follows at once.
            ignore_eos=False,
        )
        said: list[str] = []
        try:
            async for delta in session.stream(request):
                if delta.text:
                    load.streaming.add(place)
                    said.append(delta.text)
            load.answered += 1
            if len(load.texts) < _KEPT:
                load.texts.append("".join(said))
        except EngineError as cause:
            load.error = str(cause)
            await asyncio.sleep(_PAUSE_S)
