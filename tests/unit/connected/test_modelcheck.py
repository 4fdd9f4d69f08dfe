"""What is wrong with a model's files, whatever the engine's version."""

from __future__ import annotations

from typing import Any

import pytest

from bundler.build.modelcheck import judge_model
from bundler.domain.findings import Finding, Level
from bundler.domain.model_facts import ModelFacts
from bundler.domain.spec import BundleSpec

WHOLE: dict[str, Any] = {
    "name": "m", "format": "safetensors", "has_config": True, "has_tokenizer": True,
    "has_chat_template": True, "weight_files": ("model.safetensors",),
}  # fmt: skip


_ORIGIN = {"ollama": {"archive": {"path": "o.tgz", "sha256": "0" * 64}}}


def found(
    facts: dict[str, Any],
    engine: str = "vllm",
    args: tuple[str, ...] = (),
    serves: str = "m",
    **model: Any,
) -> tuple[Finding, ...]:
    spec = BundleSpec.model_validate(
        {
            "name": "b",
            "target": {"python": "3.12"},
            "models": [{"source": "local", "name": "m", "path": "m", **model},
                       {"source": "hub", "repo": "org/base", "revision": "main"}],
            "engine": {"name": engine, "version": "1", **_ORIGIN.get(engine, {"package": "p"})},
            "services": [{"name": "s", "model": serves, "settings": {"args": args}}],
        }
    )  # fmt: skip
    return judge_model(spec.models[0], ModelFacts.model_validate(WHOLE | facts), spec)


def judged(facts: dict[str, Any], **more: Any) -> dict[str, Level]:
    return {item.code: item.level for item in found(facts, **more)}


def test_a_whole_and_safe_model_has_no_finding() -> None:
    assert judged({}) == {}
    assert judged({"format": "gguf", "has_config": False}, engine="llama.cpp") == {}


def test_ollama_reads_gguf_and_takes_a_template_beside_it() -> None:
    gguf = {"format": "gguf", "has_config": False}
    assert judged(gguf, engine="ollama") == {}
    silent = {**gguf, "has_chat_template": False}
    (one,) = found(silent, engine="ollama")
    assert (one.code, one.level) == ("no-chat-template", Level.WARNING)
    assert "a file `template`" in one.fix
    assert judged({**silent, "companions": ("template",)}, engine="ollama") == {}
    nothing = {"format": "none", "has_config": False}
    assert "no GGUF" in found(nothing, engine="ollama")[0].what


E, W, N = Level.ERROR, Level.WARNING, Level.NOTE
BARE = {"format": "none", "has_config": False, "has_tokenizer": False, "has_chat_template": False}
ADAPTER = {"format": "adapter", "weight_files": ("adapter_model.safetensors",), "has_config": False}


@pytest.mark.parametrize(
    ("facts", "codes"),
    [
        ({"missing": ("a", "b", "c", "d")}, {"shards-missing": E}),
        ({"faults": ("x: broken",)}, {"model-faulty": E}),
        ({"unused_weights": ("consolidated.safetensors",)}, {"weights-unused": W}),
        ({"pickles": ("pytorch_model.bin",)}, {"pickle-refused": E}),
        ({"code_files": ("tf_model.h5",)}, {"code-in-weights": W}),
        ({"remote_code": ("modeling.py",)}, {"remote-code": W}),
        ({"remote_code": ("org/x--modeling.py",)}, {"remote-code": W}),
        ({"remote_code": ("x.py",), "absent_code": ("x.py",)}, {"remote-code": W}),
        ({"python_files": ("convert.py",)}, {"remote-code": N}),
        ({"format": "none"}, {"no-weights": E}),
        ({"has_config": False}, {"no-config": E}),
        ({"format": "pickle", "has_config": False}, {"no-config": E}),
        ({"has_tokenizer": False}, {"no-tokenizer": E}),
        ({"has_chat_template": False}, {"no-chat-template": W}),
    ],
)
def test_each_fault_has_its_finding(facts: dict[str, Any], codes: dict[str, Level]) -> None:
    assert judged(facts) == codes


def test_shards_that_the_filters_leave_out_are_told_from_those_that_do_not_exist() -> None:
    missing = {"missing": ("model-2.safetensors", "other-1.safetensors")}
    (one,) = found(missing, exclude=("model-*",))
    assert one.what == (
        "other-1.safetensors; left out by include and exclude: model-2.safetensors"
    )  # fmt: skip


def test_a_pickle_beside_safetensors_is_said_to_be_spare_with_the_line_that_drops_it() -> None:
    (one,) = found({"pickles": ("pytorch_model.bin",)})
    assert one.what == "pytorch_model.bin; the engine does not need it"
    assert '`exclude: ["pytorch_model.bin"]`' in one.fix
    (one,) = found({"pickles": tuple(f"{n}.bin" for n in range(9)), "format": "pickle"})
    assert one.what == "0.bin, 1.bin, 2.bin and 6 more"


