"""`settings.args`: flags that this version does not know, values that it does not offer, clashes."""

from __future__ import annotations

from collections.abc import Iterator

from bundler.adapters.engine_vllm import history
from bundler.adapters.engine_vllm.arguments import Argument, resolve, wrong_values
from bundler.adapters.engine_vllm.case import Case, nearest, release
from bundler.domain.findings import Finding, Level

# Flag that airbundle renders -> key of the spec. The first three: the service is not found by others.
_IDENTITY = {
    "--host": "services[].host",
    "--port": "services[].port",
    "--model": "services[].model",
}
_OWN = {
    **_IDENTITY,
    "--served-model-name": "services[].name",
    "--max-model-len": "settings.max_model_len",
    "--max-num-seqs": "settings.max_num_seqs",
    "--gpu-memory-utilization": "settings.gpu_memory_utilization",
    "--tensor-parallel-size": "settings.tensor_parallel",
    "--kv-cache-dtype": "settings.kv_cache_dtype",
}


# What llama.cpp alone has -> what vLLM has instead.
_LLAMA_CPP = {
    "gpu_layers": "vLLM keeps part of the weights in RAM with --cpu-offload-gb in settings.args.",
    "cpu_moe_layers": "vLLM keeps part of the weights in RAM with --cpu-offload-gb in settings.args.",
    "fit": "vLLM stops when memory is short; `airbundle plan` calculates it.",
}


def judge(case: Case) -> Iterator[Finding]:
    """Each setting that vLLM has not; each argument that it would refuse, or that overrules the spec's keys."""
    for name, instead in _LLAMA_CPP.items():
        if getattr(case.settings, name) is not None:
            what = f"settings.{name}: llama.cpp has it, vLLM has not"
            yield case.finding("setting-ignored", what, fix=f"Leave it out. {instead}")
    for argument in case.arguments:
        yield from _clash(case, argument)
        if case.facts.flags:
            yield from _known(case, argument)


def _clash(case: Case, argument: Argument) -> Iterator[Finding]:
    flag = argument.flag
    key = _OWN.get(flag)
    if flag == "--moe-backend" and case.settings.kernel != "auto":
        key = "settings.kernel"
    if key is None:
        return
    instead = f"Use {key} instead."
    level = Level.ERROR if flag in _IDENTITY or flag == "--served-model-name" else None
    yield case.finding(
        "flag-clash",
        f"settings.args {argument.written}: airbundle sets {flag} as well, and this one wins",
        fix=instead,
        level=level,
    )


def _known(case: Case, argument: Argument) -> Iterator[Finding]:
    known = resolve(argument.flag, case.facts.flags)
    if known is None:
        yield _unknown(case, argument)
        return
    choices = case.facts.flags.get(known, ())
    for value in wrong_values(argument, choices):
        first = history.first_version("choice", f"{known}={value}")
        newer = bool(first and release(first) > case.release)
        near = nearest(value, choices)
        hint = f"; first in {first}" if newer else f"; the nearest is {near}" if near else ""
        yield case.finding(
            "flag-choice",
            f"settings.args {known} {value}: {case.engine} does not offer it{hint}",
            fix=f"Choose one of {', '.join(choices)}.",
        )


def _unknown(case: Case, argument: Argument) -> Finding:
    flag = argument.flag
    first, last = history.first_version("flag", flag), history.last_version("flag", flag)
    near = nearest(flag, case.facts.flags)
    if first and release(first) > case.release:
        hint, fix = f"; first in {first}", f"Use vLLM {first} or newer, or leave it out."
    elif last and release(last) < case.release:
        hint, fix = f"; last in {last}", "Leave it out."
    elif near:
        hint, fix = f"; the nearest is {near}", f"Write {near}."
    else:
        hint, fix = "", "Leave it out."
    return case.finding(
        "flag-unknown",
        f"settings.args {argument.written}: {case.engine} does not know it{hint}",
        fix=fix,
    )
