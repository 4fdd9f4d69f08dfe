from __future__ import annotations

import pytest

from bundler.accept.validity import gpu_gate, level_gates
from bundler.domain.facts import LevelMetrics, RequestSample, ServerWindow
from bundler.domain.spec import Acceptance
from bundler.domain.telemetry import GpuObservation
from bundler.domain.verdict import Check, Gate, Verdict, overall
from tests.unit.accept.levels import failed, level, sample

PLAN = Acceptance()


def gates(
    metrics: LevelMetrics, samples: tuple[RequestSample, ...], plan: Acceptance = PLAN
) -> dict[str, Gate]:
    return {gate.name: gate for gate in level_gates(plan, metrics, samples)}


def with_server(**counted: object) -> dict[str, Gate]:
    metrics, samples = level(*[sample()] * 20)
    server = ServerWindow.model_validate({"requests": 20, "ttft_ms_mean": 95.0} | counted)
    return gates(metrics.model_copy(update={"server": server}), samples)


def test_a_level_that_nobody_answered_has_no_gates() -> None:
    assert gates(*level(failed())) == {}


def test_what_nothing_is_known_of_is_neither_good_nor_bad() -> None:
    seen = gates(*level(*[sample()] * 20))
    states = {name: gate.state for name, gate in seen.items()}
    assert states == {
        "token counts": "ok", "output length": "ok", "stream end": "ok", "client lag": "unknown",
        "prefix cache": "unknown", "server agreement": "unknown", "warm-up": "unknown", "cold start": "ok",
        "load": "ok",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lag", "gap", "state"),
    [(4.9, 10.0, "ok"), (5.1, 10.0, "failed"), (9.0, 100.0, "ok"), (11.0, 100.0, "failed")],
)
def test_lag_may_be_a_tenth_of_a_gap_and_5_ms_at_least(lag: float, gap: float, state: str) -> None:
    metrics, samples = level(*[sample(itl_ms=(gap,) * 31)] * 20)
    metrics = metrics.model_copy(update={"client_lag_ms_p99": lag})
    assert gates(metrics, samples)["client lag"].state == state


@pytest.mark.parametrize(("hits", "state"), [(40, "ok"), (90, "failed")])
def test_cached_prompts_are_known_by_counters_or_by_answers(hits: int, state: str) -> None:
    assert with_server(prefix_queries=1280, prefix_hits=hits)["prefix cache"].state == state
    cached = level(*[sample(cached_tokens=hits // 20)] * 20)
    assert gates(*cached)["prefix cache"].state == ("ok" if hits // 20 <= 3 else "failed")


def test_the_template_may_be_cached() -> None:
    metrics, samples = level(*[sample(cached_tokens=16)] * 20)
    metrics = metrics.model_copy(update={"template_tokens": 20.0})
    assert gates(metrics, samples)["prefix cache"].state == "ok"


@pytest.mark.parametrize(
    ("counted", "reason"),
    [
        ({}, ""),
        ({"requests": 27}, "the engine answered 27 requests while we sent 20: others use it"),
        ({"requests": 12}, "its counters are not about our requests"),
        ({"ttft_ms_mean": 50.0}, "something between client and engine takes the time"),
        ({"in_flight_mean": 4.0, "polls": 5}, "4.0 requests in flight there, 1.0 here"),
        ({"in_flight_mean": 4.0, "polls": 4}, ""),
    ],
)
def test_the_servers_counters_must_be_ours(counted: dict[str, object], reason: str) -> None:
    gate = with_server(**counted)["server agreement"]
    assert reason in gate.reason
    assert gate.state == ("failed" if reason else "ok")


@pytest.mark.parametrize(
    ("waves", "state"),
    [((), "unknown"), ((100.0,), "unknown"), ((300.0, 100.0, 105.0), "ok"), ((100.0, 120.0), "failed")],
)  # fmt: skip
def test_the_last_two_waves_of_the_warm_up_must_agree(waves: tuple[float, ...], state: str) -> None:
    metrics, samples = level(*[sample()] * 20)
    gate = gates(metrics.model_copy(update={"warm_up_ttft_ms": waves}), samples)["warm-up"]
    assert gate.state == state


def test_a_first_wave_that_takes_thrice_as_long_is_cold() -> None:
    slow = [sample(started_s=0.1 * n, e2e_ms=1230.0) for n in range(4)]
    rest = [sample(started_s=1 + 0.1 * n) for n in range(16)]
    assert gates(*level(*slow, *rest))["cold start"].state == "failed"


def steady(count: int, users: int, pause_s: float) -> list[RequestSample]:
    """Users who send at once again, but for a pause."""
    turn = 1.0 + pause_s
    return [sample(started_s=(n // users) * turn, e2e_ms=1000.0) for n in range(count)]


@pytest.mark.parametrize(("pause_s", "state"), [(0.0, "ok"), (0.04, "ok"), (0.1, "failed")])
def test_in_the_steady_part_nearly_all_users_are_in_flight(pause_s: float, state: str) -> None:
    metrics, samples = level(*steady(40, 4, pause_s), concurrency=4, duration_s=10 + 9 * pause_s)
    assert gates(metrics, samples)["load"].state == state


def test_in_open_loop_nobody_asks_for_a_number_in_flight() -> None:
    plan = Acceptance(arrivals="poisson", rate=2.0)
    assert "load" not in gates(*level(*[sample()] * 20), plan)


def look(**changes: object) -> GpuObservation:
    values: dict[str, object] = {"t_s": 0.0, "gpu": 0, "power_limit_w": 700.0, "processes": (7,)}
    return GpuObservation.model_validate(values | changes)


@pytest.mark.parametrize(
    ("later", "reason"),
    [
        ({}, ""),
        ({"throttle_reasons": ("power cap",)}, ""),
        ({"throttle_reasons": ("hardware thermal slowdown",)}, "slowed in 1 of 2 looks"),
        ({"power_limit_w": 500.0}, "the power limit of GPU 0 was changed (500 to 700 W)"),
        ({"processes": (7, 9)}, "GPU 0 was also used by process 9"),
    ],
)
def test_a_gpu_is_ours_alone_and_unslowed(later: dict[str, object], reason: str) -> None:
    metrics, _ = level(sample())
    gate = gpu_gate(metrics, [look(), look(t_s=1.0, **later)])
    assert reason in gate.reason
    assert gate.state == ("failed" if reason else "ok")


def test_a_process_that_was_there_before_is_another_when_ours_are_known() -> None:
    metrics, _ = level(sample())
    assert gpu_gate(metrics, [look()], frozenset({8})).state == "failed"
    assert gpu_gate(metrics, [], frozenset({8})).state == "unknown"


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        (("PASS", "INCONCLUSIVE", "NOT COMPARABLE"), "NOT COMPARABLE"),
        (("NOT COMPARABLE", "FAIL"), "FAIL"),
        (("PASS", "INCONCLUSIVE"), "INCONCLUSIVE"),
        ((), "INCONCLUSIVE"),
        (("PASS",), "PASS"),
    ],
)
def test_a_flaw_is_told_before_indecision_and_after_failure(
    verdicts: tuple[str, ...], whole: str
) -> None:
    checks = tuple(
        Check(service="m", concurrency=1, what="x", verdict=Verdict(one), measured="")
        for one in verdicts
    )
    assert overall(checks).value == whole
