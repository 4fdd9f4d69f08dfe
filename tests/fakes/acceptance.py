"""Acceptance records as rich as they come, made without an engine; the judge itself judges them."""

from __future__ import annotations

import random

from bundler.accept.judge import judge, sample_key
from bundler.accept.load import LevelRun
from bundler.accept.metrics import level_metrics
from bundler.accept.validity import level_gates
from bundler.domain.ab import ABRecord, Arm, ArmRun
from bundler.domain.ab import Comparison as Ratio
from bundler.domain.beside import Beside
from bundler.domain.capacity import CapacityRecord, Trial
from bundler.domain.correctness import CorrectnessResult, Outcome
from bundler.domain.facts import AcceptanceRecord, RequestSample, ServiceState
from bundler.domain.profile import Comparison, Fingerprint
from bundler.domain.running import Running
from bundler.domain.spec import Acceptance, Expected, Slo
from bundler.domain.telemetry import (
    EngineObservation,
    GpuObservation,
    ProcessObservation,
    Span,
    Telemetry,
)
from bundler.domain.verdict import Gate, Verdict, overall

HOSTILE = "<script>alert('x')</script>\"&\u202e" + "긴이름" * 40
BEGAN, ENDED = "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z"
FINGERPRINT = Fingerprint(
    model="Qwen3.5-35B-A3B-FP8", digest="d" * 64, engine="vllm", engine_version="0.32.0", kernel="triton",
    kv_dtype="fp8", gpu="NVIDIA H200", gpu_count=1, tensor_parallel=1, context_tokens=262144,
    input_tokens=512, output_tokens=128,
)  # fmt: skip


def samples(count: int, users: int, *, slow: float = 1.0, lost: int = 0) -> list[RequestSample]:
    """Requests whose times rise with the users, as a real engine's do; the last `lost` of them failed."""
    dice = random.Random(users)
    made = []
    for at in range(count):
        ttft = slow * (180 + 9 * users) * dice.lognormvariate(0, 0.35)
        tpot = (8 + 0.12 * users) * dice.lognormvariate(0, 0.08)
        if at >= count - lost:
            made.append(
                RequestSample(ok=False, error=f"HTTP 503: {HOSTILE}", started_s=at * 0.05, e2e_ms=9)
            )
            continue
        made.append(
            RequestSample(
                ok=True, started_s=round(at * 0.05, 3), ttft_ms=round(ttft, 2), tpot_ms=round(tpot, 2),
                e2e_ms=round(ttft + 127 * tpot, 2), itl_ms=(round(tpot, 2),) * 12, itl_per_token=True,
                input_tokens=512, output_tokens=128, finish_reason="length",
            )
        )  # fmt: skip
    return made


