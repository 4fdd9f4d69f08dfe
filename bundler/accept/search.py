"""Which concurrency to measure next, and what was found. Pure: verdicts in, levels out.

Double until a level does not pass, bisect between, then measure both sides of the edge again, last pass
and first miss in turn. Every level may be judged wrongly one time in twenty; an edge that was found twice
on both sides was hardly found by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bundler.domain.verdict import Verdict

REPLICAS = 2
# A level one twentieth higher cannot be told from this one: machines differ more from day to day.
_RESOLUTION = 20


@dataclass(frozen=True)
class Found:
    """What a search shows: the highest level that passes, and the lowest above it that does not."""

    verdict: Verdict
    best: int | None
    edge: int | None
    reason: str


@dataclass
class Search:
    """The state of a search between two levels, both included.

    `verdicts` are those of each level in the order in which they were taken.

    Raises:
        ValueError: the lowest level is over the highest, or below 1.
    """

    lowest: int
    highest: int
    verdicts: dict[int, list[Verdict]] = field(default_factory=dict)
    _last: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.lowest <= self.highest:
            raise ValueError(f"no levels from {self.lowest} to {self.highest}")

    def take(self, level: int, verdict: Verdict) -> None:
        """Note a measurement's verdict."""
        self.verdicts.setdefault(level, []).append(verdict)
        self._last = level

    def next(self) -> int | None:
        """The level to measure next; None when the search is over."""
        step = self._approach()
        if step is not None:
            return step
        if self._torn:
            return None
        # The side that was not measured last, so that the two take turns: ABAB.
        edge = [level for level in (self.passed, self.missed) if level is not None]
        again = [level for level in edge if len(self.verdicts[level]) < REPLICAS]
        return min(
            again,
            key=lambda level: (len(self.verdicts[level]), level == self._last),
            default=None,
        )

    @property
    def passed(self) -> int | None:
        """The highest level below every miss that passed the first time."""
        good = [
            level
            for level, told in self.verdicts.items()
            if told[0] is Verdict.PASS and (self.missed is None or level < self.missed)
        ]
        return max(good, default=None)

    @property
    def missed(self) -> int | None:
        """The lowest level that did not pass the first time."""
        bad = [level for level, told in self.verdicts.items() if told[0] is not Verdict.PASS]
        return min(bad, default=None)

    @property
    def _torn(self) -> bool:
        """Whether a side of the edge was judged both ways: more of the same would not mend it."""
        edge = [self.verdicts[level] for level in (self.passed, self.missed) if level is not None]
        return any(len({verdict is Verdict.PASS for verdict in told}) > 1 for told in edge)

    def _approach(self) -> int | None:
        """Double or bisect; None when the edge is as narrow as it gets."""
        passed, missed = self.passed, self.missed
        if missed is None:
            if passed is None:
                return self.lowest
            return min(2 * passed, self.highest) if passed < self.highest else None
        if passed is None or missed - passed <= max(1, passed // _RESOLUTION):
            return None
        return (passed + missed) // 2

    def found(self, *, cut: str = "") -> Found:
        """What the measurements show so far.

        Args:
            cut: why the search ended before its end, empty when it did not.
        """
        passed, missed = self.passed, self.missed
        if cut:
            return Found(Verdict.INCONCLUSIVE, self._sure, missed, f"{cut}; {self._so_far()}")
        if missed is not None and self._both_ways(missed):
            why = f"passed once and missed once at {missed}: the edge does not replicate"
            return Found(Verdict.INCONCLUSIVE, self._sure, missed, why)
        if passed is not None and self._both_ways(passed):
            why = f"passed once and missed once at {passed}: the edge does not replicate"
            return Found(Verdict.INCONCLUSIVE, self._sure, passed, why)
        if passed is None:
            return self._nothing_passes()
        if missed is None:
            why = f"passes at {passed}, the highest level that was asked for"
            return Found(Verdict.PASS, passed, None, why)
        failed = all(verdict is Verdict.FAIL for verdict in self.verdicts[missed])
        how = "fails" if failed else "is not shown to pass"
        why = f"passes at {passed} and {how} at {missed}, each measured {REPLICAS} times"
        return Found(Verdict.PASS, passed, missed, why)

    def _nothing_passes(self) -> Found:
        told = self.verdicts.get(self.lowest, [])
        if told and all(verdict is Verdict.FAIL for verdict in told):
            why = f"fails at {self.lowest} already, the lowest level that was asked for"
            return Found(Verdict.FAIL, None, self.lowest, why)
        why = f"not shown to pass even at {self.lowest}"
        return Found(Verdict.INCONCLUSIVE, None, self.missed, why)

    @property
    def _sure(self) -> int | None:
        """The highest level of which every measurement passed, below every one that failed."""
        bad = [x for x, told in self.verdicts.items() if Verdict.FAIL in told]
        good = [
            level
            for level, told in self.verdicts.items()
            if set(told) == {Verdict.PASS} and level < min(bad, default=level + 1)
        ]
        return max(good, default=None)

    def _so_far(self) -> str:
        sure, missed = self._sure, self.missed
        low = "no level passed yet" if sure is None else f"passed at {sure}"
        return low if missed is None else f"{low}, not at {missed}"

    def _both_ways(self, level: int) -> bool:
        return len({verdict is Verdict.PASS for verdict in self.verdicts[level]}) > 1
