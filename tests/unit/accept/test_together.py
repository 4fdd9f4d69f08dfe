"""Users over several services, and what may be put in use of a comparison."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.accept.ab import why_not
from bundler.accept.together import levels_for, split
from bundler.domain.spec import Acceptance
from bundler.domain.verdict import Verdict
from bundler.errors import SpecError
from tests.fakes.ab_record import comparison

ARMS = ({"kernel": "triton"}, {"kernel": "deepgemm"})


@given(st.integers(1, 5000), st.integers(1, 9))
def test_users_are_split_evenly(users: int, services: int) -> None:
    shares = split(users, services)
    assert sum(shares) == users
    assert max(shares) - min(shares) <= 1
    assert list(shares) == sorted(shares, reverse=True)


def test_every_service_has_a_user_or_the_level_is_left_out() -> None:
    assert levels_for(Acceptance(concurrency=(1, 8, 25, 8)), 2) == (8, 25)
    with pytest.raises(SpecError, match="cannot be split"):
        levels_for(Acceptance(concurrency=(1,)), 2)
    with pytest.raises(SpecError, match="at a rate"):
        levels_for(Acceptance(concurrency=(8,), arrivals="poisson", rate=2), 2)


def test_a_winner_is_applied_and_nothing_else() -> None:
    assert why_not(comparison(ARMS)) == ("", None)
    assert comparison(ARMS, 0.5).keep == "A"
    assert "no difference" in why_not(comparison(ARMS, 1.05))[0]
    assert "undecided" in why_not(comparison(ARMS, run={"A": {"void": "does not start"}}))[0]
    one_wrong = comparison(ARMS, run={"A": {"wrong": "says 4"}})
    assert one_wrong.keep == "B"
    assert "answers wrong" in why_not(one_wrong)[0]
    for arm, verdict, stands in (
        ("A", Verdict.NOT_COMPARABLE, Verdict.NOT_COMPARABLE),
        ("B", Verdict.NOT_COMPARABLE, Verdict.NOT_COMPARABLE),
        ("B", Verdict.FAIL, Verdict.FAIL),
        ("A", Verdict.FAIL, None),
        ("B", Verdict.INCONCLUSIVE, None),
    ):
        assert why_not(comparison(ARMS, run={arm: {"verdict": verdict}}))[1] is stands
