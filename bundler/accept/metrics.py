"""Samples to figures. Definitions are those of `domain.facts`; latencies are of requests that succeeded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bundler.accept.load import UNSENT, LevelRun
from bundler.accept.objective import is_good
from bundler.accept.statistics import P99_NEEDS, quantile
from bundler.domain.facts import LevelMetrics, Quantiles, RequestSample, Stretch
from bundler.domain.spec import Acceptance, Slo


def level_metrics(
    service: str, concurrency: int, run: LevelRun, plan: Acceptance | None = None
) -> LevelMetrics:
    """Sum up one level; `plan` says whether users think or requests come at a rate, and what is good.

    Throughput is the output tokens of successful requests over the whole duration of the level, ramp and
    tail included. The achieved concurrency is Little's law, L = sum of request times / duration
    (J. D. C. Little, "A proof for the queuing formula L = lambda W", Operations Research 9, 1961).

    The first `concurrency` requests that were sent are the burst, one of each user within two seconds at
    most: the engine prefills for all of them before any has its first token.
    """
    good = [sample for sample in run.samples if sample.ok]
    tokens = sum(sample.output_tokens for sample in good)
    slo = plan.slo if plan else None
    steady, wanted = None, None
    if plan is None or plan.arrivals == "closed":
        think_s = plan.think_time_s if plan else 0.0
        steady, wanted = steady_load(run.samples, concurrency, think_s)
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
        ttfa=_quantiles((sample.ttfa_ms for sample in good), len(good)),
        burst=_stretch(run.samples[:concurrency], slo) if concurrency > 1 else None,
        steady=_stretch(run.samples[concurrency:], slo) if concurrency > 1 else None,
        itl_per_token=bool(good) and all(sample.itl_per_token for sample in good),
        longest_gap_ms=max((gap for sample in good for gap in sample.itl_ms), default=None),
        steady_concurrency=steady,
        wanted_concurrency=wanted,
        client_lag_ms_p99=run.lag_ms_p99,
        warm_up_ttft_ms=run.warm_up_ttft_ms,
        template_tokens=run.template_tokens,
        server=run.server,
    )


def steady_load(
    samples: Sequence[RequestSample], concurrency: int, think_time_s: float = 0.0
) -> tuple[float | None, float | None]:
    """Mean requests in flight in the steady part of a closed loop, and what they should have been.

    Steady is from the start of the last user to the last sending: before it users are still to come,
    after it none sends again. A user who thinks Z seconds after answers of R seconds is in flight for
    R / (R + Z) of the time (the interactive response time law; Lazowska and others, "Quantitative System
    Performance", 1984, chapter 3). None for both where there is no such part.
    """
    sent = [sample for sample in samples if not sample.error.startswith(UNSENT)]
    starts = sorted(sample.started_s for sample in sent)
    if len(starts) <= concurrency or starts[-1] <= starts[concurrency - 1]:
        return None, None
    since, until = starts[concurrency - 1], starts[-1]
    busy_s = sum(
        max(0.0, min(until, one.started_s + one.e2e_ms / 1000) - max(since, one.started_s))
        for one in sent
    )
    mean_s = sum(one.e2e_ms for one in sent) / len(sent) / 1000
    cycle_s = mean_s + think_time_s
    wanted = concurrency * mean_s / cycle_s if cycle_s else float(concurrency)
    return round(busy_s / (until - since), 4), round(wanted, 4)


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
