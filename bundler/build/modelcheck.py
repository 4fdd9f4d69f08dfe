"""ModelFacts -> findings that do not depend on the engine's version: is all there, is it safe?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bundler.build.modelfacts import GGUF_ENGINES
from bundler.domain.catalogue import finding
from bundler.domain.findings import Finding, Level
from bundler.domain.model_facts import ModelFacts
from bundler.domain.sources import ModelRef
from bundler.domain.spec import BundleSpec, Service
from bundler.format.globs import matches, wanted

_SHOWN = 3


@dataclass(frozen=True)
class _Case:
    """One model, the services that serve it, and the flags that the spec gives those."""

    ref: ModelRef
    facts: ModelFacts
    spec: BundleSpec
    serving: tuple[Service, ...]

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def reads_gguf(self) -> bool:
        return self.spec.engine.name in GGUF_ENGINES

    def given(self, *flags: str) -> bool:
        """Whether a service that serves the model, or any if none does, has one of the flags."""
        services = self.serving or self.spec.resolved_services()
        words = [w for s in services for w in (s.settings.args if s.settings else ())]
        return bool({word.partition("=")[0].replace("_", "-") for word in words} & set(flags))


def judge_model(ref: ModelRef, facts: ModelFacts, spec: BundleSpec) -> tuple[Finding, ...]:
    """Everything that is wrong with the files of one model, or worth a reviewer's look."""
    services = (service for service in spec.resolved_services() if service.model == facts.name)
    case = _Case(ref, facts, spec, tuple(services))
    found = [*_whole(case), *_pickles(case), *_code(case), *_serves(case)]
    if ref.role == "adapter" or facts.format == "adapter":
        found += _adapts(case)
    elif ref.role != "tokenizer":
        found += _weights(case)
    if ref.role in ("model", "tokenizer"):
        found += _speaks(case)
    return tuple(found)


def _whole(case: _Case) -> Iterator[Finding]:
    facts, ref = case.facts, case.ref
    if facts.missing:
        left_out = [path for path in facts.missing if not wanted(path, ref.include, ref.exclude)]
        gone = [path for path in facts.missing if path not in left_out]
        parts = [_listed(gone)] if gone else []
        parts += [f"left out by include and exclude: {_listed(left_out)}"] if left_out else []
        yield finding("shards-missing", case.name, "; ".join(parts))
    for fault in facts.faults:
        yield finding("model-faulty", case.name, fault)
    if facts.unused_weights:
        yield finding(
            "weights-unused",
            case.name,
            f"{_listed(facts.unused_weights)}; {_listed(facts.weight_files)} is what is loaded",
        )


def _pickles(case: _Case) -> Iterator[Finding]:
    facts, allow = case.facts, case.ref.allow_pickle
    allowed = [path for path in facts.pickles if matches(path, allow)]
    refused = [path for path in facts.pickles if path not in allowed]
    if refused:
        patterns = ", ".join(f'"{path}"' for path in refused[:_SHOWN])
        spare = facts.format in ("safetensors", "gguf") and "; the engine does not need it"
        yield finding(
            "pickle-refused",
            case.name,
            f"{_listed(refused)}{spare or ''}",
            fix=f"Add `exclude: [{patterns}]` to the model, use a safetensors revision, or allow it"
            " by name with `allow_pickle`.",
        )
    if allowed:
        yield finding("pickle-allowed", case.name, _listed(allowed))
    if facts.code_files:
        yield finding("code-in-weights", case.name, _listed(facts.code_files))


