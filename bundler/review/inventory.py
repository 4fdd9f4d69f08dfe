"""A verified bundle's files -> the inventory: read where they lie, nothing is unpacked or run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from bundler.domain.inventory import (
    RANKS,
    CarriedFile,
    Component,
    ComponentKind,
    Executable,
    Inventory,
    LicenceEvidence,
    LicenceFacts,
)
from bundler.domain.manifest import Entry, LooseFile, Manifest, ShippedModel
from bundler.errors import MissingVolumeError
from bundler.format import layout
from bundler.format.contents import Contents
from bundler.ports import Progress
from bundler.review.dependencies import dependency_graph
from bundler.review.modelcontents import ModelContents, ModelReader, absent
from bundler.review.wheelcontents import WheelFacts, read_wheel

# airbundle's own files: the licence of this project.
_OURS = LicenceFacts(
    expression="Apache-2.0",
    evidence=(LicenceEvidence(source="manifest", said="part of airbundle", spdx="Apache-2.0"),),
)
_ARCHIVES = (".tar.gz", ".tgz", ".zip", ".tar", ".tar.xz", ".tar.zst")


def take_inventory(contents: Contents, progress: Progress) -> Inventory:
    """Look into everything that a bundle carries.

    Raises:
        IntegrityError: bytes are not what the signed manifest promises.
    """
    manifest = contents.manifest
    wheels = [entry for entry in manifest.entries if entry.kind == "wheel"]
    total = sum(entry.size for entry in manifest.payload)
    read: list[tuple[Entry, WheelFacts]] = []
    with progress.task("review", total) as task:
        for entry in wheels:
            read.append((entry, _wheel_facts(contents, entry)))
            task.advance(entry.size)
        models = []
        for model in manifest.models:
            models.append(_model(contents, model))
            task.advance(models[-1].size)
    stated: dict[str, tuple[str, ...]] = {}
    for entry, facts in read:
        name = canonicalize_name(_names(entry)[0])
        stated[name] = (*stated.get(name, ()), *facts.requires)
    graph = dependency_graph(stated, manifest.target)
    return Inventory(
        components=(
            *(_wheel(entry, facts, graph) for entry, facts in read),
            *models,
            *_files(contents),
            *_tools(manifest),
            *_records(manifest),
        )
    )


def listed(manifest: Manifest) -> Inventory:
    """What a manifest alone says: names, versions, origins, digests; nothing was looked into."""
    return Inventory(
        components=(
            *(_wheel(e, WheelFacts(), {}) for e in manifest.entries if e.kind == "wheel"),
            *(_shipped(manifest, model, None, ()) for model in manifest.models),
            *(_file(manifest, e, ()) for e in manifest.entries if e.kind == "file"),
            *_tools(manifest),
            *_records(manifest),
        )
    )


def _wheel_facts(contents: Contents, entry: Entry) -> WheelFacts:
    try:
        with contents.open(entry) as file:
            return read_wheel(file)
    except MissingVolumeError as cause:
        return WheelFacts(executes=(absent(entry.path, cause),))


def _wheel(entry: Entry, facts: WheelFacts, graph: dict[str, tuple[str, ...]]) -> Component:
    name, version = _names(entry)
    return Component(
        kind="wheel",
        name=name,
        version=version,
        origin=entry.origin,
        supplier=facts.supplier or facts.home,
        summary=facts.summary,
        size=entry.size,
        files=(_carried(entry),),
        licence=facts.licence,
        requires=graph.get(canonicalize_name(name), ()),
        executes=_by_rank(facts.executes),
    )


def _names(entry: Entry) -> tuple[str, str]:
    """Name and version of a wheel's file name: what an installer goes by."""
    filename = entry.path.removeprefix("wheels/")
    try:
        name, version, _, _ = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        first, _, rest = filename.partition("-")
        return first, rest.partition("-")[0]
    return name, str(version)


def _model(contents: Contents, model: ShippedModel) -> Component:
    prefix = layout.model_path(model.name, "")
    entries = [e for e in contents.manifest.entries if e.path.startswith(prefix)]
    trusted = any(
        "--trust-remote-code" in (service.settings.args if service.settings else ())
        for service in contents.manifest.services
        if service.model == model.name
    )
    found: ModelContents | None = None
    missing: tuple[Executable, ...] = ()
    try:
        found = ModelReader(contents, prefix, entries).read(model.licence, trusted_code=trusted)
    except MissingVolumeError as cause:
        missing = (absent(prefix, cause),)
    return _shipped(contents.manifest, model, found, missing)


