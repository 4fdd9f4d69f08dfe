"""The target's glibc when the spec leaves it open: the oldest that admits a closure.

What an older glibc admits, a newer one admits as well, so the floors are cut in halves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bundler.build.tags import glibc_of
from bundler.domain.lock import LockedWheel
from bundler.domain.target import Target, WantedTarget
from bundler.errors import ResolveError

Closure = tuple[LockedWheel, ...]


def at_lowest_floor(
    ask: Callable[[Target], Closure], wanted: WantedTarget, floors: Sequence[str]
) -> tuple[Target, Closure]:
    """Find the lowest of `floors` (rising) for which `ask` has a closure.

    Raises:
        ResolveError: none has one, or the failure is not about missing wheels.
    """
    targets = [wanted.with_glibc(floor) for floor in floors]
    found = _asked(ask, targets[0], last=len(targets) == 1)
    if found is not None:
        return targets[0], found
    low, high = 1, len(targets) - 1
    # Raises when no glibc helps, as with a package that exists as source alone.
    best = ask(targets[high])
    needed = _minor(glibc_of((wheel.filename for wheel in best), targets[high]))
    # Most engines' tags are at the low end; else what the newest floor's closure asks for would do.
    likely = next(number for number in range(low, high + 1) if _minor(floors[number]) >= needed)
    for probe in (low, likely):
        if low <= probe < high:
            low, high, best = _narrowed(ask, targets, probe, (low, high, best))
    while low < high:
        low, high, best = _narrowed(ask, targets, (low + high) // 2, (low, high, best))
    return targets[high], best


def _narrowed(
    ask: Callable[[Target], Closure],
    targets: Sequence[Target],
    probe: int,
    known: tuple[int, int, Closure],
) -> tuple[int, int, Closure]:
    """What is known after one more question: lowest possible floor, lowest proved, its closure."""
    low, high, best = known
    found = _asked(ask, targets[probe], last=False)
    return (probe + 1, high, best) if found is None else (low, probe, found)


def _asked(ask: Callable[[Target], Closure], target: Target, *, last: bool) -> Closure | None:
    try:
        return ask(target)
    except ResolveError as error:
        if last or not error.without_wheel:
            raise
        return None


def _minor(glibc: str) -> int:
    return int(glibc.split(".")[1])