def _code(case: _Case) -> Iterator[Finding]:
    facts, asked = case.facts, case.given("--trust-remote-code")
    foreign = [path for path in facts.remote_code if "--" in path]
    own = [path for path in facts.remote_code if "--" not in path]
    if own:
        runs = "; settings.args have the engine run it" if asked else ""
        yield finding("remote-code", case.name, f"auto_map names {_listed(own)}{runs}")
    if facts.absent_code:
        yield finding(
            "remote-code",
            case.name,
            f"auto_map names {_listed(facts.absent_code)}, which is not among its files",
            fix="Include the named files, or leave trust_remote_code off.",
            level=Level.ERROR if asked else None,
        )
    if foreign:
        yield finding(
            "remote-code",
            case.name,
            "auto_map names code of another repository, which cannot be had behind the gap:"
            f" {_listed(foreign)}",
            fix="Put that repository's files into the model's folder and name them in auto_map.",
            level=Level.ERROR if asked else None,
        )
    if facts.python_files:
        yield finding(
            "remote-code",
            case.name,
            f"Python files that auto_map does not name: {_listed(facts.python_files)}",
            fix="Exclude them if nobody needs them.",
            level=Level.NOTE,
        )


def _serves(case: _Case) -> Iterator[Finding]:
    """Only a model or a draft is whole enough to be served."""
    adapter = case.facts.format == "adapter"
    if case.serving and (adapter or case.ref.role in ("tokenizer", "adapter")):
        kind = "adapter" if adapter else case.ref.role
        yield finding(
            "no-weights",
            case.name,
            f"service {case.serving[0].name} serves it, but it is of kind {kind}",
            fix="Give the service the name of a whole model; an adapter or tokenizer is named in its args.",
        )


def _weights(case: _Case) -> Iterator[Finding]:
    facts = case.facts
    if facts.format == "none":
        what = "GGUF" if case.reads_gguf else "safetensors file in its own folder"
        yield finding("no-weights", case.name, f"no {what} among its files")
    elif not (case.reads_gguf or facts.has_config or facts.format == "gguf"):
        yield finding("no-config", case.name, "no config.json among its files")
    # Of what a service serves, the engine's adapter says the same.
    draft = case.ref.role == "draft" and not case.serving and facts.format != "none"
    if draft and case.reads_gguf != (facts.format == "gguf"):
        reads = "GGUF" if case.reads_gguf else "safetensors"
        what = f"{facts.format} weights; {case.spec.engine.name} reads {reads}"
        yield finding("format-mismatch", case.name, what)


def _speaks(case: _Case) -> Iterator[Finding]:
    facts, role = case.facts, case.ref.role
    expected = facts.format != "none" or role == "tokenizer"
    if not facts.has_tokenizer and expected and not case.given("--tokenizer"):
        yield finding("no-tokenizer", case.name, "no tokenizer.json, tokenizer.model or the like")
    given = case.given("--chat-template", "--chat-template-file")
    given = given or "template" in facts.companions
    if role == "model" and not facts.has_chat_template and not given:
        yield _silent(case)


def _silent(case: _Case) -> Finding:
    if case.spec.engine.name == "ollama":
        return finding(
            "no-chat-template",
            case.name,
            "no tokenizer.chat_template in the GGUF, and no file `template` beside it",
            fix="Carry the model's template in Ollama's form as a file `template`.",
        )
    if case.reads_gguf:
        return finding(
            "no-chat-template",
            case.name,
            "no tokenizer.chat_template in the GGUF; llama-server takes ChatML instead",
            fix="Carry the model's template and name it with --chat-template-file.",
        )
    return finding(
        "no-chat-template", case.name, "neither in tokenizer_config.json nor beside it"
    )  # fmt: skip


def _adapts(case: _Case) -> Iterator[Finding]:
    facts, spec = case.facts, case.spec
    if facts.format == "gguf":
        return
    if facts.format != "adapter":
        yield finding("no-config", case.name, "an adapter without adapter_config.json")
        return
    if not (facts.weight_files or facts.pickles):
        yield finding("no-weights", case.name, "no adapter_model.safetensors among its files")
    base = facts.base_model
    carried = {ref.repo for ref in spec.models} | {ref.label for ref in spec.models}
    if not base:
        yield finding(
            "adapter-without-base", case.name, "adapter_config.json names no base model"
        )  # fmt: skip
    elif base not in carried and base.rstrip("/").rsplit("/", 1)[-1] not in carried:
        yield finding("adapter-without-base", case.name, f"its base model {base} is not carried")


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
