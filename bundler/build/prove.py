"""Lock -> Proof: all that cannot work on the target and can be known without it.

The same proof runs twice: `plan` looks into wheels and models where they lie (on an index or the Hub,
by range requests), `build` into the fetched bytes, where nothing is left unread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from bundler.build.fit import fit, together
from bundler.build.modelcheck import judge_model
from bundler.build.modelfacts import MODEL_FACTS_VERSION, read_model
from bundler.build.native import judge_native, read_native
from bundler.build.recall import Recall
from bundler.domain.catalogue import finding
from bundler.domain.engine_facts import FACTS_VERSION, EngineFacts
from bundler.domain.findings import Finding, Level, ranked
from bundler.domain.fit import Fit
from bundler.domain.lock import Lock, LockedFile, LockedModel, LockedWheel
from bundler.domain.manifest import Waived
from bundler.domain.model_facts import ModelFacts
from bundler.domain.needs import HostNeeds, Tool
from bundler.domain.proof import Proof
from bundler.domain.sources import ModelRef
from bundler.domain.spec import BundleSpec, Service, Settings, Waiver
from bundler.errors import IncompatibleError, IntegrityError, SourceError
from bundler.format import layout
from bundler.format.codec import to_bytes
from bundler.format.digests import sha256_hex
from bundler.ports import Advice, EngineAdapter, ModelSource, Progress, Situation, WheelReader


@dataclass(frozen=True)
class Prover:
    """Everything that proving needs. `fetched` maps a path in the bundle to the file that will be it."""

    spec: BundleSpec
    lock: Lock
    base: Path
    sources: Mapping[str, Callable[[], ModelSource]]
    engine: EngineAdapter
    wheels: WheelReader
    recall: Recall
    progress: Progress
    stored: Callable[[str], Path | None]
    fetched: Mapping[str, Path] = field(default_factory=dict)

    def prove(self) -> Proof:
        """Judge the lock.

        Raises:
            SourceError, IntegrityError: a fetched file is not what its name says. Before the fetch,
                what cannot be read is a finding.
        """
        findings: list[Finding] = list(self._unstated())
        engine, about_engine = self._engine()
        models, about_models = self._models()
        findings += [*about_engine, *about_models]
        services: list[Service] = []
        fits: list[Fit] = []
        tools: dict[str, Tool] = {}
        for service in self.spec.resolved_services():
            model = next((facts for facts in models if facts.name == service.model), None)
            advice = self.engine.review(self._situation(service, engine, model))
            service = _advised(service, advice)
            services.append(service)
            findings += advice.findings
            tools |= {tool.name: tool for tool in advice.tools}
            if model is not None:
                calculated, about_fit = self._fit(service, model)
                findings += about_fit
                fits += [calculated] if calculated else []
        findings += together(services, fits, self.lock.target, self.lock.engine_name)
        needs, about_native = self._native()
        findings += about_native
        return Proof(
            findings=ranked(
                [*waived(findings, self.spec.waivers), *unused(findings, self.spec.waivers)]
            ),
            fits=tuple(fits),
            needs=needs.model_copy(update={"tools": tuple(tools.values())}),
            models=models,
            services=tuple(services),
        )

    def _unstated(self) -> Iterator[Finding]:
        target = self.lock.target
        if not self.spec.target.states_glibc:
            yield finding(
                "glibc-floor",
                "target.glibc",
                f"not stated; {target.glibc} is what the wheels admit",
            )
        if not target.gpus and target.cuda is not None:
            yield finding("gpu-unstated", "target.gpus", "the target names no GPU")

    def _situation(
        self, service: Service, engine: EngineFacts | None, model: ModelFacts | None
    ) -> Situation:
        return Situation(
            service=service,
            version=self.lock.engine_version,
            target=self.lock.target,
            packages={wheel.name: wheel.version for wheel in self.lock.engine_wheels},
            engine=engine,
            model=model,
        )

    def _engine(self) -> tuple[EngineFacts | None, list[Finding]]:
        wanted = canonicalize_name(self.spec.engine.distribution)
        wheel = next((item for item in self.lock.engine_wheels if item.name == wanted), None)
        if wheel is None:
            why = f"{wanted} is not among the wheels of the closure"
            return None, [finding("engine-unread", wanted, why)]

        def look() -> EngineFacts:
            with self.wheels.open(wheel) as archive:
                return self.engine.facts(archive, self.lock.engine_version)

        key = f"{FACTS_VERSION}-{wheel.sha256}"
        try:
            return self.recall.of(EngineFacts, key, look), []
        except (SourceError, IntegrityError) as cause:
            if self.fetched:
                raise
            return None, [finding("engine-unread", wheel.filename, str(cause))]

    def _models(self) -> tuple[tuple[ModelFacts, ...], list[Finding]]:
        refs = {ref.label: ref for ref in self.spec.models}
        facts: list[ModelFacts] = []
        findings: list[Finding] = []
        for model in self.lock.models:
            ref = refs[model.name]
            try:
                found = self._model(model, ref)
            except (SourceError, IntegrityError) as cause:
                if self.fetched:
                    raise
                findings.append(finding("model-unread", model.name, str(cause)))
                continue
            facts.append(found)
            findings += judge_model(ref, found, self.spec)
        return tuple(facts), findings

    def _model(self, model: LockedModel, ref: ModelRef) -> ModelFacts:
        def read(file: LockedFile, start: int, length: int) -> bytes:
            path = self.fetched.get(layout.model_path(model.name, file.path))
            if path is None:
                source = self.sources[model.source]()
                return source.read(model, file, self.base, start, length)
            with path.open("rb") as opened:
                opened.seek(start)
                return opened.read(length)

        self.progress.note(f"reading the headers of {model.name}")
        engine = self.lock.engine_name
        asked = sha256_hex(to_bytes(model) + to_bytes(ref) + engine.encode())
        return self.recall.of(
            ModelFacts, f"{MODEL_FACTS_VERSION}-{asked}", lambda: read_model(model, read, engine)
        )

    def _fit(self, service: Service, model: ModelFacts) -> tuple[Fit | None, tuple[Finding, ...]]:
        return fit(
            service,
            model,
            self.lock.target,
            self.lock.engine_name,
            self.lock.engine_version,
            self.spec.acceptance,
        )

    def _native(self) -> tuple[HostNeeds, tuple[Finding, ...]]:
        target = self.lock.target
        native = read_native(
            unique_wheels(self.lock), target.arch, self._here, self.recall, self.progress
        )
        return native.needs, tuple(judge_native(native, target))

    def _here(self, wheel: LockedWheel) -> Path | None:
        path = self.fetched.get(layout.wheel_path(wheel.filename)) or self.stored(wheel.sha256)
        if path is None and wheel.url.startswith("file:"):
            path = Path(unquote(urlsplit(wheel.url).path))
        return path


def unique_wheels(lock: Lock) -> list[LockedWheel]:
    """The wheels of both closures, each once."""
    return list({w.filename: w for w in (*lock.engine_wheels, *lock.tool_wheels)}.values())


def _advised(service: Service, advice: Advice) -> Service:
    """The service with the settings that the engine's adapter adds; its own come last and win."""
    settings = service.settings or Settings()
    added = {
        "env": {**advice.env, **settings.env},
        "args": (*advice.args, *settings.args),
    }
    return service.model_copy(update={"settings": settings.model_copy(update=added)})


