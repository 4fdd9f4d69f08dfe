"""An export of the OSV database -> what it says of some packages, without network.

The export of an ecosystem is one zip of JSON records (https://google.github.io/osv.dev/data/); a folder or a single record
serves as well. Records follow https://ossf.github.io/osv-schema/ . Versions are compared as PEP 440 has them; a local
part (`+cpu`) does not count, as advisories never name one.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cvss import CVSS2, CVSS3, CVSS4, CVSSError
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from bundler.domain.vulnerability import Advisory, Severity
from bundler.errors import FormatError, disk_errors
from bundler.format.untrusted import NotAnObject, parse_object, shown
from bundler.format.wheelzip import DAMAGE

_LARGEST_RECORD = 8 * 2**20
_MOST_RECORDS = 2_000_000
_MOST_VALUES = 2_000_000
_ECOSYSTEM = "PyPI"
_SCORES = {"CVSS_V4": (4, CVSS4), "CVSS_V3": (3, CVSS3), "CVSS_V2": (2, CVSS2)}
# The words of GitHub's database, where a record has no vector.
_WORDS: Mapping[str, Severity] = {
    "CRITICAL": "critical", "HIGH": "high", "MODERATE": "medium", "MEDIUM": "medium", "LOW": "low",
}  # fmt: skip
_STEPS: tuple[tuple[float, Severity], ...] = (
    (9.0, "critical"),
    (7.0, "high"),
    (4.0, "medium"),
    (0.1, "low"),
)


@dataclass
class OsvDatabase:
    """What an export says of the wanted packages."""

    date: str = ""
    records: int = 0
    advisories: dict[tuple[str, str], list[Advisory]] = field(default_factory=dict)
    doubts: dict[tuple[str, str], list[str]] = field(default_factory=dict)


def read_osv(path: Path, wanted: Mapping[str, str]) -> OsvDatabase:
    """Look packages up in an export.

    Args:
        path: the zip, a folder of `*.json`, or one record.
        wanted: name -> version of each package.

    Raises:
        FormatError: it is no export, or a record in it is none.
        FileAccessError: it cannot be read.
    """
    versions: dict[str, tuple[str, str]] = {
        canonicalize_name(name): (name, version) for name, version in wanted.items()
    }
    found = OsvDatabase()
    with disk_errors("reading", path):
        for name, data in _records(path):
            found.records += 1
            if found.records > _MOST_RECORDS:
                raise FormatError(f"{path}: over {_MOST_RECORDS} records")
            try:
                record = parse_object(data, values=_MOST_VALUES)
                _take(record, versions, found)
            except (NotAnObject, _NoRecord) as cause:
                raise FormatError(
                    f"{path}: {shown(name)}: {cause}",
                    hint="Fetch the export anew: all.zip of the ecosystem from OSV.",
                ) from cause
    if not found.records:
        raise FormatError(f"{path}: holds no OSV record", hint="It is a zip or folder of *.json.")
    return found


class _NoRecord(ValueError):  # noqa: N818 - becomes a FormatError with a place
    """Not what the schema says."""


def _records(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for file in sorted(path.rglob("*.json")):
            yield file.name, _bounded(file.name, file.read_bytes())
    elif path.suffix == ".json":
        yield path.name, _bounded(path.name, path.read_bytes())
    else:
        try:
            with zipfile.ZipFile(path) as archive:
                for info in archive.infolist():
                    if info.filename.endswith(".json"):
                        with archive.open(info) as member:
                            data = member.read(_LARGEST_RECORD + 1)
                        yield info.filename, _bounded(info.filename, data)
        except DAMAGE as cause:
            raise FormatError(f"{path}: is no zip of OSV records: {shown(str(cause))}") from cause


def _bounded(name: str, data: bytes) -> bytes:
    if len(data) > _LARGEST_RECORD:
        raise FormatError(f"{shown(name)}: over {_LARGEST_RECORD} bytes; no OSV record is as large")
    return data


def _take(
    record: dict[str, Any], versions: Mapping[str, tuple[str, str]], found: OsvDatabase
) -> None:
    name, modified = record.get("id"), record.get("modified")
    if not isinstance(name, str) or not isinstance(modified, str):
        raise _NoRecord("is no OSV record: it has no id or no modified")
    found.date = max(found.date, modified[:40])
    if record.get("withdrawn"):
        return
    for affected in _list(record, "affected"):
        package = affected.get("package") if isinstance(affected, dict) else None
        if not isinstance(package, dict) or package.get("ecosystem") != _ECOSYSTEM:
            continue
        key = versions.get(canonicalize_name(str(package.get("name", ""))[:200]))
        if key is None:
            continue
        try:
            hit = _is_affected(affected, Version(Version(key[1]).public))
        except InvalidVersion as cause:
            found.doubts.setdefault(key, []).append(f"{shown(name)}: {shown(str(cause))}")
            continue
        if hit:
            found.advisories.setdefault(key, []).append(_advisory(record, affected))


def _is_affected(affected: dict[str, Any], version: Version) -> bool:
    """Listed, or in a range (https://ossf.github.io/osv-schema/#evaluation)."""
    listed = [text for text in _list(affected, "versions") if isinstance(text, str)]
    if any(_same(text, version) for text in listed):
        return True
    for one in _list(affected, "ranges"):
        if isinstance(one, dict) and one.get("type") == "ECOSYSTEM" and _in_range(one, version):
            return True
    return False


def _same(text: str, version: Version) -> bool:
    # Lists hold legacy versions that PEP 440 does not know; no wheel has one.
    try:
        return Version(text) == version
    except InvalidVersion:
        return False


def _in_range(one: dict[str, Any], version: Version) -> bool:
    """Between an `introduced` and the `fixed` (left out) or `last_affected` (taken in) that follows it."""
    events: list[tuple[Version, int, str]] = []
    for event in _list(one, "events"):
        for kind, text in event.items() if isinstance(event, dict) else ():
            if kind in ("introduced", "fixed", "last_affected"):
                at = Version("0.dev0" if text == "0" else str(text))
                events.append((at, 1 if kind == "last_affected" else 0, kind))
    hit = False
    for at, _, kind in sorted(events):
        if kind == "introduced" and version >= at:
            hit = True
        elif (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            hit = False
    return hit


def _advisory(record: dict[str, Any], affected: dict[str, Any]) -> Advisory:
    aliases = [str(text)[:100] for text in _list(record, "aliases") if isinstance(text, str)]
    names = [str(record["id"])[:100], *aliases]
    first = next((name for name in names if name.startswith("CVE-")), names[0])
    fixed = [
        str(event["fixed"])[:100]
        for one in _list(affected, "ranges")
        if isinstance(one, dict) and one.get("type") == "ECOSYSTEM"
        for event in _list(one, "events")
        if isinstance(event, dict) and isinstance(event.get("fixed"), str)
    ]
    severity, score, vector = _severity(record, affected)
    said = record.get("summary") or record.get("details") or ""
    return Advisory(
        id=shown(first),
        aliases=tuple(shown(name) for name in dict.fromkeys(names) if name != first),
        summary=shown(" ".join(str(said).split()), 300),
        severity=severity,
        score=score,
        vector=shown(vector, 300),
        fixed=tuple(map(shown, fixed)),
        modified=str(record["modified"])[:40],
    )


def _severity(
    record: dict[str, Any], affected: dict[str, Any]
) -> tuple[Severity, float | None, str]:
    """By the newest CVSS vector; else by the database's own word; else unknown."""
    best: tuple[int, float, str] | None = None
    for one in (*_list(affected, "severity"), *_list(record, "severity")):
        kind, score = (one.get("type"), one.get("score")) if isinstance(one, dict) else (None, None)
        if kind not in _SCORES or not isinstance(score, str):
            continue
        generation, parse = _SCORES[kind]
        try:
            base = float(parse(score[:300]).scores()[0] or 0.0)
        except (CVSSError, ValueError, ArithmeticError, LookupError):
            continue
        if best is None or generation > best[0]:
            best = (generation, base, score)
    if best is not None:
        return _step(best[1]), best[1], best[2]
    words = record.get("database_specific")
    word = str(words.get("severity", "")).upper() if isinstance(words, dict) else ""
    return _WORDS.get(word, "unknown"), None, ""


def _step(score: float) -> Severity:
    return next((name for least, name in _STEPS if score >= least), "low")


def _list(of: dict[str, Any], key: str) -> list[Any]:
    value = of.get(key)
    return value if isinstance(value, list) else []
