"""The acceptance run from services to receipt: probe -> sweep -> sum up -> judge. No file is read or written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bundler.accept.correctness.judging import judge_correctness
from bundler.accept.correctness.run import Probing, probe_service
from bundler.accept.fingerprint import fingerprint_of
from bundler.accept.judge import judge, sample_key, worst_error
from bundler.accept.kernels import judge_kernels
from bundler.accept.load import Level, LevelRun, run_level
from bundler.accept.metrics import level_metrics
from bundler.accept.ranges import compare_level, nothing_known
from bundler.accept.telemetry import Sampler, Watch
from bundler.accept.validity import gpu_gate, level_gates
from bundler.domain.correctness import CorrectnessResult
from bundler.domain.facts import AcceptanceRecord, LevelMetrics, RequestSample, ServiceState
from bundler.domain.manifest import ShippedModel, VerifiedManifest
from bundler.domain.profile import Profile
from bundler.domain.spec import Acceptance, Service
from bundler.domain.telemetry import Telemetry
from bundler.domain.variants import Changed
from bundler.domain.verdict import Gate, overall
from bundler.instruments import LoadView
from bundler.ports import ChatClient, Clock, Progress

UNSIGNED = "the bundle is UNSIGNED: nobody vouches for what was measured"


def accept(
    *,
    states: tuple[ServiceState, ...],
    verified: VerifiedManifest,
    chat: ChatClient,
    clock: Clock,
    progress: Progress,
    host: dict[str, str],
    probing: Probing | None = None,
    watch: Watch | None = None,
    profiles: Sequence[Profile] = (),
    services: Sequence[Service] | None = None,
    changed: Changed | None = None,
    plan: Acceptance | None = None,
    users: Sequence[int] | None = None,
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
        probing: asks whether answers are right, before anything is measured; nothing is asked without.
        watch: looks at GPUs, processes and the engines' metrics meanwhile; nobody looks without.
        profiles: known figures to compare with.
        services: as they were started; those of the manifest when None.
        changed: how they differ from those that were signed, and why.
        plan: in place of the bundle's own.
        users: in place of the plan's numbers of users; none: answers are asked for, and nothing is measured.
    """
    manifest = verified.manifest
    plan = plan or manifest.acceptance
    began = clock.now()
    salt = f"{began}/{clock.monotonic()}"
    levels: list[LevelMetrics] = []
    samples: dict[str, tuple[RequestSample, ...]] = {}
    probed: list[CorrectnessResult] = []
    sampler = Sampler(watch, states, clock, progress if isinstance(progress, LoadView) else None)
    asked = manifest.services if services is None else tuple(services)
    named = {service.name: service for service in asked}
    with sampler:
        for state in states:
            if probing is not None and state.service in named:
                progress.note(f"{state.service}: asking whether its answers are right")
                service = named[state.service]
                probed += probe_service(probing, state.url, service, plan, salt, sampler.span)
            failed = False
            for concurrency in dict.fromkeys(plan.concurrency if users is None else users):
                level = Level(state.service, concurrency, plan, salt, failed)
                with sampler.span(state.service, f"x{concurrency}"):
                    run = asyncio.run(one_level(state.url, level, chat, clock, progress))
                levels.append(level_metrics(state.service, concurrency, run, plan))
                samples[sample_key(state.service, concurrency)] = run.samples
                failed = not levels[-1].succeeded
                progress.note(_line(levels[-1]))
    prints = {
        state.service: fingerprint_of(manifest, named[state.service], state, host)
        for state in states
        if state.service in named
    }
    ranged = {
        sample_key(level.service, level.concurrency): compare_level(
            profiles, prints[level.service], level
        )
        for level in levels
        if level.service in prints
    }
    for fingerprint in prints.values() if profiles else ():
        if line := nothing_known(profiles, fingerprint):
            progress.note(line)
    known = {key: one.checks for key, one in ranged.items()}
    telemetry = sampler.telemetry()
    gates = {
        key: (*level_gates(plan, level, samples[key]), *_gpu_gates(level, telemetry))
        for level in levels
        for key in [sample_key(level.service, level.concurrency)]
    }
    checks, warnings = judge(plan, levels, samples, known, gates)
    right, doubts = judge_correctness(probed)
    checks = (*judge_kernels(asked, states), *right, *checks)
    warnings = (*doubts, *warnings, *(line for one in ranged.values() for line in one.warnings))
    said = (changed.words,) if changed is not None else ()
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
        plan=plan,
        services=states,
        began=began,
        ended=clock.now(),
        levels=tuple(levels),
        samples=samples,
        gates=tuple(gate for several in gates.values() for gate in several),
        checks=checks,
        verdict=overall(checks),
        warnings=(*(() if verified.signed else (UNSIGNED,)), *said, *warnings),
        correctness=tuple(probed),
        telemetry=telemetry,
        fingerprints=prints,
        comparisons=tuple(found for one in ranged.values() for found in one.comparisons),
        changed=changed,
    )


def _gpu_gates(level: LevelMetrics, telemetry: Telemetry) -> tuple[Gate, ...]:
    """Whether the GPUs were sound during a level; none where nobody looked."""
    during = [
        (span.began_s, span.ended_s)
        for span in telemetry.spans
        if (span.service, span.what) == (level.service, f"x{level.concurrency}")
    ]
    if not level.succeeded or not telemetry.gpus or not during:
        return ()
    seen = [one for one in telemetry.gpus if any(a <= one.t_s <= b for a, b in during)]
    return (gpu_gate(level, seen),)


async def one_level(
    url: str, level: Level, chat: ChatClient, clock: Clock, progress: Progress
) -> LevelRun:
    """Measure one level in a session of its own."""
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
