"""Validity gates: is a level's measurement what it claims to be? Asked before anything is judged by it.

Each gate is a pure function of the level's record, so that a kept record gives the same answer. Limits
that no source gives are engineering choices and say so; docs/acceptance.md tells what to do about each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bundler.accept.load import SETTLED, SETTLED_MS, UNSENT, settled
from bundler.accept.statistics import quantile
from bundler.domain.facts import LevelMetrics, RequestSample
from bundler.domain.spec import Acceptance
from bundler.domain.telemetry import GpuObservation
from bundler.domain.verdict import Gate

# A lag moves every arrival time; a tenth of what is measured is tolerable, and 5 ms always is: it is
# within what people and limits in hundreds of milliseconds can tell.
LAG_SHARE, LAG_MS = 0.10, 5.0
# Of the plan's TTFT limit. Choice.
SLACK_SHARE = 0.01
# Little's law over the steady part; over the whole of a level too short to have one, ramp and tail count.
STEADY_LOAD, WHOLE_LOAD = 0.95, 0.8
_REQUESTS_PER_WORKER = 5
# Prompts share their template and nothing else. Choice: what that may give, or one token in twenty.
CACHE_SHARE = 0.05
# The server's clock starts when it has read the request and ends before it writes. Choice.
AGREE_SHARE, AGREE_MS = 0.10, 30.0
_IN_FLIGHT_SHARE, _IN_FLIGHT, _LEAST_POLLS = 0.20, 1.0, 5
# A kernel that compiles costs seconds; a first wave's common prefill does not double a request. Choice.
COLD_RATIO, _LEAST_COLD = 2.0, 4
# At its power cap a card runs at its normal best; what these say is that it could run better.
_BRAKES = ("hardware", "thermal", "brake")
_POWER_LIMIT_W = 1.0

_LOAD, _CACHE, _LAG = "load", "prefix cache", "client lag"
_THROUGHPUT = "output_tokens_per_s"


def level_gates(
    plan: Acceptance, level: LevelMetrics, samples: Sequence[RequestSample]
) -> tuple[Gate, ...]:
    """Every gate of a level, in the order in which to name what failed; none when nothing was answered."""
    good = [sample for sample in samples if sample.ok]
    if not good:
        return ()
    return (
        _token_counts(level, good),
        _output_length(plan, level, good),
        _stream_end(level, good),
        _client_lag(plan, level),
        _prefix_cache(level, good),
        _server_agreement(plan, level, good, samples),
        _warm_up(plan, level),
        _cold_start(plan, level, good),
        *_load(plan, level),
    )


def excused(what: str, failed: Sequence[Gate]) -> bool:
    """Whether a failed check may be the fault of the measurement.

    Too little load and cached prompts make limits easier to meet: what is missed even so is missed. Only
    throughput rises with load.
    """
    return any(
        gate.name not in (_LOAD, _CACHE) or (gate.name == _LOAD and _THROUGHPUT in what)
        for gate in failed
    )


def _gate(
    level: LevelMetrics, name: str, measured: str, limit: str, reason: str, *, known: bool = True
) -> Gate:
    """Failed when there is a reason, unless nothing is known."""
    return Gate(
        service=level.service,
        concurrency=level.concurrency,
        name=name,
        state="unknown" if not known else "failed" if reason else "ok",
        measured=measured,
        limit=limit,
        reason=reason,
    )


def _token_counts(level: LevelMetrics, good: Sequence[RequestSample]) -> Gate:
    uncounted = sum(not (sample.output_tokens or sample.input_tokens) for sample in good)
    reason = f"{uncounted} of {len(good)} answers came without token counts (usage)"
    measured = f"{len(good) - uncounted} of {len(good)}"
    return _gate(level, "token counts", measured, "every answer", reason if uncounted else "")


def _output_length(plan: Acceptance, level: LevelMetrics, good: Sequence[RequestSample]) -> Gate:
    counted = [s.output_tokens for s in good if s.output_tokens or s.input_tokens]
    limit = f"{plan.output_tokens} tokens"
    if not counted:
        return _gate(level, "output length", "", limit, "no token counts", known=False)
    other = [tokens for tokens in counted if tokens != plan.output_tokens]
    measured = f"{min(counted)} to {max(counted)}"
    reason = ""
    if other:
        reason = (
            f"{len(other)} of {len(good)} answers were not of {plan.output_tokens} output tokens"
            f" ({min(other)} to {max(other)}): the engine does not honour ignore_eos"
        )
    return _gate(level, "output length", measured, limit, reason)


def _stream_end(level: LevelMetrics, good: Sequence[RequestSample]) -> Gate:
    open_ended = sum(not sample.done for sample in good)
    reason = f"{open_ended} of {len(good)} answers ended without [DONE]: something cuts the streams"
    measured = f"{len(good) - open_ended} of {len(good)}"
    return _gate(level, "stream end", measured, "every answer", reason if open_ended else "")


def _slack_ms(plan: Acceptance) -> float:
    """What no judgement depends on: beside a limit of seconds, some hundredths of a second decide nothing."""
    judged = plan.slo.ttft_ms if plan.slo and plan.slo.ttft_ms else 0.0
    return max(LAG_MS, SLACK_SHARE * judged)


def _client_lag(plan: Acceptance, level: LevelMetrics) -> Gate:
    gap = level.itl.p50 or 0.0
    limit = max(LAG_SHARE * gap, _slack_ms(plan))
    told = f"p99 <= {limit:.1f} ms"
    lag = level.client_lag_ms_p99
    if lag is None:
        return _gate(level, _LAG, "", told, "the client was not watched", known=False)
    reason = (
        f"this client was up to {lag:.1f} ms late (p99) in reading what had arrived: its processors are busy"
        if lag > limit
        else ""
    )
    return _gate(level, _LAG, f"p99 {lag:.1f} ms", told, reason)


def _prefix_cache(level: LevelMetrics, good: Sequence[RequestSample]) -> Gate:
    found = _cached_share(level, good)
    prompt = level.input_tokens_p50 or 0.0
    template = min(0.5, (level.template_tokens or 0.0) / prompt) if prompt else 0.0
    limit = max(CACHE_SHARE, template)
    told = f"<= {limit * 100:.0f} % of the prompt tokens"
    if found is None:
        silent = "the engine does not say (no counters in /metrics, no cached_tokens)"
        return _gate(level, _CACHE, "", told, silent, known=False)
    reason = (
        f"{found * 100:.0f} % of the prompt tokens came from the prefix cache: TTFT measures that cache"
        if found > limit
        else ""
    )
    return _gate(level, _CACHE, f"{found * 100:.1f} %", told, reason)


def _cached_share(level: LevelMetrics, good: Sequence[RequestSample]) -> float | None:
    server = level.server
    if server and server.prefix_hits is not None and server.prefix_queries:
        return server.prefix_hits / server.prefix_queries
    said = [one for one in good if one.cached_tokens is not None and one.input_tokens]
    if not said:
        return None
    return sum(one.cached_tokens or 0 for one in said) / sum(one.input_tokens for one in said)


def _server_agreement(
    plan: Acceptance,
    level: LevelMetrics,
    good: Sequence[RequestSample],
    samples: Sequence[RequestSample],
) -> Gate:
    """Requests, TTFT and requests in flight by the server's counters against ours."""
    slack = max(AGREE_MS, _slack_ms(plan))
    name, limit = "server agreement", f"within {AGREE_SHARE * 100:.0f} % or {slack:g} ms"
    server = level.server
    if server is None or server.requests is None:
        silent = "the engine has no such counters"
        return _gate(level, name, "", limit, silent, known=False)
    sent = sum(not one.error.startswith(UNSENT) for one in samples)
    if not len(good) <= server.requests <= sent:
        reason = f"the engine answered {server.requests} requests while we sent {sent}: " + (
            "others use it" if server.requests > sent else "its counters are not about our requests"
        )
        return _gate(level, name, f"{server.requests} requests", f"{sent} requests", reason)
    ours = [one.ttft_ms - one.waited_ms for one in good if one.ttft_ms is not None]
    mean = sum(ours) / len(ours) if ours else None
    theirs = server.ttft_ms_mean
    measured, reason = f"{server.requests} requests", ""
    if mean is not None and theirs is not None and server.requests == len(good):
        measured = f"mean TTFT {theirs:.1f} ms there, {mean:.1f} ms here"
        if abs(mean - theirs) > max(slack, AGREE_SHARE * theirs):
            reason = f"{measured}: something between client and engine takes the time"
    in_flight = server.in_flight_mean
    if not reason and in_flight is not None and server.polls >= _LEAST_POLLS:
        load = level.achieved_concurrency
        if abs(in_flight - load) > max(_IN_FLIGHT, _IN_FLIGHT_SHARE * load):
            measured = f"{in_flight:.1f} requests in flight there, {load:.1f} here"
            reason = (
                f"{measured}: something between client and engine holds requests, or others use it"
            )
    return _gate(level, name, measured, limit, reason)


