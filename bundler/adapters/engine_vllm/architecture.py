"""Whether the engine can serve the model at all: weight format and architecture."""

from __future__ import annotations

from collections.abc import Iterator

from bundler.adapters.engine_vllm import history
from bundler.adapters.engine_vllm.case import Case, nearest, release
from bundler.domain.catalogue import finding
from bundler.domain.findings import Finding

_GENERIC = "TransformersFor"


def judge(case: Case) -> Iterator[Finding]:
    """The model's architecture against the wheel's registry."""
    model = case.model
    if model is None:
        return
    label = case.situation.service.model
    if model.format == "gguf":
        yield finding("format-mismatch", label, f"a GGUF; {case.engine} reads safetensors")
        return
    known = case.facts.architectures
    if not known or not model.architectures or model.format == "adapter":
        return
    served = [name for name in model.architectures if name in known]
    if not served:
        yield _refused(case, model.architectures[0], bool(model.remote_code))
    elif all(_generic(known[name]) for name in served):
        yield finding(
            "arch-fallback",
            label,
            f"{case.engine} serves {served[0]} by the generic Transformers backend only",
        )


def _refused(case: Case, name: str, own_code: bool) -> Finding:
    last = case.facts.removed.get(name) or history.last_version("architecture", name)
    first = history.first_version("architecture", name)
    label = case.situation.service.model
    if first and release(first) > case.release:
        return finding(
            "arch-unknown",
            label,
            f"{name} is not known to {case.engine}; first in {first}",
            fix=f"Use vLLM {first} or newer.",
        )
    if name in case.facts.removed or (last and release(last) < case.release):
        return finding(
            "arch-removed",
            label,
            f"{name} is no longer served by {case.engine}; last in {last}",
            fix=f"Use vLLM {last}.",
        )
    if own_code and any(key.startswith(_GENERIC) for key in case.facts.architectures):
        return finding(
            "arch-fallback",
            label,
            f"{name} is not known to {case.engine}; the model's own code may run on the generic"
            " Transformers backend",
            fix="Review that code and pass --trust-remote-code, or use a version that knows it.",
        )
    near = nearest(name, case.facts.architectures)
    hint = f"; the nearest is {near}" if near else ""
    return finding("arch-unknown", label, f"{name} is not known to {case.engine}{hint}")


def _generic(place: str) -> bool:
    """`transformers:TransformersForCausalLM`, as the registry names its fallback."""
    module, _, name = place.partition(":")
    return module.rsplit(".", 1)[-1] == "transformers" or name.startswith(_GENERIC)
