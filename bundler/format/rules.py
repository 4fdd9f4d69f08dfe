"""What a manifest must fulfil beyond its types, so that every later stage can rely on it.

Even a trusted supplier's manifest may be wrong, or made to do harm: nothing here is left to chance.
"""

from __future__ import annotations

from collections.abc import Iterator

from bundler.domain.manifest import MAX_SHARES, Entry, Manifest
from bundler.errors import FormatError
from bundler.format import layout
from bundler.format.blocks import block_count
from bundler.format.safepath import check_path, check_paths


def check_rules(manifest: Manifest) -> None:
    """Check the inner rules of a manifest.

    Raises:
        FormatError: the first rule that it breaks.
    """
    check_paths(entry.path for entry in manifest.entries)
    check_paths([volume.name for volume in manifest.volumes] + [f.name for f in manifest.loose])
    fault = next(_faults(manifest), None)
    if fault:
        raise FormatError(f"{layout.MANIFEST}: {fault}")


def _faults(manifest: Manifest) -> Iterator[str]:
    volumes = {volume.name: volume.size for volume in manifest.volumes}
    members: set[str] = set()
    if manifest.block_size & (manifest.block_size - 1):
        yield f"block_size {manifest.block_size} is no power of two"
    for entry in manifest.entries:
        yield from _entry_faults(entry, manifest.block_size)
        if not entry.parts and not _may_be_held(manifest, entry):
            yield f"{entry.path} has no parts"
        for part in entry.parts:
            if part.volume not in volumes or part.offset + part.size > volumes[part.volume]:
                yield f"{entry.path} points outside {part.volume}"
            # Over all volumes: people unzip them into one folder.
            if part.member.casefold() in members:
                yield f"two members are named {part.member}"
            members.add(part.member.casefold())
    yield from _reference_faults(manifest)
    yield from _parity_faults(manifest)


def _may_be_held(manifest: Manifest, entry: Entry) -> bool:
    """Whether the base may hold a file: never what a host needs to make sense of the bundle at all."""
    tool = {manifest.tool.uv_wheel, manifest.tool.requirements}
    return (
        manifest.base is not None
        and entry.kind in ("wheel", "model", "file")
        and (entry.path not in tool)
    )


def _parity_faults(manifest: Manifest) -> Iterator[str]:
    files = {entry.path: entry for entry in manifest.entries if entry.kind == "parity"}
    homes = {entry.parts[0].volume for entry in files.values()}
    sizes = {volume.name: volume.size for volume in manifest.volumes if volume.name not in homes}
    named = [path for one in manifest.parity for path in one.parity]
    if sorted(named) != sorted(files):
        yield "the parity sets do not name each parity file once"
        return
    covered = [name for one in manifest.parity for name in one.volumes]
    if manifest.parity and sorted(covered) != sorted(sizes):
        yield "the parity sets do not name each volume once"
        return
    if any(part.volume in homes for entry in manifest.payload for part in entry.parts):
        yield "a volume holds parity and other files"
    for one in manifest.parity:
        longest = max(sizes[name] for name in one.volumes)
        if any(files[path].size != longest for path in one.parity):
            yield "a parity file is not as long as the longest volume of its set"
        if (one.code == "xor") != (len(one.parity) == 1):
            yield "xor has one parity file, zfec more"
        if len(one.volumes) + len(one.parity) > MAX_SHARES and one.code == "zfec":
            yield f"a parity set has over {MAX_SHARES} members"


def _entry_faults(entry: Entry, block_size: int) -> Iterator[str]:
    if not layout.may_lie(entry.kind, entry.path):
        yield f"{entry.path} is no place for a {entry.kind}"
    if entry.parts and sum(part.size for part in entry.parts) != entry.size:
        yield f"the parts of {entry.path} do not add up"
    if len(entry.blocks) != block_count(entry.size, block_size):
        yield f"{entry.path} has {len(entry.blocks)} blocks, which is not what its size gives"
    if len(entry.blocks) == 1 and entry.blocks[0].sha256 != entry.sha256:
        yield f"{entry.path} and its only block have different digests"
    if any(part.size % block_size or not part.size for part in entry.parts[:-1]):
        yield f"a part of {entry.path} does not end where a block does"
    count = len(entry.parts)
    for number, part in enumerate(entry.parts, 1):
        if part.member != layout.member_name(entry.path, number, count):
            yield f"part {number} of {entry.path} is misnamed"
        else:
            check_path(part.member)
    if count > 1 and not entry.parts[-1].size:
        yield f"the last part of {entry.path} is empty"


def _reference_faults(manifest: Manifest) -> Iterator[str]:
    kinds = {entry.path: entry.kind for entry in manifest.entries}
    named = [
        (manifest.engine.requirements, "requirements"),
        (manifest.tool.requirements, "requirements"),
        (manifest.tool.uv_wheel, "wheel"),
        *((file.path, "file") for file in manifest.files),
    ]
    for path, kind in named:
        if kinds.get(path) != kind:
            yield f"{path} is named but is no {kind} of the bundle"
    models = {model.name for model in manifest.models}
    for service in manifest.services:
        if service.model not in models:
            yield f"service {service.name} serves {service.model}, which is no model of the bundle"
        if not any(path.startswith(f"models/{service.model}/") for path in kinds):
            yield f"model {service.model} has no files"