def _warm_up(plan: Acceptance, level: LevelMetrics) -> Gate:
    waves = level.warm_up_ttft_ms
    slack = max(SETTLED_MS, _slack_ms(plan))
    told = f"two waves within {SETTLED * 100:.0f} % or {slack:g} ms"
    if len(waves) < 2:
        return _gate(level, "warm-up", "", told, "fewer than two waves were answered", known=False)
    before, last = waves[-2:]
    measured = f"median TTFT {before:.1f}, then {last:.1f} ms"
    calm = settled(waves, slack)
    reason = "" if calm else f"after {len(waves)} waves the engine had not settled"
    return _gate(level, "warm-up", measured, told, reason)


def _cold_start(plan: Acceptance, level: LevelMetrics, good: Sequence[RequestSample]) -> Gate:
    """Whether the first measured requests took much longer: something was compiled or filled then."""
    count = max(level.concurrency, _LEAST_COLD)
    told = f"first {count} requests <= {COLD_RATIO:g} x the others"
    times = [one.e2e_ms - one.waited_ms for one in sorted(good, key=lambda one: one.started_s)]
    first, rest = quantile(times[:count], 0.5), quantile(times[count:], 0.5)
    if first is None or not rest or len(times) < 2 * count:
        return _gate(level, "cold start", "", told, "too few answers to compare", known=False)
    measured = f"{first / rest:.2f} x"
    reason = (
        f"the first {count} requests took {first:.0f} ms at the median, the others {rest:.0f} ms:"
        " the engine was still compiling or filling pools"
        if first > COLD_RATIO * rest and first - rest > _slack_ms(plan)
        else ""
    )
    return _gate(level, "cold start", measured, told, reason)


