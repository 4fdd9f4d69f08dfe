"""Advisories, exceptions and a date -> what counts today. A look-up that failed is "not checked", never "none"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import yaml
from pydantic import Field, ValidationError

from bundler.domain.record import Record
from bundler.domain.vulnerability import (
    SEVERITIES,
    Advisory,
    Unchecked,
    VexException,
    Vulnerability,
    VulnerabilityCheck,
)
from bundler.errors import SourceError, SpecError, disk_errors
from bundler.format.untrusted import shown
from bundler.ports import Task
from bundler.review.osv import OsvDatabase, read_osv

_LARGEST_FILE = 4 * 2**20
_TRIES = 3
Key = tuple[str, str]


class _Exceptions(Record):
    exceptions: tuple[VexException, ...] = Field((), max_length=10_000)


def read_exceptions(path: Path) -> tuple[VexException, ...]:
    """Read a file of exceptions: `exceptions:`, a list with the keys of `VexException`.

    Raises:
        SpecError: it is none; the first wrong key is named.
        FileAccessError: it cannot be read.
    """
    with disk_errors("reading", path):
        data = path.read_bytes()
    try:
        if len(data) > _LARGEST_FILE:
            raise SpecError(f"{path}: over {_LARGEST_FILE} bytes")
        # Dates come as text: YAML would make objects of them.
        loaded = yaml.load(data, Loader=yaml.BaseLoader)  # noqa: S506 - makes text, lists, maps alone
        return _Exceptions.model_validate(loaded or {}).exceptions
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as cause:
        raise SpecError(f"{path}: is no YAML: {shown(str(cause))}") from cause
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "top level"
        raise SpecError(
            f"{path}: {where}: {first['msg']}",
            hint="docs/review.md shows an exception with all its keys.",
        ) from error


def check_by_osv(
    packages: Mapping[str, str], export: Path, exceptions: Sequence[VexException], today: str
) -> VulnerabilityCheck:
    """Look packages up in an OSV export.

    Args:
        packages: name -> version.
        export: see `read_osv`.
        exceptions: what was looked at already.
        today: YYYY-MM-DD.

    Raises:
        FormatError: the export is none.
        FileAccessError: it cannot be read.
    """
    database = read_osv(export, packages)
    unchecked = [
        Unchecked(package=name, version=version, why=f"a record was not understood: {doubts[0]}")
        for (name, version), doubts in sorted(database.doubts.items())
    ]
    return judge(
        source=f"OSV export {shown(export.name)}",
        date=database.date,
        advisories=_complete(database, packages),
        unchecked=unchecked,
        exceptions=exceptions,
        today=today,
    )


def check_by_index(
    packages: Mapping[str, str],
    ask: Callable[[str, str], Iterable[Advisory]],
    source: str,
    now: str,
    task: Task,
) -> VulnerabilityCheck:
    """Ask a package index about one package after another.

    An index that answers none of the first questions is not asked any more.

    Args:
        packages: name -> version.
        ask: gives what it knows of one; raises SourceError.
        source: which index.
        now: UTC time, which is the date of what it says.
        task: told of packages.
    """
    known: dict[Key, Iterable[Advisory]] = {}
    unchecked: list[Unchecked] = []
    for name, version in sorted(packages.items()):
        if len(unchecked) >= _TRIES and not known:
            why = unchecked[-1].why
        else:
            try:
                known[name, version] = tuple(ask(name, version))
                task.advance(1)
                continue
            except SourceError as error:
                why = shown(str(error), 200)
        unchecked.append(Unchecked(package=name, version=version, why=why))
        task.advance(1)
    return judge(
        source=source,
        date=now,
        advisories=known,
        unchecked=unchecked,
        exceptions=(),
        today=now[:10],
    )


def _complete(database: OsvDatabase, packages: Mapping[str, str]) -> dict[Key, list[Advisory]]:
    return {key: database.advisories.get(key, []) for key in sorted(packages.items())}


def judge(
    *,
    source: str,
    date: str,
    advisories: Mapping[Key, Iterable[Advisory]],
    unchecked: Sequence[Unchecked],
    exceptions: Sequence[VexException],
    today: str,
) -> VulnerabilityCheck:
    """One entry for each vulnerability of each package, the worst first, with the exception that covers it.

    Args:
        source: the database.
        date: its date.
        advisories: package and version -> what the database says; empty lists are packages without any.
        unchecked: what could not be looked up.
        exceptions: what was looked at already.
        today: YYYY-MM-DD; an exception counts on its last day.
    """
    found: list[Vulnerability] = []
    used: set[int] = set()
    for (package, version), several in advisories.items():
        for advisory in _merged(several):
            covering = [
                (at, one)
                for at, one in enumerate(exceptions)
                if _covers(one, package, version, advisory)
            ]
            used.update(at for at, _ in covering)
            valid = [one for _, one in covering if one.expires >= today]
            late = [one for _, one in covering if one.expires < today]
            found.append(
                Vulnerability(
                    package=package,
                    version=version,
                    advisory=advisory,
                    excepted=valid[0] if valid else None,
                    expired=late[0] if late and not valid else None,
                )
            )
    found.sort(key=lambda one: (not one.counts, _rank(one.advisory), one.package, one.advisory.id))
    missing = {(one.package, one.version) for one in unchecked}
    return VulnerabilityCheck(
        source=source,
        date=date,
        checked=sum(key not in missing for key in advisories),
        found=tuple(found),
        unchecked=tuple(unchecked),
        unused=tuple(one for at, one in enumerate(exceptions) if at not in used),
    )


def _rank(advisory: Advisory) -> tuple[int, float]:
    return SEVERITIES.index(advisory.severity), -(advisory.score or 0.0)


def _covers(one: VexException, package: str, version: str, advisory: Advisory) -> bool:
    return (
        one.id in advisory.names
        and one.package in (None, package)
        and one.version in (None, version)
    )


def _merged(several: Iterable[Advisory]) -> list[Advisory]:
    """Records of one vulnerability under several names, as the databases of PyPA and GitHub have them, as one."""
    groups: list[list[Advisory]] = []
    for advisory in several:
        same = [group for group in groups if any(advisory.names & other.names for other in group)]
        groups = [group for group in groups if group not in same]
        groups.append([*(one for group in same for one in group), advisory])
    return [_one_of(group) for group in groups]


def _one_of(group: list[Advisory]) -> Advisory:
    worst = min(group, key=lambda one: (one.score is None, _rank(one)))
    names = sorted({name for one in group for name in one.names})
    first = next((name for name in names if name.startswith("CVE-")), worst.id)
    return worst.model_copy(
        update={
            "id": first,
            "aliases": tuple(name for name in names if name != first),
            "summary": worst.summary or next((one.summary for one in group if one.summary), ""),
            "fixed": tuple(dict.fromkeys(text for one in group for text in one.fixed)),
            "modified": max(one.modified for one in group),
        }
    )
