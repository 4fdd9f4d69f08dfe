"""`accept --ab` to its end: compare, or read a comparison that is there, show it, and put the better one in use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bundler import wiring
from bundler.cli import comparing
from bundler.cli.auditing import recorded
from bundler.cli.console import say, show_json
from bundler.cli.judging import EXIT
from bundler.errors import (
    EXIT_INCONCLUSIVE,
    EXIT_OK,
    BundlerError,
    FormatError,
    StateError,
    disk_errors,
)

if TYPE_CHECKING:
    from bundler.deploy.applying import Applied, Applier
    from bundler.deploy.audit import Action
    from bundler.deploy.root import Root
    from bundler.domain.ab import ABRecord
    from bundler.domain.facts import ReleaseRecord
    from bundler.domain.manifest import VerifiedManifest
    from bundler.ports import Progress

# A record of twenty pairs of fifty levels is about one.
_LARGEST = 64 * 2**20


@dataclass(frozen=True)
class Chosen:
    """What is compared, and what is done with the answer."""

    place: Root
    release: ReleaseRecord
    verified: VerifiedManifest
    apply: bool
    json: bool


def compared(
    side: Chosen, ab: str, shown: Progress, *, timeout_s: float, pairs: int, only: str | None
) -> int:
    """Measure both arms; gives the exit code.

    Raises:
        SpecError, StateError, TrustError: see `Comparer.run` and `Applier`.
    """
    comparer = comparing.Comparer(
        place=side.place,
        record=side.release,
        verified=side.verified,
        arms=comparing.parse_arms(ab),
        shown=shown,
        timeout_s=timeout_s,
        pairs=pairs,
        only=only,
    )
    with recorded(side.place, f"accept --ab {ab}"[:40], changes=side.apply) as action:
        action.about(side.verified)
        if side.apply:
            _applier(side.place).check_may_begin()
        record, path = comparer.run()
        return _end(side, action, record, path)


def kept(side: Chosen, file: Path) -> int:
    """Show a comparison that was made before; gives the exit code.

    Raises:
        StateError: it is not of this root, or of another release than the one in use.
        FormatError: it is none, did not end, or says what its runs do not.
    """
    path = file if file.is_file() else side.place.path / file
    path = path.absolute()
    _named(side.place, path)
    record = _read(path)
    if (record.manifest_sha256, record.release) != (side.verified.digest, side.release.release_id):
        raise StateError(
            f"{path}: compares settings of {record.release or record.bundle_id}, and"
            f" {side.release.release_id} is in use",
            hint="Put that one in use first (airbundle rollback), or compare again.",
        )
    with recorded(side.place, "accept --ab-record", changes=side.apply) as action:
        action.about(side.verified)
        return _end(side, action, record, path)


def _named(place: Root, path: Path) -> str:
    """How a release's record names a comparison: from the root, also where acceptance/ is a link to a larger disk.

    Raises:
        StateError: it lies elsewhere, or no record can hold its name.
    """
    held = Path(os.path.realpath(place.acceptance))
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(held):
        raise StateError(
            f"{path}: lies outside of {place.acceptance}, and what justifies a release stays on its host",
            hint="Compare here: airbundle accept --ab KEY=A,B --root ROOT",
        )
    name = (place.acceptance / real.relative_to(held)).relative_to(place.path).as_posix()
    if not name.isprintable():
        raise StateError(
            f"{str(path)!a}: a name with control characters",
            hint="Rename it, then give it again.",
        )
    return name


def _read(path: Path) -> ABRecord:
    from bundler.accept.ab import MARGIN, concluded
    from bundler.domain.ab import ABRecord
    from bundler.format.codec import from_bytes

    with disk_errors("reading", path), path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise FormatError(f"{path}: over {_LARGEST} bytes, which no comparison is")
    record = from_bytes(ABRecord, data, str(path))
    ended = len(record.runs) == 2 * record.pairs or any(run.void for run in record.runs)
    if not record.pairs or not ended:
        raise FormatError(
            f"{path}: did not end", hint="Compare again: airbundle accept --ab KEY=A,B"
        )
    try:
        anew = concluded(record.model_copy(update={"margin": MARGIN}))
    except ValueError as cause:
        raise FormatError(f"{path}: {cause}") from cause
    if anew != record:
        raise FormatError(
            f"{path}: says what its runs do not say",
            hint="It was changed since, or is of another version. Compare again.",
        )
    return record


def _end(side: Chosen, action: Action, record: ABRecord, path: Path) -> int:
    """Show, apply when asked to, and put all of it in the audit log."""
    from bundler.format.digests import sha256_file

    with disk_errors("reading", path):
        digest = sha256_file(path)
    where = _named(side.place, path)
    # The log keeps a few hundred characters: what counts comes first.
    action.detail = told = f"{where}, SHA-256 {digest}; {record.said}"
    if not side.json:
        comparing.show_comparison(record, path)
    code = EXIT_OK if record.decided else EXIT_INCONCLUSIVE
    if not side.apply:
        if side.json:
            show_json({"record": str(path), **record.model_dump(mode="json")})
        return code
    applied, why, code = _applied(side, record, where, digest, code)
    said = applied.said if applied else f"nothing is applied: {why}"
    action.detail = f"{said}; {told}"
    if side.json:
        found = {"release": applied.release, "new": applied.new} if applied else None
        show_json(
            {
                "record": str(path),
                **record.model_dump(mode="json"),
                "applied": found,
                "applying": said,
            }
        )
    elif applied is None:
        say(said, "bold yellow")
    else:
        say(f"{'applied' if applied.new else 'nothing to do'}: {said}", "bold green")
        if applied.new:
            say("Nothing was started: airbundle start, then airbundle accept --root ROOT")
    return code


def _applied(
    side: Chosen, record: ABRecord, where: str, digest: str, code: int
) -> tuple[Applied | None, str, int]:
    """What is in use now, or why nothing was applied; and the exit code."""
    from bundler.accept.ab import why_not
    from bundler.domain.variants import Step

    why, verdict = why_not(record)
    if why or record.keep is None:
        return None, why, code if verdict is None else EXIT[verdict]
    arm = next(arm for arm in record.arms if arm.name == record.keep)
    applier = _applier(side.place)
    try:
        if comparing.RELEASE in arm.changes:
            return applier.release(record.release, arm.release), "", code
        step = Step(
            changes=arm.changes,
            service=record.service,
            record=where,
            record_sha256=digest,
            said=record.said,
            applied=wiring.clock().now(),
        )
        engine = wiring.ENGINES[side.release.engine_name]()
        return applier.settings(record.release, step, engine), "", code
    except BundlerError as error:
        again = f"The comparison is kept: airbundle accept --ab-record {where} --apply"
        hint = f"{error.hint} {again}" if error.hint else again
        raise type(error)(f"not applied: {error}", hint=hint, details=error.details) from error


def _applier(place: Root) -> Applier:
    from bundler.deploy.applying import Applier

    return Applier(place, wiring.gate())