def acceptance(
    *,
    levels: tuple[int, ...] = (1, 10, 25, 50, 100),
    services: tuple[str, ...] = ("chat",),
    requests: int = 60,
    slo_ms: float = 1500,
    slow: float = 1.0,
    lost: int = 0,
    flaw: str = "",
    key_id: str | None = "0123456789abcdef",
    telemetry: Telemetry | None = None,
    fingerprint: Fingerprint = FINGERPRINT,
    name: str = "qwen35-35b-a3b-h200",
) -> AcceptanceRecord:
    """A run: a TTFT of about `slow` * (180 + 9 * users) ms against a limit of `slo_ms`.

    `flaw` names a gate that failed at the last level of each service.
    """
    plan = Acceptance(
        concurrency=levels, requests=requests, input_tokens=512, output_tokens=128,
        slo=Slo(ttft_ms=slo_ms, tpot_ms=60),
        expected=(
            Expected(concurrency=levels[0], metric="output_tokens_per_s", min=50, max=200, source="H200, 사내 측정"),
            Expected(concurrency=levels[-1], metric="ttft_ms_p95", max=3000),
        ),
    )  # fmt: skip
    metrics, kept, gates = [], {}, {}
    for service in services:
        for users in levels:
            runs = tuple(samples(max(requests, 5 * users), users, slow=slow, lost=lost))
            took = sum(s.e2e_ms for s in runs) / 1000 / users
            run = LevelRun(runs, took, lag_ms_p99=0.4, warm_up_ttft_ms=(200.0, 201.0))
            level = level_metrics(service, users, run, plan)
            metrics.append(level)
            key = sample_key(service, users)
            kept[key] = runs
            found = list(level_gates(plan, level, runs))
            if flaw and users == levels[-1]:
                found[0] = Gate(
                    service=service, concurrency=users, name=flaw, state="failed", measured="41 %",
                    limit="<= 5 %", reason=f"prompts came from the cache {HOSTILE}",
                )  # fmt: skip
            gates[key] = found
    checks, warnings = judge(plan, metrics, kept, gates=gates)
    running = Running(moe=("triton",), kv_dtype=("fp8",))
    return AcceptanceRecord(
        bundle_id=f"{name}-aaaaaaaaaaaa", manifest_sha256="a" * 64, key_id=key_id, name=name,
        description="본점 GPU 서버 반입 시험", engine_name="vllm", engine_version="0.32.0",
        models=("Qwen/Qwen3.5-35B-A3B-FP8 @ " + "f" * 40,),
        host={"processor": "Xeon 8480+", "cores": "56", "gpu 0": "NVIDIA H200", "driver": "570.86"},
        plan=plan,
        services=tuple(
            ServiceState(
                service=service, bundle_id=name, pid=1, start_ticks=1, boot="b", port=8000,
                url="http://127.0.0.1:8000", started=BEGAN, ready_after_s=93.5, first_completion="안녕하세요",
                argv=("vllm", "serve", "/srv/llm/model", "--kv-cache-dtype", "fp8", "--served-model-name", service),
                env={}, running=running,
            )
            for service in services
        ),
        began=BEGAN, ended=ENDED, levels=tuple(metrics), samples=kept,
        gates=tuple(gate for several in gates.values() for gate in several),
        checks=checks, verdict=overall(checks), warnings=warnings, correctness=probes(services),
        telemetry=telemetry or telemetry_of(services, levels), fingerprints=dict.fromkeys(services, fingerprint),
        comparisons=tuple(
            Comparison(
                service=services[0], concurrency=levels[0], metric=metric, measured=value, profile="ours-h200",
                kind="measured", worst=worst, best=best, outcome=outcome, basis="tolerance interval 95/95 of 10 runs",
            )
            for metric, value, worst, best, outcome in (
                ("output_tokens_per_s", 110.0, 95.0, 130.0, "within"),
                ("ttft_ms_p50", 260.0, 240.0, 180.0, "worse"),
                ("tpot_ms_p50", 4.0, 9.0, 7.0, "better"),
            )
        ),
    )  # fmt: skip


def probes(services: tuple[str, ...]) -> tuple[CorrectnessResult, ...]:
    """A right answer, a wrong one and one that was not offered, for each service."""
    return tuple(
        CorrectnessResult(
            service=service, probe=probe, phase=phase, outcome=outcome, judged=outcome is not Outcome.UNKNOWN,
            in_flight=24 if phase == "load" else 0, measured="5 of 6 answers",
            reason="" if outcome is Outcome.RIGHT else "it ends in a loop of 'the the'",
            evidence=() if outcome is Outcome.RIGHT else (HOSTILE,),
        )
        for service in services
        for probe, phase, outcome in (
            ("golden", "idle", Outcome.RIGHT), ("golden", "load", Outcome.WRONG),
            ("needle", "idle", Outcome.RIGHT), ("tools", "load", Outcome.NOT_OFFERED),
            ("korean", "idle", Outcome.UNKNOWN),
        )
    )  # fmt: skip


