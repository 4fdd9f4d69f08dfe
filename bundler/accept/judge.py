"""Figures to verdicts. Pure: the same record always gives the same judgement.

A level whose measurement fails a gate of `validity` proves nothing, so its checks become NOT COMPARABLE with
the reason. What stands is what a better measurement could not excuse: requests that were not answered, and
limits missed although the flaw made them easier to meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bundler.accept.load import UNSENT
from bundler.accept.objective import judge_objective
from bundler.accept.statistics import P99_NEEDS
from bundler.accept.validity import excused, level_gates
from bundler.domain.facts import LevelMetrics, RequestSample
from bundler.domain.spec import Acceptance, Expected, Slo
from bundler.domain.verdict import Check, Gate, Verdict

_THROUGHPUT = "output_tokens_per_s"
_PROMPT_TOLERANCE = 0.25

Samples = Mapping[str, Sequence[RequestSample]]


def sample_key(service: str, concurrency: int) -> str:
    """The key of a level's samples in a record."""
    return f"{service}@{concurrency}"


def judge(
    plan: Acceptance,
    levels: Sequence[LevelMetrics],
    samples: Samples,
    known: Mapping[str, Sequence[Check]] | None = None,
    gates: Mapping[str, Sequence[Gate]] | None = None,
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """Every check of every level, and warnings that judge nothing.

    Args:
        plan: the bundle's acceptance plan.
        levels: what was measured.
        samples: the requests of each level, by `sample_key`.
        known: checks against profiles, by the same key; they too decide nothing where a level is in doubt.
        gates: whether each level is sound, by the same key; those of the level's own record when None.
    """
    checks: list[Check] = []
    warnings: list[str] = []
    for level in levels:
        key = sample_key(level.service, level.concurrency)
        requests = samples[key]
        asked = level_gates(plan, level, requests) if gates is None else gates[key]
        checks += _level_checks(plan, level, requests, (known or {}).get(key, ()), asked)
        warnings += _level_warnings(plan, level, requests)
    return tuple(checks), tuple(warnings)


def _level_checks(
    plan: Acceptance,
    level: LevelMetrics,
    samples: Sequence[RequestSample],
    known: Sequence[Check],
    gates: Sequence[Gate],
) -> list[Check]:
    ranges = [item for item in plan.expected if _is_for(item, level)]
    answered = _answered(plan.slo, ranges, level)
    figures = [_range(item, level) for item in ranges]
    if plan.slo:
        figures.insert(0, judge_objective(plan.slo, level, samples))
    checks = [answered, *figures, *known]
    failed = [gate for gate in gates if gate.state == "failed"]
    if not failed:
        return checks
    doubt = failed[0].reason
    # Whether requests were answered at all needs no sound figures.
    return [
        c if _failed(c) and (c is answered or not excused(c.what, failed)) else _doubtful(c, doubt)
        for c in checks
    ]


def _failed(check: Check) -> bool:
    return check.verdict is Verdict.FAIL


def _is_for(item: Expected, level: LevelMetrics) -> bool:
    return item.concurrency == level.concurrency and item.service in (None, level.service)


def _doubtful(check: Check, reason: str) -> Check:
    return check.model_copy(update={"verdict": Verdict.NOT_COMPARABLE, "reason": reason})


def _check(
    level: LevelMetrics, what: str, verdict: Verdict, measured: str, reason: str = ""
) -> Check:
    return Check(
        service=level.service,
        concurrency=level.concurrency,
        what=what,
        verdict=verdict,
        measured=measured,
        reason=reason,
    )


def _answered(slo: Slo | None, ranges: Sequence[Expected], level: LevelMetrics) -> Check:
    """Whether requests were answered: all of them, unless the plan says how many must be."""
    lenient = slo is not None or any(item.metric == "success_rate" for item in ranges)
    what = "at least one request answered" if lenient else "every request answered"
    measured = f"{level.succeeded} of {level.requests}"
    if not level.succeeded:
        return _check(level, what, Verdict.FAIL, measured, f"every request failed{_worst(level)}")
    counted = any(metric is not None for metric in (level.tpot.p50, level.input_tokens_p50))
    if counted and not level.output_tokens:
        return _check(level, what, Verdict.FAIL, measured, "the answers held no output tokens")
    failed = level.requests - level.succeeded
    if not failed:
        return _check(level, what, Verdict.PASS, measured)
    if lenient:
        reason = f"{failed} failed{_worst(level)}; the other checks count them"
        return _check(level, what, Verdict.PASS, measured, reason)
    return _check(level, what, Verdict.FAIL, measured, f"{failed} failed{_worst(level)}")


def worst_error(level: LevelMetrics) -> str:
    """The commonest error, empty without one. What was met counts before what was not even sent."""
    met = {text: count for text, count in level.errors.items() if not text.startswith(UNSENT)}
    errors = met or level.errors
    return max(errors, key=lambda text: errors[text]) if errors else ""


def _worst(level: LevelMetrics) -> str:
    """The commonest error, to be appended."""
    error = worst_error(level)
    return f": {error}" if error else ""


def _range(item: Expected, level: LevelMetrics) -> Check:
    """Whether a figure lies in its expected range."""
    parts = []
    if item.min is not None:
        parts.append(f">= {item.min:g}")
    if item.max is not None:
        parts.append(f"<= {item.max:g}")
    what = f"expected: {item.metric} {' and '.join(parts)}"
    source = f" (source: {item.source})" if item.source else ""
    value = metric_value(level, item.metric)
    if value is None:
        return _check(level, what, Verdict.FAIL, "-", f"there is no such figure{source}")
    measured = f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"
    if item.min is not None and value < item.min:
        return _check(level, what, Verdict.FAIL, measured, f"below {item.min:g}{source}")
    if item.max is not None and value > item.max:
        return _check(level, what, Verdict.FAIL, measured, f"above {item.max:g}{source}")
    return _check(level, what, Verdict.PASS, measured, source.strip(" ()"))


def metric_value(level: LevelMetrics, metric: str) -> float | None:
    """The figure that a metric's name in the spec stands for, such as `ttft_ms_p95`."""
    if metric in (_THROUGHPUT, "success_rate"):
        return float(getattr(level, metric))
    family, _, share = metric.partition("_ms_")
    value: float | None = getattr(getattr(level, family), share)
    return value


def _level_warnings(
    plan: Acceptance, level: LevelMetrics, samples: Sequence[RequestSample]
) -> list[str]:
    where = f"{level.service}, concurrency {level.concurrency}"
    warnings = []
    if 0 < level.succeeded < P99_NEEDS:
        warnings.append(
            f"{where}: {level.succeeded} requests say nothing of p99, which needs {P99_NEEDS}"
        )
    if 0 < level.succeeded < level.requests:
        failed = level.requests - level.succeeded
        warnings.append(f"{where}: {failed} of {level.requests} requests failed{_worst(level)}")
    tokens = level.input_tokens_p50
    if tokens and abs(tokens - plan.input_tokens) > _PROMPT_TOLERANCE * plan.input_tokens:
        warnings.append(
            f"{where}: prompts had {tokens:.0f} tokens at the median, {plan.input_tokens} were asked for"
        )
    if any(s.ok and s.output_tokens > 1 and not s.itl_ms for s in samples):
        warnings.append(f"{where}: answers came in one piece; TPOT and ITL say nothing there")
    return warnings
