"""A release with other settings, for a comparison or for good. Nothing on the disk changes here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from bundler.domain.facts import ReleaseRecord
from bundler.domain.spec import Service, Settings
from bundler.domain.variants import Changed, Step, differences
from bundler.errors import SpecError
from bundler.ports import EngineAdapter

SERVICES = "services"
_ENV = "env."
# They are lists and maps: `env.NAME` changes one variable, and arguments have no key.
_WHOLE = ("env", "args")


def variant(
    record: ReleaseRecord,
    changes: Mapping[str, str],
    engine: EngineAdapter,
    only: str | None = None,
) -> ReleaseRecord:
    """The record of a release whose services have other settings.

    Args:
        record: of the release.
        changes: key of `settings` -> value as text; `env.NAME` for a variable (empty: without it); `services`:
            names joined by `+`, those that are started.
        engine: refuses what it cannot run.
        only: the one service that changes; every one when None.

    Raises:
        SpecError: there is no such key, value or service, or the engine cannot run it.
    """
    made = with_changes(record.services, changes, only)
    for service in made:
        engine.check(service, record.engine_version)
    return record.model_copy(update={"services": made})


def with_changes(
    services: tuple[Service, ...], changes: Mapping[str, str], only: str | None = None
) -> tuple[Service, ...]:
    """The services with other settings; see `variant`.

    Raises:
        SpecError: there is no such key, value or service.
    """
    if SERVICES in changes:
        services = _chosen(services, changes[SERVICES].split("+"))
    if only is not None:
        _chosen(services, [only])
    own = {key: value for key, value in changes.items() if key != SERVICES}
    return tuple(
        _changed(service, own) if only in (None, service.name) else service for service in services
    )


def with_steps(services: tuple[Service, ...], steps: Sequence[Step]) -> tuple[Service, ...]:
    """The services after every comparison that was applied. Raises as `with_changes` does."""
    for step in steps:
        services = with_changes(services, step.changes, step.service)
    return services


def changed_of(record: ReleaseRecord, signed: tuple[Service, ...]) -> Changed | None:
    """How a release differs from its bundle, whose signed services these are; None: it does not."""
    if record.variant is None:
        return None
    return Changed(differences=differences(signed, record.services), steps=record.variant.steps)


def _chosen(services: tuple[Service, ...], names: list[str]) -> tuple[Service, ...]:
    known = {service.name: service for service in services}
    for name in names:
        if name not in known:
            raise SpecError(
                f"{name}: is no service of this release; it has {', '.join(known)}",
                hint="Join several by +: services=big,small+other",
            )
    return tuple(known[name] for name in names)


def _changed(service: Service, changes: Mapping[str, str]) -> Service:
    settings = service.settings or Settings()
    values: dict[str, Any] = settings.model_dump()
    for key, text in changes.items():
        if key.startswith(_ENV):
            name = key.removeprefix(_ENV)
            values["env"] = {**values["env"], name: text}
            if not text:
                del values["env"][name]
            continue
        known = [name for name in Settings.model_fields if name not in _WHOLE]
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            nearest = f"; the nearest is {near[0]}" if near else ""
            raise SpecError(
                f"{key}: is no setting{nearest}",
                hint=f"Known: {', '.join(known)}, env.NAME, services.",
            )
        values[key] = text
    try:
        return service.model_copy(update={"settings": Settings.model_validate(values)})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SpecError(f"{where}={changes.get(where, '')}: {first['msg']}") from error
