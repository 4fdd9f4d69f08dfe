"""What a new lock would change against the last one, package by package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, Protocol, TypeVar

from pydantic import Field

from bundler.domain.lock import Lock, LockedExtra, LockedModel, LockedWheel
from bundler.domain.record import Record

What = Literal["added", "removed", "version", "file", "revision"]
Part = Literal["engine", "tool", "model", "file", "target"]
T = TypeVar("T")


class Change(Record):
    """One thing that differs. `old` and `new` are versions or revisions, empty where there is none."""

    part: Part
    name: str
    what: What = Field(
        description="`file`: the same version, but another file or other bytes of it."
    )
    old: str = ""
    new: str = ""
    old_bytes: int | None = Field(None, description="Bytes, None when not known or not there.")
    new_bytes: int | None = None


class Drift(Record):
    """Everything that differs between two locks; what is equal is not named."""

    changes: tuple[Change, ...]
    old_bytes: int = Field(description="Bytes of all that the last lock names, as far as known.")
    new_bytes: int

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.changes)


def drift(old: Lock, new: Lock) -> Drift:
    """Compare two locks. Dates and the spec's digest are no drift."""
    return Drift(
        changes=(
            *_target(old, new),
            *_wheels("engine", old.engine_wheels, new.engine_wheels),
            *_wheels("tool", old.tool_wheels, new.tool_wheels),
            *_models(old.models, new.models),
            *_extras(old.extras, new.extras),
        ),
        old_bytes=_total(old),
        new_bytes=_total(new),
    )


def _target(old: Lock, new: Lock) -> Iterable[Change]:
    before, after = old.target.model_dump(mode="json"), new.target.model_dump(mode="json")
    for key, value in after.items():
        if before[key] != value:
            yield Change(
                part="target", name=key, what="version", old=str(before[key]), new=str(value)
            )


def _wheels(part: Part, old: Iterable[LockedWheel], new: Iterable[LockedWheel]) -> Iterable[Change]:
    for name, before, after in _pairs(_by(old, "name"), _by(new, "name")):
        what = _what(before, after, "file" if _version(before) == _version(after) else "version")
        if what == "file" and _bytes(before) == _bytes(after):
            continue
        told = _bytes if what == "file" else _version
        yield _change(part, name, what, (told(before), told(after)), _sizes(before, after))


def _version(wheel: LockedWheel | None) -> str:
    return wheel.version if wheel else ""


def _bytes(wheel: LockedWheel | None) -> str:
    """What tells two files of one version apart."""
    return f"{wheel.filename} sha256 {wheel.sha256[:12]}" if wheel else ""


def _models(old: Iterable[LockedModel], new: Iterable[LockedModel]) -> Iterable[Change]:
    for name, before, after in _pairs(_by(old, "name"), _by(new, "name")):
        what = _what(before, after, "file" if _origin(before) == _origin(after) else "revision")
        if what == "file" and before and after and set(before.files) == set(after.files):
            continue
        yield _change("model", name, what, (_origin(before), _origin(after)), _sizes(before, after))


def _origin(model: LockedModel | None) -> str:
    if model is None:
        return ""
    return f"{model.origin}@{model.revision}" if model.revision else model.origin


def _extras(old: Iterable[LockedExtra], new: Iterable[LockedExtra]) -> Iterable[Change]:
    for name, before, after in _pairs(_by(old, "filename"), _by(new, "filename")):
        if before != after:
            told = tuple(f"sha256 {item.sha256[:12]}" if item else "" for item in (before, after))
            what = _what(before, after, "file")
            yield _change("file", name, what, (told[0], told[1]), _sizes(before, after))


def _what(before: object, after: object, both: What) -> What:
    if before and after:
        return both
    return "added" if after else "removed"


class _Sized(Protocol):
    @property
    def size(self) -> int | None: ...


def _sizes(before: _Sized | None, after: _Sized | None) -> tuple[int | None, int | None]:
    return (before.size if before else None, after.size if after else None)


def _change(
    part: Part,
    name: str,
    what: What,
    told: tuple[str, str],
    sizes: tuple[int | None, int | None],
) -> Change:
    return Change(
        part=part, name=name, what=what, old=told[0], new=told[1],
        old_bytes=sizes[0], new_bytes=sizes[1],
    )  # fmt: skip


def _by(items: Iterable[T], key: str) -> dict[str, T]:
    return {str(getattr(item, key)): item for item in items}


def _pairs(old: Mapping[str, T], new: Mapping[str, T]) -> Iterable[tuple[str, T | None, T | None]]:
    for name in sorted({*old, *new}):
        yield name, old.get(name), new.get(name)


def _total(lock: Lock) -> int:
    wheels = {wheel.filename: wheel.size or 0 for wheel in (*lock.engine_wheels, *lock.tool_wheels)}
    models = sum(model.size for model in lock.models)
    return sum(wheels.values()) + models + sum(extra.size or 0 for extra in lock.extras)
