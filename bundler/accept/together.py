"""Several services under load at the same time, as one big model's users would be spread over small ones.

So many users in sum, split evenly; all services begin to be measured at the same moment, and one that has
sent its measured requests goes on sending, unmeasured, until the last is done. Each figure is thus of a service
whose neighbours were loaded throughout, and the rates may be added.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from bundler.accept.ab import level_figures
from bundler.accept.judge import judge, sample_key
from bundler.accept.load import Level, LevelRun, Meeting, run_level
from bundler.accept.metrics import level_metrics
from bundler.domain.facts import LevelMetrics, ServiceState
from bundler.domain.spec import Acceptance
from bundler.domain.verdict import Check
from bundler.errors import SpecError
from bundler.ports import ChatClient, Clock, Progress


@dataclass(frozen=True)
class Together:
    """What was measured: levels of all services, figures by `service@users metric`, and the checks."""

    levels: tuple[LevelMetrics, ...]
    figures: dict[str, float]
    checks: tuple[Check, ...]


def split(users: int, services: int) -> tuple[int, ...]:
    """So many users over so many services, evenly; the first ones take what is left over."""
    each, left = divmod(users, services)
    return tuple(each + (place < left) for place in range(services))


def levels_for(plan: Acceptance, services: int) -> tuple[int, ...]:
    """The plan's numbers of users that are enough to load every service.

    Raises:
        SpecError: none is, or the plan's requests come at a rate and not from users.
    """
    if plan.arrivals != "closed":
        raise SpecError(
            "the plan's requests come at a rate, and users are what is split over several services",
            hint="Build the bundle with acceptance.arrivals: closed.",
        )
    found = tuple(users for users in dict.fromkeys(plan.concurrency) if users >= services)
    if not found:
        raise SpecError(
            f"the plan's {max(plan.concurrency)} users cannot be split over {services} services",
            hint="Build the bundle with more in acceptance.concurrency.",
        )
    return found


def measure_together(
    states: Sequence[ServiceState],
    plan: Acceptance,
    users: Sequence[int],
    chat: ChatClient,
    clock: Clock,
    progress: Progress,
) -> Together:
    """Load running services at the same time, one level of users after another, and judge each share.

    Args:
        states: the services, all of them running.
        plan: how requests look and what each must meet.
        users: in sum, of each level; at least one for each service.
        chat: speaks to the engines.
        clock: for the requests' times.
        progress: shows the requests.
    """
    salt = f"{clock.now()}/{clock.monotonic()}"
    measured: list[LevelMetrics] = []
    figures: dict[str, float] = {}
    checks: list[Check] = []
    for count in users:
        shares = split(count, len(states))
        levels = [
            Level(state.service, share, _shared(plan, share, count), f"{salt}/{count}")
            for state, share in zip(states, shares, strict=True)
        ]
        runs = asyncio.run(_all(states, levels, chat, clock, progress))
        found = [
            level_metrics(level.model, level.concurrency, run, level.plan)
            for level, run in zip(levels, runs, strict=True)
        ]
        for level, metrics, run in zip(levels, found, runs, strict=True):
            key = sample_key(level.model, level.concurrency)
            checks += judge(level.plan, [metrics], {key: run.samples})[0]
        measured += found
        figures |= level_figures(count, found)
    return Together(tuple(measured), figures, tuple(checks))


def _shared(plan: Acceptance, share: int, users: int) -> Acceptance:
    """The plan of one service's share: its part of the requests, and no range of a whole level."""
    requests = max(1, round(plan.requests_at(users) * share / users))
    return plan.model_copy(update={"concurrency": (share,), "requests": requests, "expected": ()})


async def _all(
    states: Sequence[ServiceState],
    levels: Sequence[Level],
    chat: ChatClient,
    clock: Clock,
    progress: Progress,
) -> list[LevelRun]:
    meeting = Meeting(len(levels))

    async def one(state: ServiceState, level: Level) -> LevelRun:
        async with chat.session(state.url) as session:
            return await run_level(
                session=session, level=level, clock=clock, progress=progress, meeting=meeting
            )

    tasks = [
        asyncio.ensure_future(one(state, level))
        for state, level in zip(states, levels, strict=True)
    ]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
