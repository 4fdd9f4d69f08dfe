"""The closure proves itself: resolved again from the fetched wheels alone, for the target.

What an index would quietly have added is missing here, as it will be behind the gap.
"""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bundler.build.fetch import Fetched
from bundler.build.resolve import engine_request
from bundler.build.toolwheel import NAME
from bundler.domain.lock import Lock, LockedWheel
from bundler.domain.sizes import human
from bundler.domain.spec import BundleSpec
from bundler.errors import IntegrityError, ResolveError, disk_errors
from bundler.format import layout
from bundler.format.untrusted import shown
from bundler.format.wheelzip import DAMAGE, open_wheel
from bundler.ports import WheelRequest, WheelResolver

# What a resolver reads of a wheel.
_MOST = 64 * 2**20
_READ = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt")


def check_closures(
    spec: BundleSpec,
    lock: Lock,
    base: Path,
    fetched: Sequence[Fetched],
    resolver: WheelResolver,
    work: Path,
) -> None:
    """Resolve the engine's and the tool's closure from the bundle's own wheels.

    Args:
        spec: what was asked for.
        lock: the closures.
        base: the folder that the spec's relative paths start from.
        fetched: their files.
        resolver: asked with no index at all.
        work: a folder to make and remove again.

    Raises:
        ResolveError: something is missing, or not what the lock says; everything is named.
    """
    files = {item.path: item.blob.path for item in fetched}
    engine = engine_request(spec, base, lock.target)
    tool = WheelRequest(requirements=(f"{NAME}=={lock.airbundle_version}",), target=lock.target)
    for what, wheels, request in (
        (f"{spec.engine.distribution} {lock.engine_version}", lock.engine_wheels, engine),
        (f"{NAME} {lock.airbundle_version}", lock.tool_wheels, tool),
    ):
        try:
            _check(what, wheels, files, request, resolver, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _check(
    what: str,
    wheels: Sequence[LockedWheel],
    files: Mapping[str, Path],
    request: WheelRequest,
    resolver: WheelResolver,
    work: Path,
) -> None:
    for wheel in wheels:
        _stand_in(files[layout.wheel_path(wheel.filename)], work / wheel.filename)
    try:
        found = resolver.resolve(
            replace(
                request,
                find_links=(work,),
                only_links=True,
                index=None,
                indexes=(),
                exclude_newer=None,
                build_sdists=False,
            )
        )
    except ResolveError as cause:
        raise ResolveError(
            f"the closure of {what} is not complete by itself: {cause}",
            hint="Make a new lock with --relock; if it stays, add what is named to"
            " engine.requirements, or to engine.exclude when it is not needed.",
            details=cause.details,
        ) from cause
    faults = _differences(wheels, found)
    if faults:
        raise ResolveError(
            f"the closure of {what} is not what the lock says: {faults[0]}",
            hint="Make a new lock with --relock.",
            details=faults,
        )


def _stand_in(source: Path, target: Path) -> None:
    """A wheel of the same name and metadata, without its content.

    uv unpacks a local wheel into its cache before it reads the metadata: a whole closure would cost
    minutes and twice its size on the disk.
    """
    try:
        with disk_errors("writing", target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with open_wheel(source) as whole, zipfile.ZipFile(target, "w") as part:
                for info in whole.infolist():
                    folder, _, name = info.filename.partition("/")
                    if folder.endswith(".dist-info") and name in _READ:
                        part.writestr(zipfile.ZipInfo(info.filename), _read(whole, info))
    except DAMAGE as cause:
        raise IntegrityError(
            f"{target.name}: is no wheel: {shown(str(cause))}",
            hint="The index or find-links page serves a broken file; tell its owner.",
        ) from cause


def _read(whole: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A member, never more of it than any wheel has: a packed desert of zeros would fill memory."""
    with whole.open(info) as member:
        data = member.read(_MOST + 1)
    if len(data) > _MOST:
        raise zipfile.BadZipFile(f"{shown(info.filename)} unpacks to more than {human(_MOST)}")
    return data


def _differences(locked: Sequence[LockedWheel], found: Sequence[LockedWheel]) -> list[str]:
    wanted = {wheel.name: wheel.filename for wheel in locked}
    there = {wheel.name: wheel.filename for wheel in found}
    faults = [
        f"{name}: {filename} is carried, {there[name]} is chosen"
        for name, filename in wanted.items()
        if name in there and there[name] != filename
    ]
    return faults + [
        f"{name}: carried, but nothing needs it" for name in wanted if name not in there
    ]
