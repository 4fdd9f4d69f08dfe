"""The search on systems whose limit is known."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from bundler.accept.search import REPLICAS, Found, Search
from bundler.domain.verdict import Verdict

PASS, FAIL, HOLD = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE


def searched(
    system: Callable[[int, int], Verdict], lowest: int = 1, highest: int = 512
) -> tuple[Found, list[int]]:
    """Run a search on `system(level, number of the measurement)`; gives the order of levels too."""
    search = Search(lowest, highest)
    order: list[int] = []
    while (level := search.next()) is not None:
        order.append(level)
        search.take(level, system(level, len(order)))
        assert len(order) < 60
    return search.found(), order


def up_to(limit: int) -> Callable[[int, int], Verdict]:
    return lambda level, number: PASS if level <= limit else FAIL


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 17, 24, 25, 31, 38])
def test_a_sharp_edge_is_found_to_the_user(limit: int) -> None:
    found, order = searched(up_to(limit))
    assert (found.verdict, found.best, found.edge) == (PASS, limit, limit + 1)
    assert order.count(limit) == order.count(limit + 1) == REPLICAS
    assert f"passes at {limit} and fails at {limit + 1}" in found.reason


@pytest.mark.parametrize("limit", [50, 100, 250, 511])
def test_a_high_edge_is_found_to_a_twentieth(limit: int) -> None:
    found, _ = searched(up_to(limit))
    assert found.verdict is PASS
    assert found.best is not None
    assert found.edge is not None
    assert found.best <= limit < found.edge
    assert found.edge - found.best <= max(1, found.best // 20)


def test_it_doubles_bisects_and_lets_both_sides_of_the_edge_take_turns() -> None:
    _, order = searched(up_to(11))
    assert order == [1, 2, 4, 8, 16, 12, 10, 11, 12, 11]


def test_a_system_that_stands_everything_passes_at_the_highest_level() -> None:
    found, order = searched(up_to(10_000), highest=100)
    assert (found.verdict, found.best, found.edge) == (PASS, 100, None)
    assert order.count(100) == REPLICAS
    assert max(order) == 100


def test_a_system_that_stands_nothing_fails_after_two_measurements() -> None:
    found, order = searched(up_to(0), lowest=4)
    assert (found.verdict, found.best, found.edge) == (FAIL, None, 4)
    assert order == [4, 4]


def test_a_system_that_cannot_be_judged_is_not_said_to_fail() -> None:
    found, _ = searched(lambda level, number: HOLD)
    assert found.verdict is HOLD
    assert found.best is None


def test_a_level_that_is_not_shown_to_pass_ends_the_way_up() -> None:
    found, _ = searched(lambda level, number: PASS if level <= 8 else HOLD)
    assert (found.verdict, found.best, found.edge) == (PASS, 8, 9)
    assert "is not shown to pass at 9" in found.reason


def test_an_edge_that_passes_the_second_time_is_not_replicated() -> None:
    seen: dict[int, int] = {}

    def system(level: int, number: int) -> Verdict:
        seen[level] = seen.get(level, 0) + 1
        return PASS if level <= 8 or (level == 9 and seen[level] == 2) else FAIL

    found, _ = searched(system)
    assert found.verdict is HOLD
    assert found.best == 8
    assert "passed once and missed once at 9" in found.reason


def test_a_last_pass_that_fails_the_second_time_is_not_replicated() -> None:
    seen: dict[int, int] = {}

    def system(level: int, number: int) -> Verdict:
        seen[level] = seen.get(level, 0) + 1
        return PASS if level < 8 or (level == 8 and seen[level] == 1) else FAIL

    found, _ = searched(system)
    assert found.verdict is HOLD
    assert found.best == 4  # the highest that was never seen to fail
    assert "does not replicate" in found.reason


def test_a_search_that_is_cut_off_keeps_what_it_has() -> None:
    search = Search(1, 64)
    for _ in range(4):
        level = search.next()
        assert level is not None
        search.take(level, up_to(5)(level, 0))
    found = search.found(cut="the budget of 60 s is used up")
    assert (found.verdict, found.best, found.edge) == (HOLD, 4, 8)
    assert found.reason == "the budget of 60 s is used up; passed at 4, not at 8"
    assert Search(1, 4).found(cut="interrupted").reason == "interrupted; no level passed yet"


def test_noise_makes_a_search_doubtful_far_more_often_than_wrong() -> None:
    """Judged wrongly one time in twenty on either side of the limit, as the bounds allow at worst."""
    wrong = doubtful = 0
    for run in range(300):
        chance = random.Random(run)

        def noisy(level: int, number: int, chance: random.Random = chance) -> Verdict:
            right = up_to(40)(level, number)
            return right if chance.random() > 0.05 else (FAIL if right is PASS else PASS)

        found, _ = searched(noisy)
        wrong += found.verdict is PASS and found.best is not None and found.best > 42
        doubtful += found.verdict is HOLD
    assert wrong <= 0.05 * 300
    assert doubtful >= wrong


@pytest.mark.parametrize(("low", "high"), [(0, 4), (8, 4)])
def test_levels_that_make_no_search_are_refused(low: int, high: int) -> None:
    with pytest.raises(ValueError, match="no levels"):
        Search(low, high)