def _load(plan: Acceptance, level: LevelMetrics) -> Iterator[Gate]:
    """Whether as many requests were in flight as asked for; in open loop nobody asks for a number."""
    if plan.arrivals != "closed":
        return
    steady, wanted = level.steady_concurrency, level.wanted_concurrency
    if steady is None or wanted is None:
        share, load, of = WHOLE_LOAD, level.achieved_concurrency, float(level.concurrency)
        if plan.think_time_s:
            told = f">= {WHOLE_LOAD * 100:.0f} %"
            yield _gate(level, _LOAD, "", told, "no steady part to tell by", known=False)
            return
    else:
        # Pauses are drawn by chance, so what they should come to is met only about.
        share, load, of = WHOLE_LOAD if plan.think_time_s else STEADY_LOAD, steady, wanted
    reason = ""
    # What a client needs between two requests is no idleness: a share of it looks large beside tiny requests.
    pause_ms = (1 - load / of) * (level.e2e.p50 or 0.0) if of else 0.0
    if load < share * of and pause_ms > LAG_MS:
        reason = f"only {load:.1f} of {of:.4g} requests were in flight on average"
        enough = _REQUESTS_PER_WORKER * level.concurrency
        if level.requests < enough:
            reason += f"; raise acceptance.requests to {enough}"
    yield _gate(level, _LOAD, f"{load:.2f}", f">= {share * 100:.0f} % of {of:.4g}", reason)


def gpu_gate(
    level: LevelMetrics, seen: Sequence[GpuObservation], own: frozenset[int] | None = None
) -> Gate:
    """Whether the GPUs were ours alone and ran as they can during a level.

    Args:
        level: which level the gate is of.
        seen: what was observed during it, at its begin and its end at least.
        own: the services' processes, as NVML names them; None takes those that were there from the
            first look on (the driver may number processes otherwise than a container does).
    """
    limit = "no thermal or hardware slowdown, one power limit, no other process"
    if not seen:
        return _gate(level, "GPU", "", limit, "no GPU was observed", known=False)
    reasons: list[str] = []
    for gpu in sorted({one.gpu for one in seen}):
        looks = sorted((one for one in seen if one.gpu == gpu), key=lambda one: one.t_s)
        reasons += _gpu_faults(gpu, looks, own)
    return _gate(level, "GPU", f"{len(seen)} looks", limit, "; ".join(reasons))


def _gpu_faults(
    gpu: int, looks: Sequence[GpuObservation], own: frozenset[int] | None
) -> Iterator[str]:
    slowed = [one for one in looks if any(_is_brake(word) for word in one.throttle_reasons)]
    if slowed:
        words = sorted({word for one in slowed for word in one.throttle_reasons if _is_brake(word)})
        yield f"GPU {gpu} was slowed in {len(slowed)} of {len(looks)} looks ({', '.join(words)})"
    limits = [one.power_limit_w for one in looks if one.power_limit_w is not None]
    if limits and max(limits) - min(limits) > _POWER_LIMIT_W:
        yield f"the power limit of GPU {gpu} was changed ({min(limits):.0f} to {max(limits):.0f} W)"
    ours = frozenset(looks[0].processes) if own is None else own
    others = sorted({pid for one in looks for pid in one.processes} - ours)
    if others:
        named = ", ".join(map(str, others[:5]))
        yield f"GPU {gpu} was also used by {'process' if len(others) == 1 else 'processes'} {named}"


def _is_brake(reason: str) -> bool:
    return any(word in reason.lower() for word in _BRAKES)