def test_a_pickle_is_allowed_by_name_alone() -> None:
    facts = {"pickles": ("a/b.bin", "c.pt")}
    assert judged(facts, allow_pickle=("*.bin",)) == {"pickle-allowed": W, "pickle-refused": E}
    assert judged(facts, allow_pickle=("*.bin", "c.pt")) == {"pickle-allowed": W}


TRUST = ("--trust_remote_code",)


@pytest.mark.parametrize(
    "facts",
    [
        {"remote_code": ("org/x--modeling.py",)},
        {"remote_code": ("gone.py",), "absent_code": ("gone.py",)},
    ],
)
def test_code_that_is_not_carried_is_an_error_once_it_would_be_run(facts: dict[str, Any]) -> None:
    assert judged(facts, args=TRUST) == {"remote-code": E}
    # Another model's service says nothing about this one.
    assert judged(facts, serves="base") == {"remote-code": W}


def test_only_the_flags_of_its_own_services_count() -> None:
    spec = BundleSpec.model_validate(
        {
            "name": "b",
            "target": {"python": "3.12"},
            "models": [{"source": "local", "name": "m", "path": "m"},
                       {"source": "hub", "repo": "org/base", "revision": "main"}],
            "engine": {"name": "vllm", "version": "1"},
            "services": [
                {"name": "s", "model": "m"},
                {"name": "t", "model": "base", "port": 8001, "settings": {"args": TRUST}},
            ],
        }
    )  # fmt: skip
    facts = ModelFacts.model_validate(WHOLE | {"remote_code": ("org/x--modeling.py",)})
    assert [item.level for item in judge_model(spec.models[0], facts, spec)] == [W]
    # A draft is loaded by whichever service names it: the flags of all count.
    draft = spec.models[0].model_copy(update={"name": "d", "role": "draft"})
    facts = facts.model_copy(update={"name": "d"})
    assert [item.level for item in judge_model(draft, facts, spec)] == [E]


def test_code_that_will_be_run_is_said_to_be() -> None:
    (one,) = found({"remote_code": ("modeling.py",)}, args=TRUST)
    assert one.what == "auto_map names modeling.py; settings.args have the engine run it"


def test_flags_bring_what_the_folder_lacks() -> None:
    facts = {"has_tokenizer": False, "has_chat_template": False}
    assert judged(facts, args=("--tokenizer", "/t", "--chat-template=/c.jinja")) == {}
    gguf = {"format": "gguf", "has_chat_template": False}
    assert "ChatML" in found(gguf, engine="llama.cpp")[0].what
    assert judged(gguf, engine="llama.cpp", args=("--chat-template-file", "/c.jinja")) == {}


@pytest.mark.parametrize(
    ("role", "facts", "codes"),
    [
        ("tokenizer", BARE | {"has_tokenizer": True}, {}),
        ("tokenizer", BARE, {"no-tokenizer": E}),
        ("draft", BARE, {"no-weights": E}),
        ("draft", {"has_tokenizer": False, "has_chat_template": False}, {}),
        ("draft", {"has_config": False}, {"no-config": E}),
        ("adapter", ADAPTER | {"base_model": "org/base"}, {}),
        ("adapter", ADAPTER | {"base_model": "/home/me/base/"}, {}),
        ("adapter", ADAPTER | {"base_model": "org/other"}, {"adapter-without-base": W}),
        ("adapter", ADAPTER, {"adapter-without-base": W}),
        ("adapter", ADAPTER | {"base_model": "org/base", "weight_files": ()}, {"no-weights": E}),
        ("adapter", BARE, {"no-config": E}),
        ("adapter", {"format": "gguf"}, {}),
    ],
)
def test_each_role_asks_for_what_it_needs(
    role: str, facts: dict[str, Any], codes: dict[str, Level]
) -> None:
    assert judged(facts, role=role, serves="base") == codes


def test_a_draft_has_weights_that_its_engine_reads() -> None:
    gguf = {"format": "gguf", "has_config": False}
    assert judged(gguf, role="draft", serves="base") == {"format-mismatch": E}
    assert judged({}, role="draft", serves="base", engine="llama.cpp") == {"format-mismatch": E}
    assert judged(gguf, role="draft", serves="base", engine="llama.cpp") == {}


@pytest.mark.parametrize(
    ("role", "facts"),
    [("tokenizer", BARE | {"has_tokenizer": True}),
     ("adapter", ADAPTER | {"base_model": "org/base"}),
     ("model", ADAPTER | {"base_model": "org/base", "has_tokenizer": True})],
)  # fmt: skip
def test_what_is_no_whole_model_cannot_be_served(role: str, facts: dict[str, Any]) -> None:
    (one,) = found(facts, role=role)
    assert (one.code, one.level) == ("no-weights", E)
    assert "service s serves it" in one.what
