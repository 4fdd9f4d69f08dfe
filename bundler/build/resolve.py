"""BundleSpec -> Lock: every model at a commit, every wheel of the engine and of airbundle itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement

from bundler.build.enginearchive import ArchiveWheels
from bundler.build.floor import at_lowest_floor
from bundler.build.tags import best_wheel, parse_wheel
from bundler.build.toolwheel import NAME, tool_version
from bundler.domain.lock import Lock, LockedExtra, LockedWheel
from bundler.domain.sources import FileRef
from bundler.domain.spec import BundleSpec
from bundler.domain.target import Target
from bundler.errors import ResolveError, SourceError, SpecError, disk_errors
from bundler.format.codec import to_bytes
from bundler.format.digests import sha256_hex
from bundler.ports import Clock, ModelSource, Progress, WheelRequest, WheelResolver

SELF = "self"


def spec_digest(spec: BundleSpec) -> str:
    """Identity of what a spec asks for; comments and key order do not matter."""
    return sha256_hex(to_bytes(spec))


def resolve(
    *,
    spec: BundleSpec,
    base: Path,
    sources: Mapping[str, Callable[[], ModelSource]],
    resolver: WheelResolver,
    tool_wheel: Path,
    clock: Clock,
    progress: Progress,
    engine_only: bool = False,
    built_into: Path | None = None,
    archives: ArchiveWheels | None = None,
) -> Lock:
    """Pin everything.

    Args:
        spec: what is wanted.
        base: the folder that the spec's relative paths start from.
        sources: model source by kind.
        resolver: finds wheels.
        tool_wheel: airbundle's own wheel, which the tool's closure starts from.
        clock: gives the lock its date.
        progress: told of each step.
        engine_only: leave models and files out.
        built_into: keeps wheels that are built from source, for specs that allow it.
        archives: makes the wheel of an engine that comes as an archive.

    Raises:
        ResolveError: the index has no closure for the target.
        SourceError: a model or revision does not exist.
        SpecError: the spec names a local file that is not there.
    """
    progress.note(f"resolving {spec.engine.distribution} {spec.engine.version} for the target")
    archive = None
    if spec.engine.archive is not None and archives is not None:
        wanted = spec.target
        wheel, archive = archives.make(spec.engine.archive, spec.engine.version, wanted.arch)
        target, engine = _archive_closure(spec, wheel, resolver.floors)
    else:
        target, engine = _engine_closure(spec, base, resolver, built_into)
    progress.note(f"resolving {NAME} {tool_version()} for the target")
    tool = _tool_closure(target, resolver, tool_wheel)
    models = []
    for ref in () if engine_only else spec.models:
        progress.note(f"pinning model {ref.label}")
        models.append(sources[ref.source]().pin(ref, base))
    return Lock(
        spec_sha256=spec_digest(spec),
        created=clock.now(),
        airbundle_version=tool_version(),
        engine_only=engine_only,
        target=target,
        engine_name=spec.engine.name,
        engine_version=spec.engine.version,
        engine_wheels=tuple(map(_with_size, engine)),
        engine_archive=archive,
        tool_wheels=tuple(map(_with_size, tool)),
        models=tuple(models),
        extras=tuple(_extra(ref, base) for ref in (() if engine_only else spec.files)),
    )


def _engine_closure(
    spec: BundleSpec, base: Path, resolver: WheelResolver, built_into: Path | None
) -> tuple[Target, tuple[LockedWheel, ...]]:
    """The closure, and the target with the glibc that it is for."""

    def ask(target: Target) -> tuple[LockedWheel, ...]:
        return resolver.resolve(engine_request(spec, base, target, built_into))

    wanted = spec.target
    if wanted.states_glibc:
        target = wanted.with_glibc(wanted.glibc)
        return target, ask(target)
    return at_lowest_floor(ask, wanted, resolver.floors)


def _archive_closure(
    spec: BundleSpec, wheel: LockedWheel, floors: Sequence[str]
) -> tuple[Target, tuple[LockedWheel, ...]]:
    """One wheel, which needs no other. Whether a stated glibc is enough for it, the proof says."""

    def ask(target: Target) -> tuple[LockedWheel, ...]:
        if best_wheel([(wheel.filename, wheel)], target) is None:
            raise ResolveError(
                f"{wheel.filename}: no glibc up to {floors[-1]} is enough for it",
                hint="State target.glibc.",
                without_wheel=[wheel.name],
            )
        return (wheel,)

    wanted = spec.target
    if wanted.states_glibc:
        return wanted.with_glibc(wanted.glibc), (wheel,)
    return at_lowest_floor(ask, wanted, floors)


def engine_request(
    spec: BundleSpec, base: Path, target: Target, built_into: Path | None = None
) -> WheelRequest:
    """What to ask the resolver for the engine's closure."""
    engine = spec.engine
    extras = f"[{','.join(engine.extras)}]" if engine.extras else ""
    local = [base / wheel for wheel in engine.wheels]
    return WheelRequest(
        requirements=(
            f"{engine.distribution}{extras}=={engine.version}",
            *_checked("requirements", engine.requirements),
            *map(_local_requirement, local),
        ),
        target=target,
        exclude=_checked("exclude", engine.exclude),
        index=engine.index,
        find_links=tuple(sorted({path.parent.resolve() for path in local})),
        indexes=engine.indexes,
        constraints=_checked("constraints", engine.constraints),
        exclude_newer=engine.exclude_newer,
        build_sdists=engine.build_sdists,
        built_into=built_into,
    )


