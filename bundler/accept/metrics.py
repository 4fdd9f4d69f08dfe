"""Samples to figures. Definitions are those of `domain.facts`; latencies are of requests that succeeded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bundler.accept.load import LevelRun
from bundler.accept.objective import is_good
from bundler.accept.statistics import P99_NEEDS, quantile
from bundler.domain.facts import LevelMetrics, Quantiles, RequestSample, Stretch
from bundler.domain.spec import Slo


def level_metrics(
    service: str, concurrency: int, run: LevelRun, slo: Slo | None = None
) -> LevelMetrics:
    """Sum up one level.

    Throughput is the output tokens of successful requests over the whole duration of the level, ramp and
    tail included. The achieved concurrency is Little's law, L = sum of request times / duration
    (J. D. C. Little, "A proof for the queuing formula L = lambda W", Operations Research 9, 1961).

    The first `concurrency` requests that were sent are the burst, one of each user within two seconds at
    most: the engine prefills for all of them before any has its first token.
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
        ttft=_quantiles((sample.ttft_ms for sample in good), len(good)),
        tpot=_quantiles((sample.tpot_ms for sample in good), len(good)),
        itl=_quantiles((gap for sample in good for gap in sample.itl_ms), len(good)),
        e2e=_quantiles((sample.e2e_ms for sample in good), len(good)),
        output_tokens=tokens,
        output_tokens_per_s=_rate(tokens, run.duration_s),
        success_rate=len(good) / len(run.samples) if run.samples else 0.0,
        input_tokens_p50=quantile([s.input_tokens for s in good if s.input_tokens], 0.5),
        achieved_concurrency=_rate(in_flight_s, run.duration_s),
        errors=dict(Counter(sample.error for sample in run.samples if not sample.ok)),
        burst=_stretch(run.samples[:concurrency], slo) if concurrency > 1 else None,
        steady=_stretch(run.samples[concurrency:], slo) if concurrency > 1 else None,
    )


def _stretch(samples: Sequence[RequestSample], slo: Slo | None) -> Stretch | None:
    if not samples:
        return None
    answered = [sample for sample in samples if sample.ok]
    return Stretch(
        requests=len(samples),
        succeeded=len(answered),
        good=None if slo is None else sum(is_good(slo, sample) for sample in samples),
        ttft=_quantiles((sample.ttft_ms for sample in answered), len(answered)),
    )


def _quantiles(values: Iterable[float | None], requests: int) -> Quantiles:
    """Quantiles of values that so many requests gave."""
    known = [value for value in values if value is not None]
    return Quantiles(
        p50=quantile(known, 0.5),
        p95=quantile(known, 0.95),
        p99=quantile(known, 0.99) if requests >= P99_NEEDS else None,
        most=max(known, default=None),
    )


def _rate(amount: float, seconds: float) -> float:
    return round(amount / seconds, 4) if seconds > 0 else 0.0
