"""What is seen beside the load: parsing, bounding, and the threads that look."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from bundler import wiring
from bundler.accept.exposition import values
from bundler.accept.telemetry import (
    Sampler,
    Series,
    Watch,
    merge_engines,
    merge_gpus,
    observation,
)
from bundler.adapters.chat_openai import OpenAIChat
from bundler.adapters.engine_llamacpp.program import METRIC_NAMES as LLAMA_CPP
from bundler.adapters.engine_vllm.metrics import METRIC_NAMES as VLLM
from bundler.cli.loadfigures import LoadFigures
from bundler.domain.telemetry import EngineObservation, GpuObservation
from bundler.instruments import ProcessUse
from tests.fakes.oracle_engine import serving
from tests.unit.accept.test_acceptance_pipeline import state

# As vLLM 0.32 with two engine processes and llama-server b10434 answer.
VLLM_TEXT = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 9.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.5
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 80.0
vllm:prefix_cache_queries_created{engine="0",model_name="m"} 1.79e+09
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 0.0
vllm:num_preemptions_total{engine="0",model_name="m"} 2.0
vllm:generation_tokens_total{engine="0",model_name="m"} 7.2e+01
"""
LLAMA_TEXT = """llamacpp:prompt_tokens_total 50
llamacpp:prompt_tokens_cached_total 14
llamacpp:tokens_predicted_total 8
llamacpp:requests_processing 2
llamacpp:requests_deferred 5
"""


def test_vllm_of_several_processes_is_summed_and_the_fullest_cache_counts() -> None:
    seen = observation(VLLM_TEXT, VLLM, 1.5, "m")
    assert seen == EngineObservation(
        t_s=1.5, service="m", kv_usage=0.5, running=7, waiting=1, preemptions=2, generation_tokens=72,
        prefix_hits=0, prefix_queries=80,
    )  # fmt: skip


def test_old_names_and_llama_cpp() -> None:
    old = observation("vllm:gpu_cache_usage_perc 0.125\n", VLLM, 0, "m")
    assert old is not None
    assert old.kv_usage == 0.125
    seen = observation(LLAMA_TEXT, LLAMA_CPP, 0, "m")
    assert seen is not None
    assert (seen.running, seen.waiting, seen.generation_tokens, seen.prefix_hits) == (2, 5, 8, 14)
    assert (seen.kv_usage, seen.preemptions) == (None, None)
    assert observation("", LLAMA_CPP, 0, "m") is None
    assert observation("<html>Not found</html>", VLLM, 0, "m") is None


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("x 1", [1.0]),
        ("x 1 1700000000", [1.0]),
        ('x{a="} 9",b="\\" } 8"} 2.5', [2.5]),
        ("x{} 3", [3.0]),
        ("xy 1", None),
        ("x", None),
        ("x{a=1", None),
        ('x{a="1} 4', None),
        ("x NaN", None),
        ("x +Inf", None),
        ("x 1e999", None),
        ("x 1 2 3", None),
        ("x one", None),
        ("# x 1", None),
        ("x{a}5", None),
        ("x " + "9" * 20_000, None),
        ("\x00\ud800x 1", None),
    ],
)
def test_a_line_gives_its_number_or_nothing(line: str, found: list[float] | None) -> None:
    assert values(f"y 7\n{line}\ny 8", ["x", "y"]) == {
        "y": [7.0, 8.0],
        **({"x": found} if found else {}),
    }


def test_endless_metrics_are_read_for_a_while_only() -> None:
    assert len(values("x 1\n" * 1_000_000, ["x"])["x"]) == 20_000


def gpu(t_s: float, **changes: object) -> GpuObservation:
    return GpuObservation.model_validate({"t_s": t_s, "gpu": 0, **changes})


def test_a_series_stays_short_and_loses_no_peak() -> None:
    series = Series(merge_gpus, most=8)
    for number in range(1000):
        why = ("power cap",) if number == 333 else ()
        series.add(gpu(number, power_w=999 if number == 777 else 1, throttle_reasons=why,
                       sm_clock_mhz=5 if number == 12 else 1980))  # fmt: skip
    points = series.all()
    assert len(points) <= 8
    times = [point.t_s for point in points]
    assert times == sorted(times)
    assert times[-1] == 999
    assert max(point.power_w or 0 for point in points) == 999
    assert min(point.sm_clock_mhz or 0 for point in points) == 5
    assert [point.throttle_reasons for point in points].count(("power cap",)) == 1


