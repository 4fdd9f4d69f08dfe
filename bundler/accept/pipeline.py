"""The acceptance run from services to receipt: sweep -> sum up -> judge. No file is read or written."""

from __future__ import annotations

import asyncio

from bundler.accept.judge import judge, sample_key, worst_error
from bundler.accept.kernels import judge_kernels
from bundler.accept.load import Level, LevelRun, run_level
from bundler.accept.metrics import level_metrics
from bundler.accept.validity import level_gates
from bundler.domain.facts import AcceptanceRecord, LevelMetrics, RequestSample, ServiceState
from bundler.domain.manifest import ShippedModel, VerifiedManifest
from bundler.domain.verdict import overall
from bundler.ports import ChatClient, Clock, Progress

_UNSIGNED = "the bundle is UNSIGNED: nobody vouches for what was measured"


def accept(
    *,
    states: tuple[ServiceState, ...],
    verified: VerifiedManifest,
    chat: ChatClient,
    clock: Clock,
    progress: Progress,
    host: dict[str, str],
) -> AcceptanceRecord:
    """Measure running services by the bundle's own plan, and judge.

    Services are measured one after another, so that none disturbs another. A service that fails is a
    result (verdict FAIL), not an error.

    Args:
        states: the running services, in the order to measure them.
        verified: the bundle that they came from; its acceptance plan is used.
        chat: speaks to the engines.
        clock: for the receipt's dates and the requests' times.
        progress: shows the requests.
        host: facts of this machine, copied into the receipt.
    """
    manifest = verified.manifest
    began = clock.now()
    salt = f"{began}/{clock.monotonic()}"
    levels: list[LevelMetrics] = []
    samples: dict[str, tuple[RequestSample, ...]] = {}
    for state in states:
        failed = False
        for concurrency in dict.fromkeys(manifest.acceptance.concurrency):
            level = Level(state.service, concurrency, manifest.acceptance, salt, failed)
            run = asyncio.run(_one_level(state.url, level, chat, clock, progress))
            levels.append(level_metrics(state.service, concurrency, run, manifest.acceptance))
            samples[sample_key(state.service, concurrency)] = run.samples
            failed = not levels[-1].succeeded
            progress.note(_line(levels[-1]))
    checks, warnings = judge(manifest.acceptance, levels, samples)
    checks = (*judge_kernels(manifest.services, states), *checks)
    return AcceptanceRecord(
        bundle_id=verified.bundle_id,
        manifest_sha256=verified.digest,
        key_id=verified.key_id,
        name=manifest.name,
        description=manifest.description,
        engine_name=manifest.engine.name,
        engine_version=manifest.engine.version,
        models=tuple(_model(model) for model in manifest.models),
        host=host,
        plan=manifest.acceptance,
        services=states,
        began=began,
        ended=clock.now(),
        levels=tuple(levels),
        samples=samples,
        gates=tuple(
            gate
            for level in levels
            for gate in level_gates(
                manifest.acceptance, level, samples[sample_key(level.service, level.concurrency)]
            )
        ),
        checks=checks,
        verdict=overall(checks),
        warnings=warnings if verified.signed else (_UNSIGNED, *warnings),
    )


async def _one_level(
    url: str, level: Level, chat: ChatClient, clock: Clock, progress: Progress
) -> LevelRun:
    async with chat.session(url) as session:
        return await run_level(session=session, level=level, clock=clock, progress=progress)


def _model(model: ShippedModel) -> str:
    return f"{model.name} @ {model.revision or f'no revision ({model.source})'}"


def _line(level: LevelMetrics) -> str:
    told = f"{level.service} x{level.concurrency}: {level.succeeded} of {level.requests} answered"
    if not level.succeeded:
        return f"{told}: {worst_error(level)}"
    ttft = "-" if level.ttft.p95 is None else f"{level.ttft.p95:.1f} ms"
    return f"{told}, TTFT p95 {ttft}, {level.output_tokens_per_s:.1f} output tok/s"
