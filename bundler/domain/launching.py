"""Prepared: an installed engine and a service, what an adapter makes of them, and what it has to say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

# For annotations alone: who only asks a host something loads no model of a bundle.
if TYPE_CHECKING:
    from bundler.domain.engine_facts import EngineFacts
    from bundler.domain.findings import Finding
    from bundler.domain.manifest import Entry
    from bundler.domain.model_facts import ModelFacts
    from bundler.domain.needs import Tool
    from bundler.domain.spec import Service
    from bundler.domain.target import Target


@dataclass(frozen=True)
class Install:
    """Where an installed release keeps what an engine needs.

    `model_files` are names below `model`; `shipped` gives what the bundle's manifest says of one of them.
    """

    python: Path
    programs: tuple[Path, ...]
    model: Path
    model_files: tuple[str, ...]
    cache_dir: Path
    engine_version: str
    distribution: str
    shipped: Callable[[str], Entry] | None = None


@dataclass(frozen=True)
class LaunchPlan:
    """How to start one service.

    `key_variable` is the variable in which the engine takes the API key that it asks its clients for; empty when it
    asks for none. `files` are what it starts from: small ones by their content, links by their target. They lie below
    `Install.cache_dir`.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    health_path: str = "/health"
    key_variable: str = ""
    files: Mapping[Path, bytes | Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Situation:
    """One service on its target, with all that the shipped bytes say about engine and model.

    `engine` and `model` are None when they could not be read; `packages` is the engine's closure,
    normalized name -> version.
    """

    service: Service
    version: str
    target: Target
    packages: Mapping[str, str]
    engine: EngineFacts | None
    model: ModelFacts | None


@dataclass(frozen=True)
class Advice:
    """Findings, and settings that are safe and needed: they are added to the service's own, which win."""

    findings: tuple[Finding, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
