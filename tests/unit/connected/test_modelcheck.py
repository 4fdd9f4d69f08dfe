"""What is wrong with a model's files, whatever the engine's version."""

from __future__ import annotations

from typing import Any

import pytest

from bundler.build.modelcheck import judge_model
from bundler.domain.findings import Level
from bundler.domain.model_facts import ModelFacts
from bundler.domain.spec import BundleSpec

WHOLE: dict[str, Any] = {
    "name": "m", "format": "safetensors", "has_config": True, "has_tokenizer": True,
    "has_chat_template": True,
}  # fmt: skip


def judged(
    facts: dict[str, Any], engine: str = "vllm", args: tuple[str, ...] = (), **model: Any
) -> dict[str, Level]:
    spec = BundleSpec.model_validate(
        {
            "name": "b",
            "target": {"python": "3.12"},
            "models": [{"source": "local", "name": "m", "path": "m", **model},
                       {"source": "hub", "repo": "org/base", "revision": "main"}],
            "engine": {"name": engine, "version": "1", "package": "p"},
            "settings": {"args": args},
        }
    )  # fmt: skip
    found = judge_model(spec.models[0], ModelFacts.model_validate(WHOLE | facts), spec)
    return {item.code: item.level for item in found}


def test_a_whole_and_safe_model_has_no_finding() -> None:
    assert judged({}) == {}


E, W = Level.ERROR, Level.WARNING


@pytest.mark.parametrize(
    ("facts", "codes"),
    [
        ({"missing": ("a", "b", "c", "d")}, {"shards-missing": E}),
        ({"faults": ("x: broken",)}, {"model-faulty": E}),
        ({"pickles": ("pytorch_model.bin",)}, {"pickle-refused": E}),
        ({"remote_code": ("modeling.py",)}, {"remote-code": W}),
        ({"remote_code": ("org/x--modeling.py",)}, {"remote-code": W}),
        ({"format": "none"}, {"no-weights": E}),
        ({"has_config": False}, {"no-config": E}),
        ({"has_tokenizer": False}, {"no-tokenizer": E}),
        ({"has_chat_template": False}, {"no-chat-template": W}),
        ({"format": "adapter", "base_model": "org/other"}, {"adapter-without-base": W}),
        ({"format": "adapter", "base_model": "org/base"}, {}),
    ],
)
def test_each_fault_has_its_finding(facts: dict[str, Any], codes: dict[str, Level]) -> None:
    assert judged(facts) == codes


def test_a_pickle_is_allowed_by_name_alone() -> None:
    facts = {"pickles": ("a/b.bin", "c.pt")}
    assert judged(facts, allow_pickle=("*.bin",)) == {"pickle-allowed": W, "pickle-refused": E}
    assert judged(facts, allow_pickle=("*.bin", "c.pt")) == {"pickle-allowed": W}


def test_code_of_another_repository_is_an_error_once_it_would_be_run() -> None:
    facts = {"remote_code": ("org/x--modeling.py",)}
    assert judged(facts, args=("--trust_remote_code",)) == {"remote-code": E}


def test_flags_bring_what_the_folder_lacks() -> None:
    facts = {"has_tokenizer": False, "has_chat_template": False}
    assert judged(facts, args=("--tokenizer", "/t", "--chat-template=/c.jinja")) == {}


def test_roles() -> None:
    bare = {"format": "none", "has_config": False, "has_chat_template": False}
    assert judged(bare, role="tokenizer") == {}
    assert judged(bare | {"has_tokenizer": False}, role="draft") == {"no-weights": E}
    gguf = {"format": "gguf", "has_config": False}
    assert judged(gguf, engine="llama.cpp") == {}