def waived(findings: Sequence[Finding], waivers: Sequence[Waiver]) -> Iterator[Finding]:
    """Errors that the spec declares to be no obstacle become warnings which say why."""
    for item in findings:
        waiver = next((w for w in waivers if _concerns(w, item)), None)
        if waiver is None or item.level is not Level.ERROR:
            yield item
        else:
            text = f"{item.what} (waived: {waiver.reason})"
            yield item.model_copy(update={"level": Level.WARNING, "what": text})


def unused(findings: Sequence[Finding], waivers: Sequence[Waiver]) -> Iterator[Finding]:
    """A note for each waiver that excuses no error."""
    errors = [item for item in findings if item.level is Level.ERROR]
    for waiver in waivers:
        if not any(_concerns(waiver, item) for item in errors):
            of = f" of {waiver.subject}" if waiver.subject else ""
            yield finding("waiver-unused", "waivers", f"no {waiver.code}{of} is found")


def _concerns(waiver: Waiver, item: Finding) -> bool:
    return waiver.code == item.code and waiver.subject in (None, item.subject)


def waived_records(proof: Proof, waivers: Sequence[Waiver]) -> tuple[Waived, ...]:
    """What the manifest says of waived errors."""
    return tuple(
        Waived(code=item.code, what=item.line(), reason=waiver.reason)
        for item in proof.findings
        for waiver in waivers
        if _concerns(waiver, item) and item.what.endswith(f"(waived: {waiver.reason})")
    )


def refuse(proof: Proof) -> None:
    """Stop a build that cannot work on its target.

    Raises:
        IncompatibleError: with every error as a detail.
    """
    wrong = [item for item in proof.findings if item.level is Level.ERROR]
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise IncompatibleError(
            f"cannot work on the target: {wrong[0].code}: {wrong[0].line()}{more}",
            hint=wrong[0].fix,
            details=[f"{item.code}: {item.line()} -> {item.fix}" for item in wrong],
        )
