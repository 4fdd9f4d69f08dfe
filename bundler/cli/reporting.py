"""What `report` writes: the run's reports, their signature, and two runs compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bundler import wiring
from bundler.cli.console import say
from bundler.cli.judging import RECORD
from bundler.domain.record import Record
from bundler.errors import FileAccessError, FormatError, StateError, TrustError, disk_errors

if TYPE_CHECKING:
    from bundler.deploy.root import Root
    from bundler.domain.beside import Beside
    from bundler.domain.compared import RunsCompared
    from bundler.domain.facts import AcceptanceRecord
    from bundler.ports import Signer, Verifier

REPORT = "report.json"
_MOST_BYTES = 512 * 2**20
# Of other runs of the bundle the newest are shown: one search for each service, and so many comparisons.
_MOST_SETTINGS = 3
R = TypeVar("R", bound=Record)


def read_run(path: Path) -> AcceptanceRecord:
    """An acceptance run: `record.json`, a `report.json`, or the folder that holds one.

    Raises:
        StateError: there is none, or it is far too large.
        FormatError: it is none.
        FileAccessError: it cannot be read.
    """
    from bundler.domain.facts import AcceptanceRecord

    file = path
    if path.is_dir():
        file = path / (RECORD if (path / RECORD).is_file() else REPORT)
    if not file.is_file():
        raise StateError(
            f"{path}: no such run", hint=f"Runs are ROOT/acceptance/TIME/{RECORD}, or a {REPORT}."
        )
    return _read(AcceptanceRecord, file)


def _read(kind: type[R], file: Path) -> R:
    from bundler.format.codec import from_bytes

    with disk_errors("reading", file), file.open("rb") as opened:
        data = opened.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise StateError(f"{file}: over {_MOST_BYTES} bytes; no run")
    return from_bytes(kind, data, str(file))


def beside_of(place: Root, record: AcceptanceRecord) -> Beside:
    """Other runs of the same bundle at this root. One that cannot be read is said and left out."""
    from bundler.cli.capacity import FILE
    from bundler.cli.comparing import AB_RECORD
    from bundler.domain.ab import ABRecord
    from bundler.domain.beside import Beside
    from bundler.domain.capacity import CapacityRecord

    searches: dict[str, CapacityRecord] = {}
    for search in _newest(place, f"*-find-max/{FILE}", CapacityRecord):
        if search.manifest_sha256 == record.manifest_sha256:
            searches.setdefault(search.service, search)
    settings = [
        one
        for one in _newest(place, f"*-ab/{AB_RECORD}", ABRecord)
        if one.manifest_sha256 == record.manifest_sha256 and one.comparisons
    ]
    return Beside(searches=tuple(searches.values()), settings=tuple(settings[:_MOST_SETTINGS]))


def _newest(place: Root, pattern: str, kind: type[R]) -> Iterator[R]:
    """Records below the root, the newest first; folders are named by time."""
    for path in sorted(place.acceptance.glob(pattern), reverse=True):
        try:
            yield _read(kind, path)
        except (FormatError, StateError, FileAccessError) as cause:
            say(f"left out: {cause}", "yellow")


def write_reports(
    place: Root, record: AcceptanceRecord, folder: Path, signer: Signer | None
) -> list[Path]:
    """Write every report, and the signature of `report.json` when there is a signer.

    Raises:
        SpaceError, FileAccessError: one cannot be written.
    """
    beside = beside_of(place, record)
    written = []
    for make in wiring.REPORTS.values():
        writer = make()
        path, data = folder / writer.filename, writer.render(record, beside).encode()
        if writer.filename == REPORT:
            # The signature first: a report whose signature is missing was never signed.
            written += _signed(place, path, data, signer)
        place.write(path, data)
        written.append(path)
    return written


def _signed(place: Root, path: Path, data: bytes, signer: Signer | None) -> list[Path]:
    from bundler.format.atomic import remove

    signature = signature_of(path)
    if signer is not None:
        place.write(signature, signer.sign(data))
        return [signature]
    # A signature of another report beside this one would look like a forgery.
    with disk_errors("writing", signature):
        if signature.is_file() and not _holds(path, data):
            remove(signature, "it signs another report")
    return []


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data


def signature_of(path: Path) -> Path:
    """Where a report's signature lies: beside it, raw 64 bytes of Ed25519 over exactly its bytes."""
    return path.with_name(path.name + ".sig")


def verified_report(file: Path, verifier: Verifier) -> AcceptanceRecord:
    """A report that this key signed.

    Raises:
        StateError: it or its signature is not there.
        TrustError: it is not signed by that key, or was changed since.
        FormatError: it is no report in canonical form.
    """
    from bundler.domain.facts import AcceptanceRecord
    from bundler.format.codec import bytes_read, from_bytes

    signature = signature_of(file)
    if not file.is_file() or not signature.is_file():
        raise StateError(f"{file}: it or its .sig is not there", hint="Give both files.")
    with disk_errors("reading", file), file.open("rb") as opened, signature.open("rb") as beside:
        data, sign = opened.read(_MOST_BYTES + 1), beside.read(1024)
    if len(data) > _MOST_BYTES or not verifier.verify(data, sign):
        raise TrustError(
            f"{file}: is not signed by key {verifier.key_id}, or was changed since",
            hint="Ask who signed it, by another channel, for the right key and report.",
        )
    record = from_bytes(AcceptanceRecord, data, str(file))
    if bytes_read(record) != data:
        raise FormatError(f"{file}: not in canonical form")
    return record


def write_comparison(
    place: Root, record: AcceptanceRecord, label: str, other: Path, folder: Path
) -> tuple[RunsCompared, list[Path]]:
    """Put an earlier run (A) beside this one (B). `other` may also name a folder of ROOT/acceptance.

    Raises:
        StateError: no such run, this very run, or no figure in common.
        FormatError: it is no run.
        SpaceError, FileAccessError: it cannot be read, or the pages cannot be written.
    """
    from bundler.accept.sidebyside import runs_compared

    named = place.acceptance / other
    earlier = read_run(named if not other.exists() and named.is_dir() else other)
    if (earlier.bundle_id, earlier.began) == (record.bundle_id, record.began):
        raise StateError(
            f"{other}: is the very run that it would be compared with",
            hint="Name an earlier run: a folder of ROOT/acceptance, or a report.json.",
        )
    compared = runs_compared(earlier, record, (str(other), label))
    written = []
    for make in wiring.COMPARISONS.values():
        writer = make()
        place.write(folder / writer.filename, writer.render(compared).encode())
        written.append(folder / writer.filename)
    return compared, written
