"""ModelFacts -> findings that do not depend on the engine's version: is all there, is it safe?"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from bundler.domain.catalogue import finding
from bundler.domain.findings import Finding, Level
from bundler.domain.model_facts import ModelFacts
from bundler.domain.sources import ModelRef
from bundler.domain.spec import BundleSpec

_SHOWN = 3


def judge_model(ref: ModelRef, facts: ModelFacts, spec: BundleSpec) -> tuple[Finding, ...]:
    """Everything that is wrong with the files of one model, or worth a reviewer's look."""
    found = [*_whole(facts), *_safe(ref, facts, spec)]
    if ref.role != "tokenizer":
        found += _weights(facts, spec)
    if ref.role in ("model", "tokenizer"):
        found += _speaks(ref, facts, spec)
    if ref.role == "adapter" or facts.format == "adapter":
        found += _adapts(facts, spec)
    return tuple(found)


def _whole(facts: ModelFacts) -> Iterator[Finding]:
    if facts.missing:
        more = f" and {len(facts.missing) - _SHOWN} more" if len(facts.missing) > _SHOWN else ""
        yield finding("shards-missing", facts.name, f"{', '.join(facts.missing[:_SHOWN])}{more}")
    for fault in facts.faults:
        yield finding("model-faulty", facts.name, fault)


def _safe(ref: ModelRef, facts: ModelFacts, spec: BundleSpec) -> Iterator[Finding]:
    for path in facts.pickles:
        allowed = any(fnmatchcase(path, pattern) for pattern in ref.allow_pickle)
        yield finding("pickle-allowed" if allowed else "pickle-refused", facts.name, path)
    foreign = [path for path in facts.remote_code if "--" in path]
    own = [path for path in facts.remote_code if "--" not in path]
    if own:
        yield finding("remote-code", facts.name, f"auto_map names {', '.join(own)}")
    if foreign:
        asked = any("trust-remote-code" in word.replace("_", "-") for s in spec.resolved_services()
                    for word in (s.settings.args if s.settings else ()))  # fmt: skip
        yield finding(
            "remote-code",
            facts.name,
            f"auto_map names code of another repository, which cannot be had behind the gap:"
            f" {', '.join(foreign)}",
            fix="Put that repository's files into the model's folder and name them in auto_map.",
            level=Level.ERROR if asked else None,
        )


def _weights(facts: ModelFacts, spec: BundleSpec) -> Iterator[Finding]:
    if facts.format == "none" or (facts.format == "pickle" and not facts.pickles):
        wanted = "GGUF" if spec.engine.name == "llama.cpp" else "safetensors"
        yield finding("no-weights", facts.name, f"no {wanted} file among its files")
    elif spec.engine.name == "vllm" and not facts.has_config and facts.format == "safetensors":
        yield finding("no-config", facts.name, "no config.json among its files")


def _speaks(ref: ModelRef, facts: ModelFacts, spec: BundleSpec) -> Iterator[Finding]:
    services = [service for service in spec.resolved_services() if service.model == facts.name]
    args = [
        word for service in services for word in (service.settings.args if service.settings else ())
    ]
    given = {word.partition("=")[0].replace("_", "-") for word in args}
    if not facts.has_tokenizer and "--tokenizer" not in given and facts.format != "none":
        yield finding("no-tokenizer", facts.name, "no tokenizer.json, tokenizer.model or the like")
    if ref.role == "model" and not facts.has_chat_template and "--chat-template" not in given:
        yield finding(
            "no-chat-template", facts.name, "neither in tokenizer_config.json nor beside it"
        )


def _adapts(facts: ModelFacts, spec: BundleSpec) -> Iterator[Finding]:
    base = facts.base_model
    carried = {ref.repo for ref in spec.models} | {ref.label for ref in spec.models}
    if base and base not in carried and base.rstrip("/").rsplit("/", 1)[-1] not in carried:
        yield finding("adapter-without-base", facts.name, f"its base model {base} is not carried")
