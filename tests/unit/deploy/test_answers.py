"""Answers about MoE and about what is not sound: from hand-made evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bundler.deploy.answers import answers
from bundler.deploy.evidence import Evidence, Experts, Kept
from bundler.domain.facts import AcceptanceRecord, ReleaseRecord
from bundler.domain.questions import Answer, Source
from bundler.domain.spec import Acceptance
from bundler.domain.verdict import Gate
from tests.unit.accept.known import bundle, run

AT = "2026-12-02T00:00:00Z"


def source(name: str) -> Source:
    return Source(record=name, at=AT, sha256="a" * 64)


def evidence(record: AcceptanceRecord, **changes: Any) -> Evidence:
    made = bundle(Acceptance(concurrency=(1,), requests=60))
    engine = made.manifest.engine.model_copy(update={"name": "vllm"})
    verified = made.model_copy(
        update={"manifest": made.manifest.model_copy(update={"engine": engine})}
    )
    release = ReleaseRecord(
        bundle_id=verified.bundle_id, manifest_sha256=verified.digest, key_id=None, installed="",
        root="/srv/llm", python="venv/bin/python", engine_name="vllm", engine_version="0.17.1",
        services=verified.manifest.services,
    )  # fmt: skip
    kept = Kept(release, source("release.json"))
    runs = [Kept(record, source("acceptance/x/record.json"))]
    return Evidence(
        current=verified, release=kept, runs=runs, installed=[(kept, verified)],
        experts=[Experts("m", 128, source("models/m/config.json"))], **changes,
    )  # fmt: skip


def by_key(found: Evidence) -> dict[str, Answer]:
    return {one.key: one for one in answers(found, Path("/srv/the llm"), AT).answers}


def test_a_kernel_that_was_read_back_is_named_and_one_that_was_not_is_missing() -> None:
    said = by_key(evidence(run(moe=("triton",))))["moe"]
    words = [one.said.en for one in said.statements]
    assert words[0] == "m: MoE of 128 experts"
    assert "MoE kernel that ran: triton" in words[1]
    assert [one.command for one in said.lacking] == [
        "airbundle accept --ab kernel=deepgemm,triton --root '/srv/the llm'"
    ]
    silent = by_key(evidence(run()))["moe"]
    assert "airbundle accept --root '/srv/the llm'" in [one.command for one in silent.lacking]


def test_figures_of_a_level_that_failed_a_gate_are_not_told() -> None:
    record = run()
    [level] = record.levels
    gate = Gate(
        service=level.service, concurrency=level.concurrency, name="client lag", state="failed",
        measured="90 ms", limit="5 ms",
    )  # fmt: skip
    said = by_key(evidence(record.model_copy(update={"gates": (gate,)})))["users"]
    [line] = [one.said.en for one in said.statements]
    assert line.endswith("NOT COMPARABLE (gate client lag failed)")
    assert said.state == "partly"


def test_a_run_of_another_bundle_or_from_before_the_installation_answers_nothing() -> None:
    other = run().model_copy(update={"manifest_sha256": "b" * 64})
    assert by_key(evidence(other))["users"].state == "open"
    early = evidence(run(began="2020-01-01T00:00:00Z"))
    late = early.release.what.model_copy(update={"installed": AT})
    early.release = Kept(late, early.release.source)
    assert by_key(early)["users"].state == "open"
