"""When requests are sent: closed loop (a user sends after the answer) or open loop (at a rate)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from bundler.domain.spec import Acceptance


def due_times(plan: Acceptance, count: int, seed: str) -> Iterator[float | None]:
    """When each of `count` requests is to be sent, seconds from the start; None: as soon as one can be.

    Poisson arrivals have exponential gaps. They are stretched so that the last comes at count / rate: the
    offered rate is then the one asked for and not a draw around it, as `vllm bench serve` does it.
    """
    if plan.arrivals == "closed" or plan.rate is None:
        yield from (None for _ in range(count))
        return
    chance = random.Random(f"{seed}/arrivals")  # noqa: S311 - a schedule, no secret
    at, places = 0.0, []
    for _ in range(count):
        at += chance.expovariate(1.0)
        places.append(at)
    for place in places:
        yield _at_rate(place * count / at, plan.rate, plan.ramp_s or 0.0)


def _at_rate(number: float, rate: float, ramp_s: float) -> float:
    """When the `number`-th request is due if the rate rises in a straight line over `ramp_s`."""
    in_ramp = rate * ramp_s / 2
    if number < in_ramp:
        return math.sqrt(2 * ramp_s * number / rate)
    return ramp_s / 2 + number / rate


def think_times(plan: Acceptance, seed: str) -> Iterator[float]:
    """Seconds that a user waits after each answer: exponential, so that users do not march in step."""
    chance = random.Random(f"{seed}/think")  # noqa: S311 - a schedule, no secret
    while True:
        yield chance.expovariate(1 / plan.think_time_s) if plan.think_time_s else 0.0
