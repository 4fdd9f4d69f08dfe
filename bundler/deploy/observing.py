"""Started services -> which kernels run, beside what was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bundler.deploy.launch import Launcher
from bundler.domain.facts import ReleaseRecord, ServiceState
from bundler.domain.running import Mismatch, Running, mismatches
from bundler.domain.spec import Settings


@dataclass(frozen=True)
class Observed:
    """One service: its record with what runs filled in, and where that differs from its settings."""

    state: ServiceState
    settings: Settings
    running: Running
    mismatches: tuple[Mismatch, ...]

    def rows(self) -> list[list[str]]:
        """What, asked for, runs, said by; `unknown` where the engine says nothing."""
        return [
            [what, asked, runs or "unknown", self.running.evidence.get(field, "-")[:110]]
            for what, field, asked, runs in self._told()
        ]

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "service": self.state.service,
            "settings": self.settings.model_dump(mode="json"),
            "running": self.running.model_dump(mode="json"),
            "mismatches": [one.model_dump(mode="json") for one in self.mismatches],
        }

    def _told(self) -> Iterator[tuple[str, str, str, str]]:
        runs, asked = self.running, self.settings
        tuned = {True: "", False: " (untuned)", None: ""}[runs.moe_tuned]
        yield "MoE kernel", "moe", asked.kernel, f"{'/'.join(runs.moe)}{tuned}"
        yield "attention", "attention", "-", "/".join(runs.attention)
        yield "linear", "linear", "-", "/".join(runs.linear)
        yield "gated delta net", "gdn", "-", "/".join(runs.gdn)
        yield "KV-cache type", "kv_dtype", asked.kv_cache_dtype, "/".join(runs.kv_dtype)
        yield "KV-cache tokens", "kv_tokens", "-", _number(runs.kv_tokens)
        per = f" of {runs.concurrency_tokens:,} tokens" if runs.concurrency_tokens else ""
        most = f"{runs.max_concurrency:g}{per}" if runs.max_concurrency else ""
        yield "requests at once", "max_concurrency", str(asked.max_num_seqs or "-"), most
        yield "graphs", "graphs", "-", "/".join(runs.graphs)
        yield "layers on the GPU", "offloaded", "-", runs.offloaded


def _number(value: int | None) -> str:
    return f"{value:,}" if value is not None else ""


def observe(launcher: Launcher, release: ReleaseRecord) -> Iterator[Observed]:
    """Every started service of a release, by its log and metrics of now."""
    engine = launcher.engines[release.engine_name]()
    settings = {one.name: one.settings or Settings() for one in release.services}
    for state in launcher.states():
        if state.service in settings and state.release_id == release.release_id:
            running = launcher.running(state, engine)
            asked = settings[state.service]
            yield Observed(
                state.model_copy(update={"running": running}),
                asked,
                running,
                tuple(mismatches(asked, running)),
            )
