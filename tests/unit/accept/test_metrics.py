import pytest

from tests.unit.accept.levels import failed, level, sample


def test_latencies_are_of_the_requests_that_succeeded() -> None:
    metrics, _ = level(sample(ttft_ms=100), sample(ttft_ms=300), failed(e2e_ms=60_000))
    assert metrics.ttft.p50 == 200
    assert metrics.ttft.p95 == pytest.approx(290)
    assert metrics.e2e.p50 == 410
    assert (metrics.requests, metrics.succeeded) == (3, 2)
    assert metrics.success_rate == pytest.approx(2 / 3)


def test_throughput_is_over_the_whole_duration() -> None:
    metrics, _ = level(sample(), sample(), failed(), duration_s=4.0)
    assert metrics.output_tokens == 64
    assert metrics.output_tokens_per_s == 16


def test_achieved_concurrency_is_littles_law_over_all_requests() -> None:
    metrics, _ = level(sample(e2e_ms=3000), failed(e2e_ms=1000), concurrency=8, duration_s=2.0)
    assert metrics.achieved_concurrency == 2


def test_equal_errors_are_counted_together() -> None:
    metrics, _ = level(sample(), failed("a"), failed("b"), failed("a"))
    assert metrics.errors == {"a": 2, "b": 1}


def test_a_level_without_a_success_has_no_latencies() -> None:
    metrics, _ = level(failed(), failed())
    assert (
        metrics.ttft.p50 is metrics.tpot.p99 is metrics.itl.p50 is metrics.input_tokens_p50 is None
    )
    assert metrics.output_tokens_per_s == 0


def test_a_level_that_took_no_time_has_no_rate() -> None:
    metrics, _ = level(sample(), duration_s=0.0)
    assert metrics.output_tokens_per_s == metrics.achieved_concurrency == 0


def test_gaps_between_tokens_are_pooled_over_requests() -> None:
    metrics, _ = level(sample(itl_ms=(1.0, 2.0)), sample(itl_ms=(3.0,)))
    assert metrics.itl.p50 == 2