def _checked(key: str, lines: tuple[str, ...]) -> tuple[str, ...]:
    """Requirements as they are; the resolvers would read `-r FILE` or `--index-url` as well."""
    for line in lines:
        try:
            Requirement(line)
        except InvalidRequirement as cause:
            raise SpecError(
                f"engine.{key}: {line!r} is not a requirement: {str(cause).splitlines()[0]}",
                hint="Write a package and its versions, such as `numpy<2.3`.",
            ) from cause
    return lines


def _local_requirement(wheel: Path) -> str:
    """What makes the resolver choose a local wheel: its package at its version."""
    with disk_errors("reading", wheel):
        if not wheel.is_file():
            raise SpecError(f"engine.wheels: {wheel}: no such file")
    parsed = parse_wheel(wheel.name)
    if parsed is None:
        raise SpecError(
            f"engine.wheels: {wheel}: not a wheel's file name",
            hint="A wheel is named name-version-python-abi-platform.whl.",
        )
    return f"{parsed[0]}=={parsed[1]}"


def _tool_closure(
    target: Target, resolver: WheelResolver, tool_wheel: Path
) -> tuple[LockedWheel, ...]:
    wheels = resolver.resolve(
        WheelRequest(
            requirements=(f"{NAME}=={tool_version()}",),
            target=target,
            find_links=(tool_wheel.parent,),
        )
    )
    own = sha256_hex(tool_wheel.read_bytes())
    return tuple(
        wheel.model_copy(update={"url": SELF, "size": tool_wheel.stat().st_size, "sha256": own})
        if wheel.name == NAME
        else wheel
        for wheel in wheels
    )


def _with_size(wheel: LockedWheel) -> LockedWheel:
    """find-links pages state no size; a local file has one."""
    if wheel.size is None and wheel.url.startswith("file:"):
        path = Path(unquote(urlsplit(wheel.url).path))
        return wheel.model_copy(update={"size": path.stat().st_size})
    return wheel


def _extra(ref: FileRef, base: Path) -> LockedExtra:
    size = None
    if ref.path is not None:
        path = base / ref.path
        with disk_errors("reading", path):
            if not path.is_file():
                raise SourceError(f"files: {path}: no such file")
            size = path.stat().st_size
    return LockedExtra(
        filename=ref.filename,
        role=ref.role,
        origin=ref.url or ref.path or "",
        sha256=ref.sha256,
        size=size,
    )