def _shipped(
    manifest: Manifest,
    model: ShippedModel,
    found: ModelContents | None,
    missing: tuple[Executable, ...],
) -> Component:
    prefix = layout.model_path(model.name, "")
    entries = [e for e in manifest.entries if e.path.startswith(prefix)]
    return Component(
        kind="model",
        name=model.name,
        version=(model.revision or "")[:12],
        revision=model.revision or "",
        origin=f"{model.source}: {model.origin}",
        supplier=model.origin.partition("/")[0] if model.source == "hub" else "",
        size=sum(entry.size for entry in entries),
        files=tuple(map(_carried, entries)),
        licence=found.licence if found else LicenceFacts(),
        executes=_by_rank(found.executes if found else missing),
        checks=found.checks if found else (),
        card=found.card if found else None,
    )


def _files(contents: Contents) -> Iterator[Component]:
    for entry in contents.manifest.entries:
        if entry.kind == "file":
            yield _file(contents.manifest, entry, tuple(_in_file(contents, entry)))


def _file(manifest: Manifest, entry: Entry, executes: tuple[Executable, ...]) -> Component:
    roles = {file.path: file.role for file in manifest.files}
    return Component(
        kind="file",
        name=entry.path.removeprefix("files/"),
        origin=entry.origin,
        summary=roles.get(entry.path, ""),
        size=entry.size,
        files=(_carried(entry),),
        executes=executes,
    )


def _in_file(contents: Contents, entry: Entry) -> Iterator[Executable]:
    try:
        head = contents.read(entry, 0, 64)
    except MissingVolumeError as cause:
        yield absent(entry.path, cause)
        return
    if head.startswith(b"\x7fELF"):
        yield Executable(rank="attention", kind="native", where=entry.path, digest=entry.sha256,
                         what="a program or shared library for Linux")  # fmt: skip
    elif entry.path.endswith(_ARCHIVES):
        yield Executable(
            rank="attention", kind="unreadable", where=entry.path, digest=entry.sha256,
            what="an archive; its contents were not looked into",
        )  # fmt: skip
    elif head.startswith(b"#!") or entry.path.endswith((".py", ".sh")):
        yield Executable(rank="attention", kind="install-script", where=entry.path,
                         digest=entry.sha256, what="a script")  # fmt: skip


def _tools(manifest: Manifest) -> Iterator[Component]:
    for loose in manifest.loose:
        if loose.name == layout.BOOTSTRAP:
            runs = Executable(
                rank="usual", kind="install-script", where=loose.name, digest=loose.sha256,
                what="one Python file of the standard library alone; starts the tool on a bare host when"
                " a person calls it",
            )  # fmt: skip
            yield _loose(loose, "tool", manifest.tool.version, (runs,))


def _records(manifest: Manifest) -> Iterator[Component]:
    for loose in manifest.loose:
        if loose.name != layout.BOOTSTRAP:
            yield _loose(loose, "spec", "", ())
    for entry in manifest.entries:
        if entry.kind in ("lock", "spec", "requirements"):
            yield Component(
                kind="spec", name=entry.path, origin=entry.origin, size=entry.size,
                files=(_carried(entry),), licence=_OURS,
            )  # fmt: skip


def _loose(
    loose: LooseFile, kind: ComponentKind, version: str, executes: tuple[Executable, ...]
) -> Component:
    carried = CarriedFile(path=loose.name, size=loose.size, sha256=loose.sha256, origin="airbundle")
    return Component(
        kind=kind, name=loose.name, version=version, origin="airbundle", size=loose.size,
        files=(carried,), executes=executes, licence=_OURS,
    )  # fmt: skip


def _carried(entry: Entry) -> CarriedFile:
    return CarriedFile(path=entry.path, size=entry.size, sha256=entry.sha256, origin=entry.origin)


def _by_rank(executes: Sequence[Executable]) -> tuple[Executable, ...]:
    return tuple(sorted(executes, key=lambda one: RANKS.index(one.rank)))
