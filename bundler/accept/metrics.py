"""Samples to figures. Definitions are those of `domain.facts`; latencies are of requests that succeeded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bundler.accept.load import LevelRun
from bundler.accept.statistics import quantile
from bundler.domain.facts import LevelMetrics, Quantiles


def level_metrics(service: str, concurrency: int, run: LevelRun) -> LevelMetrics:
    """Sum up one level.

    Throughput is the output tokens of successful requests over the whole duration of the level, ramp and
    tail included. The achieved concurrency is Little's law, L = sum of request times / duration
    (J. D. C. Little, "A proof for the queuing formula L = lambda W", Operations Research 9, 1961).
    """
    good = [sample for sample in run.samples if sample.ok]
    tokens = sum(sample.output_tokens for sample in good)
    in_flight_s = sum(sample.e2e_ms for sample in run.samples) / 1000
    return LevelMetrics(
        service=service,
        concurrency=concurrency,
        requests=len(run.samples),
        succeeded=len(good),
        duration_s=round(run.duration_s, 6),
        ttft=_quantiles(sample.ttft_ms for sample in good),
        tpot=_quantiles(sample.tpot_ms for sample in good),
        itl=_quantiles(gap for sample in good for gap in sample.itl_ms),
        e2e=_quantiles(sample.e2e_ms for sample in good),
        output_tokens=tokens,
        output_tokens_per_s=_rate(tokens, run.duration_s),
        success_rate=len(good) / len(run.samples) if run.samples else 0.0,
        input_tokens_p50=quantile([s.input_tokens for s in good if s.input_tokens], 0.5),
        achieved_concurrency=_rate(in_flight_s, run.duration_s),
        errors=dict(Counter(sample.error for sample in run.samples if not sample.ok)),
    )


def _quantiles(values: Iterable[float | None]) -> Quantiles:
    known = [value for value in values if value is not None]
    return Quantiles(p50=quantile(known, 0.5), p95=quantile(known, 0.95), p99=quantile(known, 0.99))


def _rate(amount: float, seconds: float) -> float:
    return round(amount / seconds, 4) if seconds > 0 else 0.0
