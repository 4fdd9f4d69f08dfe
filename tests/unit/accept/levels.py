"""Hand-made samples and levels for the judge and the reports."""

from __future__ import annotations

from bundler.accept.load import LevelRun
from bundler.accept.metrics import level_metrics
from bundler.domain.facts import LevelMetrics, RequestSample


def sample(**changes: object) -> RequestSample:
    values: dict[str, object] = {
        "ok": True, "started_s": 0.0, "ttft_ms": 100.0, "tpot_ms": 10.0, "e2e_ms": 410.0,
        "itl_ms": (10.0,) * 31, "input_tokens": 64, "output_tokens": 32, "finish_reason": "length",
    }  # fmt: skip
    return RequestSample.model_validate(values | changes)


def failed(
    error: str = "cannot connect: Connection refused", e2e_ms: float = 410.0
) -> RequestSample:
    return RequestSample(ok=False, error=error, started_s=0.0, e2e_ms=e2e_ms)


def level(
    *samples: RequestSample,
    service: str = "chat",
    concurrency: int = 1,
    duration_s: float | None = None,
) -> tuple[LevelMetrics, tuple[RequestSample, ...]]:
    """A level that kept its concurrency unless `duration_s` says otherwise."""
    kept = sum(s.e2e_ms for s in samples) / 1000 / concurrency
    run = LevelRun(samples, kept if duration_s is None else duration_s)
    return level_metrics(service, concurrency, run), samples
