"""Fingerprints, profiles and runs for the tests of ranges and baselines."""

from __future__ import annotations

from typing import Any

import pytest

from bundler.accept import watching
from bundler.accept.pipeline import accept
from bundler.domain.facts import AcceptanceRecord
from bundler.domain.manifest import ShippedModel, VerifiedManifest
from bundler.domain.profile import Fingerprint, Profile
from bundler.domain.running import Running
from bundler.domain.spec import Acceptance, Service, Settings
from tests.unit.accept.fake_chat import Behaviour, CountingProgress, FakeChat, SimulatedTime
from tests.unit.accept.test_acceptance_pipeline import state, verified

H200 = {"gpu 0": "NVIDIA H200, 139.8 GiB", "driver": "570.1", "processor": "a Xeon"}


def fingerprint(**changes: Any) -> Fingerprint:
    values = {
        "model": "Qwen3-30B-A3B-FP8", "size": "30B", "engine": "vllm", "engine_version": "0.17.1",
        "kernel": "triton", "kv_dtype": "fp8_e4m3", "gpu": "NVIDIA H200", "gpu_count": 1,
        "tensor_parallel": 1, "input_tokens": 64, "output_tokens": 32, "digest": "d" * 64,
    }  # fmt: skip
    return Fingerprint.model_validate(values | changes)


def profile(*figures: dict[str, Any], **changes: Any) -> Profile:
    values: dict[str, Any] = {
        "name": "known", "kind": "measured", "source": "a test", "conditions": "none",
        "fingerprint": fingerprint(),
        "figures": figures or ({"metric": "output_tokens_per_s", "concurrency": 1, "runs": [78]},),
    }  # fmt: skip
    return Profile.model_validate(values | changes)


def bundle(plan: Acceptance, **settings: Any) -> VerifiedManifest:
    made = verified(plan)
    manifest = made.manifest.model_copy(
        update={
            "models": (
                ShippedModel(name="m", source="hub", origin="Qwen/Qwen3-30B-A3B-FP8", revision="f" * 40),
            ),
            "services": (Service(name="chat", model="m", settings=Settings(**settings)),),
        }
    )  # fmt: skip
    return made.model_copy(update={"manifest": manifest})


def run(
    *,
    gap_s: float = 0.01,
    profiles: tuple[Profile, ...] = (),
    moe: tuple[str, ...] = (),
    plan: Acceptance | None = None,
    began: str = "",
    behaviour: Behaviour | None = None,
) -> AcceptanceRecord:
    """An acceptance run on a simulated H200, 60 requests of one user unless `plan` says otherwise."""
    time = SimulatedTime()
    shown = state("chat").model_copy(update={"running": Running(moe=moe)})
    # On a simulated clock; how busy the machine is on which that runs is no part of it.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching, "_TICK_S", 1e6)
        record = accept(
            states=(shown,),
            verified=bundle(plan or Acceptance(concurrency=(1,), requests=60)),
            chat=FakeChat(time, behaviour or Behaviour(gap_s=gap_s)),
            clock=time,
            progress=CountingProgress(),
            host=H200,
            profiles=profiles,
        )
    return record.model_copy(update={"began": began}) if began else record
