"""What a run was of, so that its figures are compared with their like alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bundler.domain.facts import ServiceState
from bundler.domain.manifest import Manifest, ShippedModel
from bundler.domain.profile import Fingerprint, model_words, size_of
from bundler.domain.spec import Service, Settings
from bundler.errors import StateError
from bundler.format.golden import model_digest

# Prompts are made by words, and tokens of a plan are met about so well.
_LENGTH_TOLERANCE = 0.1
_LENGTHS = ("input_tokens", "output_tokens")
# What a GPU's full name may hold more than the name that people use; `Ti`, `NVL` or `PCIe` are other GPUs.
_NO_MATTER = re.compile(
    r"nvidia|geforce|tesla|\d+gb|hbm\d\w*|sxm\d?|generation|server|workstation|edition|blackwell"
)
_SAME_KV = {"fp8_e4m3": "fp8"}


@dataclass(frozen=True)
class Match:
    """Whether a profile is of a run's set-up; `unstated` by the profile, `unknown` of the run."""

    fits: bool
    unstated: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def fingerprint_of(
    manifest: Manifest, service: Service, state: ServiceState, host: Mapping[str, str]
) -> Fingerprint:
    """What a service of a bundle is, as it runs on this host."""
    settings = service.settings or Settings()
    model = next((one for one in manifest.models if one.name == service.model), None)
    gpus = _gpus(host, service.gpus)
    count = _gpu_count(manifest.engine.name, service, settings, gpus)
    running = state.running
    name = _model_name(model, service)
    return Fingerprint(
        model=name,
        size=size_of(name),
        digest=_digest(manifest, service.model),
        engine=manifest.engine.name,
        engine_version=manifest.engine.version,
        kernel=_said(running.moe if running else (), settings.kernel),
        kv_dtype=_said(running.kv_dtype if running else (), settings.kv_cache_dtype),
        gpu="/".join(dict.fromkeys(gpus)) or "none",
        gpu_count=count,
        processor=None if gpus else host.get("processor") or None,
        tensor_parallel=settings.tensor_parallel,
        context_tokens=settings.max_model_len,
        input_tokens=manifest.acceptance.input_tokens,
        output_tokens=manifest.acceptance.output_tokens,
    )


def _model_name(model: ShippedModel | None, service: Service) -> str:
    """As its publisher names it: the repository's, or else the bundle's own name."""
    if model is None or model.source != "hub":
        return service.model
    return model.origin.rstrip("/").rpartition("/")[2] or service.model


def _digest(manifest: Manifest, model: str) -> str | None:
    """The model's digest; None in a bundle that holds no files of it."""
    with suppress(StateError):
        return model_digest(manifest, model)
    return None


def _said(runs: Sequence[str], asked: str) -> str | None:
    """What runs; else what was asked for, if anything was."""
    return "/".join(runs) or (None if asked == "auto" else asked)


def _gpus(host: Mapping[str, str], wanted: Sequence[int]) -> list[str]:
    """Names of the GPUs that a service may use, from the receipt's host facts (`gpu 0: NAME, SIZE`)."""
    seen = {
        int(key[4:]): value.rpartition(",")[0] or value
        for key, value in host.items()
        if re.fullmatch(r"gpu \d+", key)
    }
    return [name for number, name in sorted(seen.items()) if not wanted or number in wanted]


def _gpu_count(engine: str, service: Service, settings: Settings, gpus: Sequence[str]) -> int:
    if not gpus:
        return 0
    if service.gpus:
        return len(gpus)
    # vLLM takes as many as it was told, llama.cpp all that it sees.
    return min(settings.tensor_parallel, len(gpus)) if engine == "vllm" else len(gpus)


def same(known: Fingerprint, run: Fingerprint, *, kernel: bool = True) -> Match:
    """Compare a run with what a profile states of itself.

    Args:
        known: the profile's fingerprint; what it leaves open is a caveat.
        run: the run's.
        kernel: whether the kernel must be the same.
    """
    if known.model is None and known.size is None:
        return Match(False)
    missing = [name for name in known.unstated if getattr(run, name) is not None]
    silent = []
    for name in type(known).model_fields:
        wanted, found = getattr(known, name), getattr(run, name)
        if wanted is None or (name == "kernel" and not kernel) or _stands_for(name, known):
            continue
        if found is None:
            silent.append(name)
        elif not _equal(name, wanted, found):
            return Match(False)
    return Match(
        True,
        tuple(f"{name.replace('_', ' ')} not stated" for name in missing),
        tuple(f"{name.replace('_', ' ')} of this run unknown" for name in silent),
    )


def _stands_for(name: str, known: Fingerprint) -> bool:
    """Whether a field matters only where another is not stated."""
    return name == "size" and known.model is not None


def _equal(name: str, wanted: object, found: object) -> bool:
    if name in _LENGTHS and isinstance(wanted, int) and isinstance(found, int):
        return abs(found - wanted) <= _LENGTH_TOLERANCE * wanted
    one, other = str(wanted).casefold(), str(found).casefold()
    if name == "model":
        return model_words(one) == model_words(other)
    if name == "gpu":
        return _same_gpu(one, other)
    return _SAME_KV.get(one, one) == _SAME_KV.get(other, other)


def _same_gpu(wanted: str, found: str) -> bool:
    """Whether a GPU's full name is of the product that a shorter name means."""
    few, many = set(re.split(r"[\s-]+", wanted)), set(re.split(r"[\s-]+", found))
    return set(_telling(few)) == set(_telling(many))


def _telling(words: set[str]) -> Iterator[str]:
    return (word for word in words if word and not _NO_MATTER.fullmatch(word))


def differences(one: Fingerprint, other: Fingerprint) -> tuple[str, ...]:
    """Fields in which two runs differ, with both values."""
    return tuple(
        f"{name.replace('_', ' ')}: {a} / {b}"
        for name in type(one).model_fields
        if (a := getattr(one, name)) != (b := getattr(other, name))
    )
