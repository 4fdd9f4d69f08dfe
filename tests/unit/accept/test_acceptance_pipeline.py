from __future__ import annotations

import pytest

from bundler.accept.pipeline import accept
from bundler.domain.facts import AcceptanceRecord, ServiceState
from bundler.domain.manifest import (
    Manifest,
    ShippedEngine,
    ShippedModel,
    ShippedTool,
    VerifiedManifest,
)
from bundler.domain.spec import Acceptance, Slo
from bundler.domain.target import Target
from bundler.domain.verdict import Verdict
from tests.unit.accept.fake_chat import Behaviour, CountingProgress, FakeChat, SimulatedTime


def verified(plan: Acceptance, key_id: str | None = "0123456789abcdef") -> VerifiedManifest:
    manifest = Manifest(
        block_size=4096,
        sequence=1,
        name="demo",
        created="2026-01-01T00:00:00Z",
        target=Target(python="3.11", glibc="2.31"),
        engine=ShippedEngine(name="llama.cpp", version="1.0", distribution="toy", requirements="r"),
        tool=ShippedTool(version="0.1.0", requirements="t", uv_wheel="u"),
        models=(
            ShippedModel(name="a", source="hub", origin="o/a", revision="f" * 40),
            ShippedModel(name="b", source="gguf", origin="b.gguf"),
        ),
        services=(),
        acceptance=plan,
        volumes=(),
        loose=(),
        entries=(),
    )
    return VerifiedManifest(manifest=manifest, digest="a" * 64, key_id=key_id)


def state(name: str) -> ServiceState:
    return ServiceState(
        service=name, bundle_id="demo", pid=1, start_ticks=1, boot="b", port=8000, url="http://127.0.0.1:8000",
        argv=("serve",), env={}, started="2026-01-01T00:00:00Z",
    )  # fmt: skip


class Run:
    def __init__(
        self,
        plan: Acceptance,
        behaviour: Behaviour | None = None,
        *services: str,
        key_id: str | None = "k",
    ) -> None:
        self.time = SimulatedTime()
        self.chat = FakeChat(self.time, behaviour or Behaviour())
        self.progress = CountingProgress()
        self.record: AcceptanceRecord = accept(
            states=tuple(map(state, services or ("chat",))),
            verified=verified(plan, key_id),
            chat=self.chat,
            clock=self.time,
            progress=self.progress,
            host={"cores": "2"},
        )


@pytest.fixture(autouse=True)
def _no_real_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bundler.accept.load._LONGEST_STAGGER_S", 0.0)


def test_every_service_is_measured_at_every_level() -> None:
    run = Run(Acceptance(concurrency=(1, 4), requests=60, slo=Slo(ttft_ms=500)), None, "x", "y")
    assert list(run.record.samples) == ["x@1", "x@4", "y@1", "y@4"]
    assert [(m.service, m.concurrency) for m in run.record.levels] == [
        ("x", 1), ("x", 4), ("y", 1), ("y", 4),
    ]  # fmt: skip
    assert run.record.verdict is Verdict.PASS
    assert {request.model for request in run.chat.requests} == {"x", "y"}
    assert run.progress.notes[1].startswith("x x4: 60 of 60 answered, TTFT p95 100.0 ms")


def test_the_record_says_what_ran() -> None:
    record = Run(Acceptance(requests=1)).record
    assert record.bundle_id == "demo-aaaaaaaaaaaa"
    assert record.models == (f"a @ {'f' * 40}", "b @ no revision (gguf)")
    assert record.host == {"cores": "2"}
    assert record.warnings[0] != "the bundle is UNSIGNED: nobody vouches for what was measured"


def test_a_record_survives_its_json() -> None:
    record = Run(Acceptance(requests=5)).record
    assert AcceptanceRecord.model_validate_json(record.model_dump_json()) == record


def test_an_unsigned_bundle_is_measured_with_a_warning() -> None:
    record = Run(Acceptance(requests=5), key_id=None).record
    assert record.warnings[0] == "the bundle is UNSIGNED: nobody vouches for what was measured"


def test_an_engine_that_answers_nothing_is_a_result() -> None:
    run = Run(Acceptance(requests=10), Behaviour(fails=lambda _: "HTTP 500: boom"))
    assert run.record.verdict is Verdict.FAIL
    assert run.record.checks[0].reason == "every request failed: HTTP 500: boom"
    assert list(run.record.levels[0].errors) == [
        "HTTP 500: boom", "not sent after 5 failures in a row: HTTP 500: boom",
    ]  # fmt: skip
    assert run.progress.notes[0] == "chat x1: 0 of 10 answered: HTTP 500: boom"


def test_an_engine_that_hangs_costs_three_time_outs_for_two_levels() -> None:
    hang = Behaviour(fails=lambda _: "no whole answer within 600 s", fail_after_s=600)
    run = Run(Acceptance(concurrency=(1, 8), requests=10), hang)
    assert len(run.chat.requests) == 3
    assert [(m.requests, m.succeeded) for m in run.record.levels] == [(10, 0), (40, 0)]
    assert run.record.verdict is Verdict.FAIL
    assert all("no whole answer within 600 s" in c.reason for c in run.record.checks)


def test_a_service_that_hangs_casts_no_doubt_on_the_next() -> None:
    hang = Behaviour(fails=lambda n: "no whole answer" if n <= 2 else "", fail_after_s=600)
    run = Run(Acceptance(concurrency=(1,), requests=10), hang, "x", "y")
    assert [m.succeeded for m in run.record.levels] == [0, 10]


def test_a_level_named_twice_is_measured_once() -> None:
    assert list(Run(Acceptance(concurrency=(2, 2), requests=10)).record.samples) == ["chat@2"]


def test_no_prompt_is_sent_twice_in_a_run() -> None:
    run = Run(Acceptance(concurrency=(1, 2), requests=10), None, "x", "y")
    prompts = [request.prompt for request in run.chat.requests]
    assert len(set(prompts)) == len(prompts)


def test_a_run_that_no_profile_is_of_says_so() -> None:
    from tests.unit.accept.known import H200, bundle, profile

    time, progress = SimulatedTime(), CountingProgress()
    accept(
        states=(state("chat"),),
        verified=bundle(Acceptance(concurrency=(1,), requests=10)),
        chat=FakeChat(time),
        clock=time,
        progress=progress,
        host=H200,
        profiles=(profile(),),
    )
    assert progress.notes[-1].startswith(
        "none of 1 profiles is of Qwen3-30B-A3B-FP8 on NVIDIA H200"
    )
