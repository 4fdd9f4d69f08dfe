"""The glibc of a target that does not state its own."""

from __future__ import annotations

import pytest

from bundler.build.floor import at_lowest_floor
from bundler.domain.lock import LockedWheel
from bundler.domain.target import Target, WantedTarget
from bundler.errors import ResolveError

FLOORS = ("2.28", *(f"2.{minor}" for minor in range(31, 41)))
WANTED = WantedTarget(python="3.12")


class Index:
    """Has a closure from `floor` on, whose newest wheels carry the tag of `tag`."""

    def __init__(self, floor: int, tag: int | None = None) -> None:
        self.floor = floor
        self.tag = floor if tag is None else tag
        self.asked: list[str] = []

    def __call__(self, target: Target) -> tuple[LockedWheel, ...]:
        self.asked.append(target.glibc)
        minor = int(target.glibc.split(".")[1])
        if minor < self.floor:
            raise ResolveError("no wheel", without_wheel=("x",))
        tag = f"cp38-abi3-manylinux_2_{min(self.tag, minor)}_x86_64"
        name = f"x-1-{tag}.whl"
        return (LockedWheel(name="x", version="1", filename=name, url="u", sha256="0" * 64),)


@pytest.mark.parametrize("floor", [5, 17, 28])
def test_2_28_is_tried_first_and_nothing_else_when_it_does(floor: int) -> None:
    index = Index(floor)
    target, _ = at_lowest_floor(index, WANTED, FLOORS)
    assert (target.glibc, index.asked) == ("2.28", ["2.28"])


@pytest.mark.parametrize("floor", range(29, 41))
@pytest.mark.parametrize("tag", [None, 40])
def test_the_lowest_floor_is_found_in_few_questions(floor: int, tag: int | None) -> None:
    index = Index(floor, tag)
    target, closure = at_lowest_floor(index, WANTED, FLOORS)
    assert target.glibc == f"2.{max(floor, 31)}"
    assert closure == index(target)
    assert len(index.asked) <= 8


def test_the_low_end_is_tried_after_the_newest() -> None:
    index = Index(31)
    at_lowest_floor(index, WANTED, FLOORS)
    assert index.asked == ["2.28", "2.40", "2.31"]


def test_then_what_the_tags_ask_for() -> None:
    index = Index(34)
    at_lowest_floor(index, WANTED, FLOORS)
    assert index.asked[:4] == ["2.28", "2.40", "2.31", "2.34"]


def test_what_no_glibc_helps_is_asked_twice_and_no_more() -> None:
    index = Index(99)
    with pytest.raises(ResolveError, match="no wheel"):
        at_lowest_floor(index, WANTED, FLOORS)
    assert index.asked == ["2.28", "2.40"]


def test_a_failure_that_is_not_about_wheels_is_not_repeated() -> None:
    asked = []

    def ask(target: Target) -> tuple[LockedWheel, ...]:
        asked.append(target.glibc)
        raise ResolveError("a contradiction")

    with pytest.raises(ResolveError, match="contradiction"):
        at_lowest_floor(ask, WANTED, FLOORS)
    assert asked == ["2.28"]


def test_a_resolver_for_this_host_alone_has_one_floor() -> None:
    index = Index(40)
    with pytest.raises(ResolveError, match="no wheel"):
        at_lowest_floor(index, WANTED, ("2.36",))
    assert index.asked == ["2.36"]
