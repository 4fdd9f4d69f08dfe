"""What the bundle says of itself: its manifest, its number, and the records that it carries."""

from __future__ import annotations

from pathlib import Path

from bundler.build.fetch import Fetched
from bundler.build.pack import Packed
from bundler.build.prove import waived_records
from bundler.build.store import Blob
from bundler.domain.lock import Lock, LockedWheel
from bundler.domain.manifest import (
    Manifest,
    RuntimeFile,
    ShippedEngine,
    ShippedModel,
    ShippedTool,
)
from bundler.domain.proof import Proof
from bundler.domain.spec import BundleSpec
from bundler.errors import FormatError, disk_errors
from bundler.format import layout
from bundler.format.blocks import block_size_for
from bundler.format.codec import to_bytes
from bundler.format.ingest import digest_bytes
from bundler.format.requirements import requirements_text


def record_files(spec: BundleSpec, lock: Lock, folder: Path) -> list[Fetched]:
    """The small files that airbundle itself writes into the bundle."""
    shipped = lock.model_copy(
        update={
            "engine_wheels": tuple(map(_without_local_path, lock.engine_wheels)),
            "tool_wheels": tuple(map(_without_local_path, lock.tool_wheels)),
        }
    )
    texts = {
        layout.LOCK_PATH: ("lock", to_bytes(shipped)),
        layout.SPEC_PATH: ("spec", to_bytes(spec)),
        layout.ENGINE_REQUIREMENTS: ("requirements", requirements_text(lock.engine_wheels)),
        layout.TOOL_REQUIREMENTS: ("requirements", requirements_text(lock.tool_wheels)),
    }
    records = []
    for path, (kind, data) in texts.items():
        place = folder / path.replace("/", "-")
        with disk_errors("writing", place):
            place.write_bytes(data)
        records.append(Fetched(path, kind, "airbundle", Blob(place, digest_bytes(data))))
    return records


def _without_local_path(wheel: LockedWheel) -> LockedWheel:
    """The far side learns nothing of this machine's folders."""
    return wheel.model_copy(update={"url": "file"}) if wheel.url.startswith("file:") else wheel


def sequence_of(spec: BundleSpec, lock: Lock, before: Manifest | None) -> int:
    """The bundle's number: the spec's, else the lock's date and time as YYYYMMDDhhmmss.

    Raises:
        FormatError: it would be older than what it builds on, and so refused.
    """
    sequence = spec.sequence or int("".join(filter(str.isdigit, lock.created))[:14] or 1)
    if before is not None and before.name == spec.name and sequence < before.sequence:
        raise FormatError(
            f"the number of this bundle, {sequence}, is lower than that of its base,"
            f" {before.sequence}: a site that has the base would refuse it",
            hint="Use --relock, or give a higher `sequence` in the spec.",
        )
    return sequence


def starting_paths(spec: BundleSpec, lock: Lock) -> frozenset[str]:
    """What a bare host starts the tool from, when it is to lie apart from what gets sealed."""
    if not spec.volumes.sealable:
        return frozenset()
    return frozenset(
        [
            layout.TOOL_REQUIREMENTS,
            *(layout.wheel_path(wheel.filename) for wheel in lock.tool_wheels),
            *(layout.extra_path(x.filename) for x in lock.extras if x.role == "python-runtime"),
        ]
    )


def shipped_manifest(
    spec: BundleSpec,
    lock: Lock,
    proof: Proof,
    packed: Packed,
    sequence: int,
) -> Manifest:
    """What the bundle is; `loose` and `base` come later.

    Raises:
        FormatError: the lock has no uv.
    """
    uv_wheel = next((wheel for wheel in lock.tool_wheels if wheel.name == "uv"), None)
    if uv_wheel is None:
        raise FormatError("the lock has no wheel of uv for the target", hint="Use --relock.")
    return Manifest(
        block_size=block_size_for(spec.volumes.limit),
        name=spec.name,
        sequence=sequence,
        description=spec.description,
        created=lock.created,
        target=lock.target,
        engine=ShippedEngine(
            name=lock.engine_name,
            version=lock.engine_version,
            distribution=spec.engine.distribution,
            requirements=layout.ENGINE_REQUIREMENTS,
            exclude=spec.engine.exclude,
        ),
        tool=ShippedTool(
            version=lock.airbundle_version,
            requirements=layout.TOOL_REQUIREMENTS,
            uv_wheel=layout.wheel_path(uv_wheel.filename),
        ),
        models=tuple(
            ShippedModel(
                name=model.name,
                source=model.source,
                origin=model.origin,
                revision=model.revision,
                licence=model.licence,
            )
            for model in lock.models
        ),
        # Without its model a service cannot start: a bundle of the engine alone has none.
        services=() if lock.engine_only else proof.services,
        acceptance=spec.acceptance,
        files=tuple(
            RuntimeFile(path=layout.extra_path(extra.filename), role=extra.role)
            for extra in lock.extras
        ),
        needs=proof.needs,
        waived=waived_records(proof, spec.waivers),
        volumes=packed.volumes,
        parity=packed.parity,
        loose=(),
        entries=packed.entries,
    )
