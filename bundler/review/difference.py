"""What a second bundle changes against a first: for the second approval, and for the size of a delta.

Both sides are what the manifests say; nothing here is trusted, `verify` is what trusts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from bundler.domain.manifest import Entry, Manifest
from bundler.domain.record import Record
from bundler.format.blocks import content_id

Part = Literal["bundle", "target", "engine", "tool", "package", "model", "service", "need", "file"]
_ABSENT = object()


class Change(Record):
    """One thing that differs; `old` or `new` is empty where there is none."""

    part: Part
    name: str
    what: Literal["added", "removed", "changed"]
    old: str = ""
    new: str = ""


class Difference(Record):
    """Everything that differs between two bundles; what is equal is not named."""

    changes: tuple[Change, ...]
    new_bytes: int = Field(
        description="Bytes of files whose content the first bundle does not hold."
    )
    kept_bytes: int = Field(description="Bytes of files whose content it holds.")


def difference(old: Manifest, new: Manifest) -> Difference:
    """Compare two manifests. Dates, volumes and parity are no difference."""
    held = {content_id(entry) for entry in old.payload}
    fresh = [entry.size for entry in new.payload if content_id(entry) not in held]
    before, after = settings(old), settings(new)

    def stated(*parts: Part) -> Iterator[Change]:
        for part in parts:
            yield from _values(part, before[part], after[part])

    return Difference(
        changes=(
            *stated("bundle", "target", "engine", "tool"),
            *_packages(old, new),
            *_models(old, new),
            *stated("service", "need"),
            *_values("file", _files(old, "file"), _files(new, "file")),
        ),
        new_bytes=sum(fresh),
        kept_bytes=new.size - sum(fresh),
    )


def settings(manifest: Manifest) -> dict[str, dict[str, str]]:
    """Part -> setting -> value: what a manifest states beside its files and components."""
    services = {
        f"{service.name}.{key}": value
        for service in manifest.services
        for key, value in _flat(service, {"name"}).items()
    }
    return {
        "bundle": _about(manifest),
        "target": _flat(manifest.target),
        "engine": _flat(manifest.engine),
        "tool": {"version": manifest.tool.version},
        "service": services,
        "need": _flat(manifest.needs, {"because"}),
    }


def _about(manifest: Manifest) -> dict[str, str]:
    waived = sorted(f"{item.code}: {item.reason}" for item in manifest.waived)
    return {
        "name": manifest.name,
        "description": manifest.description,
        "acceptance": _text(manifest.acceptance.model_dump(mode="json")),
        "waived": "; ".join(waived),
    }


def _packages(old: Manifest, new: Manifest) -> Iterator[Change]:
    """Wheels by distribution; of one version also when its bytes are others."""
    yield from _values("package", _wheels(old), _wheels(new))


def _wheels(manifest: Manifest) -> dict[str, str]:
    """Distribution -> version, and the file when two bundles can hold different ones of it."""
    found = {}
    for entry in manifest.entries:
        if entry.kind == "wheel":
            name, version, *_ = entry.path.removeprefix("wheels/").split("-")
            found[name.replace("_", "-").lower()] = f"{version} ({entry.sha256[:12]})"
    return found


def _models(old: Manifest, new: Manifest) -> Iterator[Change]:
    def named(manifest: Manifest) -> dict[str, str]:
        return {
            model.name: f"{model.origin}@{model.revision}" if model.revision else model.origin
            for model in manifest.models
        }

    yield from _values("model", named(old), named(new))
    both = named(old).keys() & named(new).keys()

    def files(manifest: Manifest) -> dict[str, str]:
        prefix = len("models/")
        return {
            path[prefix:]: digest
            for path, digest in _files(manifest, "model").items()
            if path[prefix:].partition("/")[0] in both
        }

    yield from _values("model", files(old), files(new))


def _files(manifest: Manifest, kind: str) -> dict[str, str]:
    return {e.path: _digest(e) for e in manifest.entries if e.kind == kind}


def _digest(entry: Entry) -> str:
    return f"sha256 {entry.sha256[:12]}"


def _flat(record: Record, without: Iterable[str] = ()) -> dict[str, str]:
    """`settings.kernel` -> `triton`: every leaf that says something."""
    leaves: dict[str, str] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), inner)
        elif value not in (None, "", [], {}, False):
            leaves[prefix] = _text(value)

    walk("", record.model_dump(mode="json", exclude=set(without)))
    return leaves


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_text(inner)}" for key, inner in value.items())
    return str(value)


def _values(part: Part, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Change]:
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name, _ABSENT), new.get(name, _ABSENT)
        if before == after:
            continue
        what: Literal["added", "removed", "changed"] = (
            "added" if before is _ABSENT else "removed" if after is _ABSENT else "changed"
        )
        yield Change(part=part, name=name, what=what, old=old.get(name, ""), new=new.get(name, ""))