def telemetry_of(
    services: tuple[str, ...], levels: tuple[int, ...], *, gpus: int = 1, looks: int = 120
) -> Telemetry:
    """So many looks at GPUs, engines and processes, with a power cap and a filling cache."""
    dice = random.Random(7)
    spans = [(service, f"x{users}") for service in services for users in levels]
    step = looks / len(spans)
    return Telemetry(
        period_s=0.5,
        gpus=tuple(
            GpuObservation(
                t_s=at / 2, gpu=gpu, memory_used=int((60 + dice.random() * 60) * 2**30), power_limit_w=700,
                power_w=300 + dice.random() * 400, sm_clock_mhz=1500 + dice.randrange(480),
                throttle_reasons=("power cap",) if at % 9 == 0 else (),
            )
            for gpu in range(gpus)
            for at in range(looks)
        ),
        engines=tuple(
            EngineObservation(
                t_s=at / 2, service=service, kv_usage=min(1, at / looks + dice.random() / 10),
                running=dice.randrange(100), waiting=dice.randrange(20), preemptions=at // 30,
            )
            for service in services
            for at in range(looks)
        ),
        processes=tuple(
            ProcessObservation(t_s=at / 2, service=service, rss=9 * 2**30, cpu_s=at)
            for service in services
            for at in range(looks)
        ),
        spans=tuple(
            Span(service=service, what=what, began_s=place * step / 2, ended_s=(place + 1) * step / 2)
            for place, (service, what) in enumerate(spans)
        ),
        faults=("chat: /metrics says nothing",),
    )  # fmt: skip


def search(service: str = "chat") -> CapacityRecord:
    """A search that found 22 users, its edge measured twice."""
    record = acceptance(levels=(1, 2, 4, 8, 16, 22, 24, 32, 64), services=(service,), slo_ms=500)
    trials = []
    for users in (1, 2, 4, 8, 16, 32, 24, 22, 24, 22):
        level = next(one for one in record.levels if one.concurrency == users)
        checks = tuple(one for one in record.checks if one.concurrency == users)
        verdict = Verdict.PASS if users <= 22 else Verdict.FAIL
        trials.append(Trial(metrics=level, verdict=verdict, checks=checks, samples=()))
    return CapacityRecord(
        bundle_id=record.bundle_id, manifest_sha256=record.manifest_sha256, key_id=record.key_id,
        name=record.name, service=service, engine_name="vllm", engine_version="0.32.0",
        fingerprint=FINGERPRINT, host=record.host, plan=record.plan, began=BEGAN, ended=ENDED,
        verdict=Verdict.PASS, best=22, edge=24, trials=tuple(trials),
        reason="passes at 22 and fails at 24, each measured 2 times",
    )  # fmt: skip


def settings() -> ABRecord:
    """Two kernels compared, the second one better."""
    return ABRecord(
        bundle_id="b", manifest_sha256="a" * 64, began=BEGAN, ended=ENDED, margin=0.1,
        arms=(Arm(name="A", changes={"kernel": "deepgemm"}), Arm(name="B", changes={"kernel": "triton"})),
        primary="all@100 output_tokens_per_s", keep="B", decided=True, said=f"keep B (kernel=triton) {HOSTILE}",
        runs=(ArmRun(arm="A", pair=1, figures={}), ArmRun(arm="B", pair=1, figures={})),
        comparisons=tuple(
            Ratio(figure=f"chat@100 {metric}", better=better, ratio=ratio, low=ratio * 0.94, high=ratio * 1.07,
                  bootstrap_low=ratio * 0.95, bootstrap_high=ratio * 1.05, pairs=(ratio,) * 4,
                  wins="B", said="B is better")
            for metric, better, ratio in (
                ("output_tokens_per_s", "higher", 1.9), ("ttft_ms_p50", "lower", 0.62), ("tpot_ms_p50", "lower", 0.51),
            )
        ),
    )  # fmt: skip


BESIDE = Beside(searches=(search(),), settings=(settings(),))