def test_counters_of_merged_points_are_the_later_ones() -> None:
    one = EngineObservation(t_s=1, service="m", waiting=9, generation_tokens=10)
    two = EngineObservation(t_s=2, service="m", waiting=3, generation_tokens=20, kv_usage=0.5)
    merged = merge_engines(one, two)
    assert (merged.t_s, merged.waiting, merged.generation_tokens, merged.kv_usage) == (
        2,
        9,
        20,
        0.5,
    )


class Gpus:
    """A sampler whose GPUs a test moves."""

    def __init__(
        self, fault: str = "", look: Callable[[float], tuple[GpuObservation, ...]] | None = None
    ) -> None:
        self.fault, self.look, self.closed, self.threads = fault, look, 0, set[int]()

    def open(self) -> str:
        self.threads.add(threading.get_ident())
        return self.fault

    def sample(self, t_s: float) -> tuple[GpuObservation, ...]:
        self.threads.add(threading.get_ident())
        return self.look(t_s) if self.look else (gpu(t_s, power_w=100),)

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed += 1


class Meter:
    def use(self, leader: int) -> ProcessUse | None:
        return ProcessUse(rss=2**20, cpu_s=1.5, processes=2)


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert true()


def test_everything_is_on_one_time_axis() -> None:
    gpus = Gpus()
    with serving() as oracle:
        here = state("m").model_copy(update={"url": oracle.url})
        watch = Watch(gpus, Meter(), OpenAIChat(), VLLM, 0.01, 0.01)
        view = LoadFigures()
        view.begin("m x8")
        with Sampler(watch, [here], wiring.clock(), view) as sampler, sampler.span("m", "x8"):
            until(
                lambda: len(sampler.telemetry().engines) > 2 and len(sampler.telemetry().gpus) > 2
            )
        found = sampler.telemetry()
    [span] = found.spans
    assert (span.what, found.faults, found.period_s) == ("x8", (), 0.01)
    for series in (found.gpus, found.engines, found.processes):
        times = [one.t_s for one in series]
        assert times == sorted(times)
        assert any(span.began_s <= at <= span.ended_s for at in times)
    assert found.engines[0].kv_usage == 0.25
    assert "KV 25 %" in view.words()
    assert found.processes[0].processes == 2
    # NVML is used from one thread, and let go.
    assert gpus.closed == 1
    assert len(gpus.threads) == 1
    assert threading.get_ident() not in gpus.threads


def test_what_cannot_be_sampled_is_said_and_the_rest_is_seen() -> None:
    here = state("m").model_copy(update={"url": "http://127.0.0.1:9"})
    watch = Watch(Gpus("NVML: Driver Not Loaded"), Meter(), OpenAIChat(), VLLM, 0.01, 0.01)
    with Sampler(watch, [here], wiring.clock()) as sampler:
        until(
            lambda: len(sampler.telemetry().processes) > 1 and len(sampler.telemetry().faults) > 1
        )
    found = sampler.telemetry()
    assert set(found.faults) == {"NVML: Driver Not Loaded", "m: /metrics says nothing"}
    assert (found.gpus, found.engines) == ((), ())


def test_a_sampler_that_breaks_costs_nothing_but_its_samples() -> None:
    def breaks(t_s: float) -> tuple[GpuObservation, ...]:
        raise RuntimeError("boom")

    gpus = Gpus(look=breaks)
    with Sampler(
        Watch(gpus, Meter(), OpenAIChat(), None, 0.01), [state("m")], wiring.clock()
    ) as sampler:
        until(lambda: len(sampler.telemetry().faults) == 2)
    assert "sampling ended: RuntimeError: boom" in sampler.telemetry().faults
    assert gpus.closed == 1


def test_without_a_watch_only_the_phases_are_kept() -> None:
    with Sampler(None, [state("m")], wiring.clock()) as sampler, sampler.span("m", "x1"):
        pass
    found = sampler.telemetry()
    assert (found.period_s, found.gpus, [one.what for one in found.spans]) == (0.0, (), ["x1"])
