"""Read this first: spec -> lock -> fetch -> pack -> sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bundler.build.enginearchive import ArchiveWheels
from bundler.build.fetch import Fetched, Fetcher, check_own_wheel
from bundler.build.filled import filled
from bundler.build.pack import Packer, loose_file
from bundler.build.parity import parity_sets, usable_limit
from bundler.build.prove import Prover, refuse
from bundler.build.readme import read_me
from bundler.build.recall import Recall
from bundler.build.resolve import resolve
from bundler.build.selfcheck import check_closures
from bundler.build.shipped import record_files, sequence_of, shipped_manifest, starting_paths
from bundler.build.storedamage import suspecting_the_store
from bundler.build.tools import BuildTools
from bundler.build.wheelcheck import check_wheels
from bundler.domain.lock import Lock
from bundler.domain.manifest import (
    Base,
    Manifest,
)
from bundler.domain.proof import Proof
from bundler.domain.sizes import human
from bundler.domain.spec import BundleSpec
from bundler.errors import FormatError, IntegrityError, StateError
from bundler.format import layout
from bundler.format.blocks import block_size_for, content_id
from bundler.format.codec import parse_manifest
from bundler.format.digests import sha256_hex
from bundler.format.rehearsal import in_earnest, instead
from bundler.format.rules import check_rules
from bundler.format.shards import plan_apart
from bundler.ports import Signer, VolumeFormat

BOOTSTRAP_FILE = Path(__file__).parent.parent / "bootstrap" / "airbundle_bootstrap.py"


@dataclass(frozen=True)
class Built:
    """A finished bundle, and its lock with what the fetched wheels told."""

    manifest: Manifest
    lock: Lock
    manifest_sha256: str
    key_id: str | None


def make_lock(
    spec: BundleSpec,
    base: Path,
    tool_wheel: Path,
    tools: BuildTools,
    *,
    engine_only: bool = False,
) -> Lock:
    """Resolve a spec; wheels that are built from source are kept in the store."""
    return resolve(
        spec=spec,
        base=base,
        sources=tools.sources,
        resolver=tools.resolver,
        tool_wheel=tool_wheel,
        clock=tools.clock,
        progress=tools.progress,
        engine_only=engine_only,
        built_into=tools.store.root / "built",
        archives=ArchiveWheels(tools.store, tools.downloader, tools.progress, base),
    )


def make_proof(
    spec: BundleSpec,
    lock: Lock,
    base: Path,
    tools: BuildTools,
    fetched: Sequence[Fetched] = (),
) -> Proof:
    """Judge a lock by what it names or, after the fetch, by the bytes themselves."""
    return Prover(
        spec=spec,
        lock=lock,
        base=base,
        sources=tools.sources,
        engine=tools.engine,
        wheels=tools.wheels,
        recall=Recall(tools.store.root / "facts"),
        progress=tools.progress,
        stored=tools.store.file,
        fetched={item.path: item.blob.path for item in fetched},
    ).prove()


def planned_volumes(spec: BundleSpec, lock: Lock, form: VolumeFormat) -> list[int]:
    """Bytes in each volume that a build would write, headers left out."""
    wheels = {wheel.filename: wheel for wheel in (*lock.engine_wheels, *lock.tool_wheels)}
    files = [(layout.wheel_path(name), wheel.size or 0) for name, wheel in wheels.items()]
    files += [
        (layout.model_path(model.name, file.path), file.size)
        for model in lock.models
        for file in model.files
    ]
    files += [(layout.extra_path(extra.filename), extra.size or 0) for extra in lock.extras]
    limit, parity = spec.volumes.limit, spec.volumes.parity
    apart = starting_paths(spec, lock)
    room = usable_limit(limit, spec.name, form, parity=bool(parity), sealable=bool(apart))
    _, volumes = plan_apart(sorted(files), apart, room, form, block_size_for(limit))
    sizes = [sum(piece.size for piece in volume) for volume in volumes]
    sets = parity_sets(spec.name, [str(number) for number in range(len(sizes))], parity)
    return sizes + [max(sizes)] * sum(len(one.parity) for one in sets)


def build(
    *,
    spec: BundleSpec,
    lock: Lock,
    base: Path,
    out: Path,
    tool_wheel: Path,
    signer: Signer | None,
    tools: BuildTools,
    base_manifest: bytes | None = None,
    handbook: bytes | None = None,
) -> Built:
    """Fetch what the lock names and pack it. The same lock and key give the same bytes.

    With a `base_manifest`, only what that bundle lacks goes into the volumes. A `handbook`, the documentation
    on one page, lies beside them, named by the manifest like the bootstrap.

    Raises:
        StateError: `out` exists already.
        IncompatibleError: it cannot work on the target.
        SourceError, IntegrityError, SpaceError, FormatError: see the stages.
    """
    _check_before_fetch(spec, lock, base, out, tool_wheel, tools)
    fetcher = Fetcher(
        store=tools.store,
        sources=tools.sources,
        downloader=tools.downloader,
        progress=tools.progress,
        base=base,
        tool_wheel=tool_wheel,
    )
    with tools.store.held(tools.progress.note):
        fetched = fetcher.fetch(lock)
    _check_against_lock(lock, fetched)
    with suspecting_the_store(fetched, tools.progress):
        check_wheels(fetched, lock.target)
        check_closures(spec, lock, base, fetched, tools.resolver, tool_wheel.parent / "closure")
        lock = filled(lock, fetched)
        proof = make_proof(spec, lock, base, tools, fetched)
    refuse(proof)
    before = parse_manifest(base_manifest) if base_manifest else None
    sequence = sequence_of(spec, lock, before)
    packer = Packer(
        out=out,
        limit=spec.volumes.limit,
        form=tools.form,
        progress=tools.progress,
        bundle=spec.name,
        parity=spec.volumes.parity,
        held=_held(before, lock),
        apart=starting_paths(spec, lock),
    )
    with packer.alone():
        # The records lie beside the tool's wheel, in this build's own temporary folder.
        files = [*fetched, *record_files(spec, lock, tool_wheel.parent)]
        packed = packer.pack(_with_blocks(files, packer.block_size, tools))
        bootstrap = BOOTSTRAP_FILE.read_bytes()
        manifest = shipped_manifest(spec, lock, proof, packed, sequence)
        if before is not None and base_manifest is not None:
            base_digest = sha256_hex(base_manifest)
            based = Base(name=before.name, manifest_sha256=base_digest)
            manifest = manifest.model_copy(update={"base": based})
            kept = sum(entry.size for entry in manifest.held)
            tools.progress.note(
                f"{len(manifest.held)} files ({human(kept)}) are held by {based.bundle_id}"
            )
        first_steps = read_me(manifest, handbook=handbook is not None)
        loose = {layout.BOOTSTRAP: bootstrap, layout.READ_ME: first_steps}
        if handbook is not None:
            loose[layout.HANDBOOK] = handbook
        manifest = manifest.model_copy(
            update={"loose": tuple(loose_file(name, data) for name, data in sorted(loose.items()))}
        )
        # What the closed side will refuse must not leave this one.
        check_rules(manifest)
        digest = packer.finish(manifest, loose, signer)
    return Built(manifest, lock, digest, signer.key_id if signer else None)


def foresee(
    *, spec: BundleSpec, lock: Lock, base: Path, out: Path, tool_wheel: Path, tools: BuildTools,
    signed: bool,
) -> None:  # fmt: skip
    """Take down what `build` would fetch and write, in a rehearsal. Raises as it does before it fetches.

    A delta (`base_manifest`) writes less: what of it is held is only known from the fetched bytes.
    """
    with in_earnest():
        _check_before_fetch(spec, lock, base, out, tool_wheel, tools)
    wheels = [wheel for wheel in lock.engine_wheels if not tools.store.file(wheel.sha256)]
    wanted = [(wheel.url, wheel.size) for wheel in wheels]
    for model in lock.models:
        missing = [f for f in model.files if not tools.store.get(f.sha256, f.git_sha1)]
        wanted.append((f"{model.origin}, {len(missing)} files", sum(f.size for f in missing)))
    for origin, size in wanted:
        if size:
            instead("write", str(tools.store.root), size, f"downloaded: {origin}")
    sizes = planned_volumes(spec, lock, tools.form)
    for number, size in enumerate(sizes, 1):
        instead("write", out / f"{spec.name}.vol{number:03}{tools.form.suffix}", size)
    names = [layout.MANIFEST, *([layout.SIGNATURE] if signed else []), layout.CHECKSUMS]
    for name in (*names, layout.BOOTSTRAP, layout.READ_ME):
        instead("write", out / name)


def _check_before_fetch(
    spec: BundleSpec, lock: Lock, base: Path, out: Path, tool_wheel: Path, tools: BuildTools
) -> None:
    """Before gigabytes are fetched: what can be known from a few headers."""
    if out.exists():
        raise StateError(
            f"{out} exists already", hint="Give another --out, or remove that folder first."
        )
    check_own_wheel(lock, tool_wheel)
    refuse(make_proof(spec, lock, base, tools))


def _check_against_lock(lock: Lock, fetched: Sequence[Fetched]) -> None:
    """The lock names an engine, and what was fetched has the sizes that it promised."""
    if not lock.engine_wheels:
        raise FormatError("the lock has no wheel of the engine", hint="Use --relock.")
    sizes = {item.path: item.blob.digests.size for item in fetched}
    for model in lock.models:
        for file in model.files:
            found = sizes[layout.model_path(model.name, file.path)]
            if found != file.size:
                raise IntegrityError(
                    f"{model.name}/{file.path}: {found} bytes, the lock says {file.size}",
                    hint="The source changed since the lock; make a new one with --relock.",
                )


def _held(before: Manifest | None, lock: Lock) -> frozenset[str]:
    """Content ids that need not be carried again; the tool always is, for the bootstrap."""
    if before is None:
        return frozenset()
    tool = {layout.wheel_path(wheel.filename) for wheel in lock.tool_wheels}
    return frozenset(
        content_id(entry)
        for entry in before.payload
        if entry.kind in ("wheel", "model", "file") and entry.path not in tool
    )


def _with_blocks(files: Sequence[Fetched], block_size: int, tools: BuildTools) -> list[Fetched]:
    return [replace(item, blob=tools.store.blocked(item.blob, block_size)) for item in files]
