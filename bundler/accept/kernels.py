"""What was asked for against what the engine says that it runs. Silence proves nothing either way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bundler.domain.facts import ServiceState
from bundler.domain.running import Running, mismatches
from bundler.domain.spec import Service, Settings
from bundler.domain.verdict import Check, Verdict

_SILENT = "the engine's log does not say; see `airbundle kernels`"


def judge_kernels(services: Sequence[Service], states: Sequence[ServiceState]) -> tuple[Check, ...]:
    """A check for each choice that a service's settings make; none for what was left to the engine."""
    settings = {service.name: service.settings or Settings() for service in services}
    return tuple(
        check
        for state in states
        for check in _checks(state.service, settings.get(state.service, Settings()), state.running)
    )


def _checks(service: str, settings: Settings, running: Running | None) -> Iterator[Check]:
    seen = running or Running()
    wrong = {one.what: one for one in mismatches(settings, seen)}
    choices = (
        ("MoE kernel", settings.kernel, seen.moe),
        ("KV-cache type", settings.kv_cache_dtype, seen.kv_dtype),
    )
    for what, asked, runs in choices:
        if asked == "auto":
            continue
        found = wrong.get(what)
        verdict, reason = Verdict.PASS, ""
        if found is not None:
            verdict, reason = Verdict.FAIL, found.line
        elif not runs:
            verdict, reason = Verdict.INCONCLUSIVE, _SILENT
        yield Check(
            service=service,
            concurrency=0,
            what=f"{what}: {asked}",
            verdict=verdict,
            measured="/".join(runs) or "unknown",
            reason=reason,
        )
