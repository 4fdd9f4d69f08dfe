from __future__ import annotations

from itertools import islice, pairwise

import pytest
from pydantic import ValidationError

from bundler.accept.arrivals import due_times, think_times
from bundler.accept.measuring import Arrivals, gaps
from bundler.accept.prompts import prompt
from bundler.accept.watching import Watch, figures
from bundler.domain.spec import Acceptance
from bundler.ports import Delta


def due(count: int, **plan: object) -> list[float]:
    acceptance = Acceptance.model_validate({"arrivals": "poisson", "rate": 5.0} | plan)
    return [at for at in due_times(acceptance, count, "s") if at is not None]


def test_in_closed_loop_nothing_is_due_at_a_time() -> None:
    assert list(due_times(Acceptance(), 3, "s")) == [None] * 3


def test_poisson_arrivals_have_the_rate_asked_for_and_gaps_that_differ() -> None:
    at = due(1000)
    assert at == sorted(at)
    assert at[-1] == pytest.approx(200)
    gap = [later - sooner for sooner, later in pairwise(at)]
    # Of exponential gaps 63 % are below their mean.
    assert sum(one < 0.2 for one in gap) / len(gap) == pytest.approx(0.632, abs=0.05)
    assert at == due(1000)


def test_a_ramp_sends_half_as_much_while_it_lasts() -> None:
    at = due(1000, ramp_s=40.0)
    assert sum(one < 40 for one in at) == pytest.approx(100, abs=30)
    assert at[-1] == pytest.approx(220)


def test_pauses_have_the_mean_asked_for() -> None:
    pauses = list(islice(think_times(Acceptance(think_time_s=2.0), "s"), 4000))
    assert sum(pauses) / 4000 == pytest.approx(2.0, rel=0.08)
    assert next(think_times(Acceptance(), "s")) == 0


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"arrivals": "poisson"}, "needs a rate"),
        ({"rate": 3}, "in closed loop the engine sets it"),
        ({"arrivals": "poisson", "rate": 3, "think_time_s": 1}, "wait for nobody"),
    ],
)
def test_arrivals_that_contradict_themselves_are_refused(
    plan: dict[str, object], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        Acceptance.model_validate(plan)


def arrived(*chunks: tuple[float, int | None], output_tokens: int) -> Arrivals:
    arrivals = Arrivals()
    for at, count in chunks:
        arrivals.take(Delta(at=at, text="a", output_tokens=count))
    arrivals.take(Delta(at=9.0, output_tokens=output_tokens))
    return arrivals


def test_a_chunk_of_several_tokens_shares_its_gap_between_them() -> None:
    found = gaps(arrived((1.0, 2), (1.3, 5), (1.4, 6), output_tokens=6), 6)
    assert found.ms == pytest.approx((100.0, 100.0, 100.0, 100.0))
    assert (found.per_token, found.first_tokens) == (True, 2)


@pytest.mark.parametrize(
    ("counts", "total", "per_token"),
    [
        ((None, None, None), 3, True),
        ((None, None, None), 7, False),
        ((1, None, 3), 7, False),
        ((1, 1, 3), 7, False),
        ((1, 2, 2**30), 2**30, False),
    ],
)
def test_counts_that_cannot_be_leave_chunk_gaps(
    counts: tuple[int | None, ...], total: int, per_token: bool
) -> None:
    chunks = tuple((1.0 + place, count) for place, count in enumerate(counts))
    found = gaps(arrived(*chunks, output_tokens=total), 100)
    assert found.ms == (1000.0, 1000.0)
    assert found.per_token is per_token


@pytest.mark.parametrize(("language", "ascii_only"), [("english", True), ("korean", False)])
def test_prompts_keep_to_their_language(language: str, ascii_only: bool) -> None:
    words = prompt("s", 50, language).split()  # type: ignore[arg-type]
    assert len(words) == 51
    assert all(word.isascii() for word in words[1:]) is ascii_only
    assert any(word.isascii() for word in words[1:]) is ascii_only


def test_counters_of_several_engines_are_summed_and_nonsense_is_left_out() -> None:
    text = (
        "# HELP x\n"
        'vllm:prefix_cache_hits_total{engine="0",model_name="a}b"} 3.0\n'
        'vllm:prefix_cache_hits_total{engine="1"} 4.0 1700000000\n'
        'vllm:prefix_cache_hits_total_created{engine="0"} 1.7e9\n'
        'vllm:prefix_cache_queries_total{engine="0"} NaN\n'
        "vllm:num_requests_running\nllamacpp:requests_processing 2\n"
    )
    assert figures(text) == {"hits": 7.0, "in_flight": 2.0}
    assert figures("\0" * 1000 + "{") == {}


def test_a_counter_that_fell_says_nothing() -> None:
    watch = Watch(before={"requests": 9, "ttft_s": 3.0}, after={"requests": 2, "ttft_s": 1.0})
    assert watch.server is not None
    assert watch.server.requests is watch.server.ttft_ms_mean is None
    assert Watch(before={"hits": 1}).server is None
