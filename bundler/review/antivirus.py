"""A log of ClamAV -> which files of a bundle were scanned, by what, and which were not. The log is a stranger's.

`clamscan` and `clamdscan` print a line for each file, then a summary; `clamscan --version` and `freshclam` name the
patterns. ClamAV passes over files that are larger than its limits (2 GiB at most, 100 MB unless told otherwise:
https://docs.clamav.net/manual/Usage/Configuration.html) and says OK of them, so an OK alone proves no scan.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from bundler.domain.antivirus import AntivirusHit, AntivirusResult, Uncovered
from bundler.domain.manifest import Entry, Manifest
from bundler.errors import FormatError, disk_errors
from bundler.format.digests import sha256_hex
from bundler.format.untrusted import shown

_LARGEST_LOG = 64 * 2**20
_LONGEST_LINE = 8192
_MOST_HITS = 1000
_LIMIT = 2 * 2**30
_DEEPEST = 64
_SUMMARY = "SCAN SUMMARY"
# clamd's own log has the time before each line.
_STAMP = re.compile(r"^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4} -> ")
_VERSION = re.compile(r"^ClamAV (\d[^/\s]*)(?:/(\d+)/(.+))?$")
_FRESH = re.compile(r"^daily\.c[vl]d (?:database is up-to-date|updated) \(version: (\d+),")
_FIELD = re.compile(r"^([A-Z][a-z]+(?: [a-z]+)?(?: Date)?):\s+(.+)$")
_MEGABYTES = re.compile(r"^(\d+(?:\.\d+)?) ([KMG]?)i?B\b")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def read_antivirus_log(path: Path, manifest: Manifest) -> AntivirusResult:
    """Read a log that `clamscan` or `clamdscan` printed, and hold it against a bundle's files.

    A volume counts as scanned when it was, or when everything in it was.

    Raises:
        FormatError: it is no such log.
        FileAccessError: it cannot be read.
    """
    with disk_errors("reading", path):
        if path.stat().st_size > _LARGEST_LOG:
            raise FormatError(f"{path}: over {_LARGEST_LOG} bytes", hint=_HINT)
        data = path.read_bytes()
    log = _Log(_sizes(manifest))
    for line in _lines(data):
        log.take(line)
    if not log.seen and not log.fields:
        raise FormatError(f"{path}: is no log of clamscan or clamdscan", hint=_HINT)
    return log.result(path.name, sha256_hex(data), manifest)


_HINT = "Give what this printed: (clamscan --version; clamscan --recursive DIR) > clamav.log"


def _lines(data: bytes) -> Iterator[str]:
    # PowerShell's > writes UTF-16.
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if wide else "utf-8-sig", "replace")
    for line in text.split("\n"):
        yield _STAMP.sub("", line[:_LONGEST_LINE].rstrip("\r"))


def _sizes(manifest: Manifest) -> dict[str, int]:
    """Every file that can be scanned: those on the medium, and those that are in the volumes."""
    return {
        **{volume.name: volume.size for volume in manifest.volumes},
        **{loose.name: loose.size for loose in manifest.loose},
        **{entry.path: entry.size for entry in manifest.entries},
    }


class _Log:
    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self.fields: dict[str, str] = {}
        self.seen: dict[str, str] = {}
        self._hits: dict[tuple[str, str], AntivirusHit] = {}
        self._patterns = ("", "", "")
        self._summed = False

    def take(self, line: str) -> None:
        """One line."""
        version, fresh = _VERSION.match(line), _FRESH.match(line)
        if version:
            self._patterns = (version[1], version[2] or self._patterns[1], version[3] or "")
        elif fresh:
            self._patterns = (self._patterns[0], fresh[1], self._patterns[2])
        elif _SUMMARY in line and line.startswith("---"):
            self._summed = True
        elif self._summed and (field := _FIELD.match(line)):
            self.fields.setdefault(field[1], shown(field[2].strip(), 100))
        elif line.endswith(" ERROR") and ": " in line:
            # "FILE: lstat() failed: Permission denied. ERROR"
            self._file(*line.split(": ", 1))
        elif ": " in line:
            self._file(*line.rsplit(": ", 1))

    def _file(self, path: str, said: str) -> None:
        name = self._of_bundle(path)
        if said.endswith(" FOUND"):
            found = said.removesuffix(" FOUND")
            if found.startswith("Heuristics.Limits.Exceeded"):
                self._remember(name, f"the engine stopped at a limit: {shown(found)}")
                return
            if len(self._hits) < _MOST_HITS:
                hit = AntivirusHit(
                    path=shown(path, 300), name=shown(found), in_bundle=name is not None
                )
                self._hits[hit.path, hit.name] = hit
            self._remember(name, "", scanned=True)
        elif said == "OK" or (said == "Empty file" and name and not self._sizes[name]):
            self._remember(name, "", scanned=True)
        else:
            self._remember(name, f"the log says: {shown(said)}")

    def _remember(self, name: str | None, why: str, *, scanned: bool = False) -> None:
        """What speaks against a scan stays, whatever a later line says."""
        if name is None:
            return
        if scanned and self._sizes[name] > _LIMIT:
            why = "over 2 GiB: ClamAV passes over such a file and says OK"
        self.seen[name] = self.seen.get(name) or why

    def _of_bundle(self, path: str) -> str | None:
        """The longest end of a path that is a file of the bundle."""
        parts = path.replace("\\", "/").split("/")[-_DEEPEST:]
        ends = ("/".join(parts[at:]) for at in range(len(parts)))
        return next((end for end in ends if end in self._sizes), None)

    def result(self, log: str, digest: str, manifest: Manifest) -> AntivirusResult:
        """All of it."""
        covered, uncovered = self._coverage(manifest)
        version, pattern, date = self._patterns
        return AntivirusResult(
            log=shown(log),
            log_sha256=digest,
            engine="ClamAV",
            engine_version=shown(self.fields.get("Engine version", version)),
            pattern_version=pattern,
            pattern_date=shown(date),
            known_viruses=_count(self.fields.get("Known viruses")),
            scanned_files=_count(self.fields.get("Scanned files")),
            started=self.fields.get("Start Date", ""),
            ended=self.fields.get("End Date", ""),
            hits=tuple(self._hits.values()),
            covered=covered,
            uncovered=tuple(uncovered),
            doubts=tuple(self._doubts(version)),
        )

    def _coverage(self, manifest: Manifest) -> tuple[int, list[Uncovered]]:
        """Files on the medium that were scanned, and those that were not.

        Of a volume that was not scanned itself, the files in it that were not are named.
        """
        covered, uncovered = 0, []
        held: dict[str, list[Entry]] = {}
        for entry in manifest.entries:
            for volume in dict.fromkeys(part.volume for part in entry.parts):
                held.setdefault(volume, []).append(entry)
        names = [one.name for one in manifest.loose] + [one.name for one in manifest.volumes]
        for name in names:
            why, inside = self._why(name), held.get(name, [])
            missing = [entry.path for entry in inside if self._why(entry.path) is not None]
            if why is None or (inside and not missing):
                covered += 1
                continue
            uncovered.append(Uncovered(path=name, why=why))
            if len(missing) < len(inside):
                uncovered += [Uncovered(path=path, why=self._why(path) or "") for path in missing]
        return covered, list(dict.fromkeys(uncovered))

    def _why(self, name: str) -> str | None:
        """Why a file does not count as scanned; None when it does."""
        return self.seen.get(name, "the log does not name it") or None

    def _doubts(self, version: str) -> Iterator[str]:
        if not self._summed:
            yield "the log has no summary: it may be cut"
        infected = _count(self.fields.get("Infected files"))
        limits = sum(why.startswith("the engine stopped") for why in self.seen.values())
        if infected is not None and infected > len({path for path, _ in self._hits}) + limits:
            yield f"the summary counts {infected} infected files, the log names fewer"
        if errors := _count(self.fields.get("Total errors")):
            yield f"the summary counts {errors} errors"
        if version and self.fields.get("Engine version", version) != version:
            yield f"two engines: {shown(version)} and {self.fields['Engine version']}"
        listed = sum(self._sizes[name] for name, why in self.seen.items() if not why)
        scanned = _bytes(self.fields.get("Data scanned"))
        if scanned is not None and scanned < listed * 0.9 - 2**20:
            yield (
                f"the engine scanned {self.fields['Data scanned']} of files with {listed / 2**20:.2f} MB:"
                " it passes over what is beyond its limits and says OK"
            )


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,15}", text) else None


def _bytes(text: str | None) -> float | None:
    match = _MEGABYTES.match(text or "")
    return float(match[1]) * _UNITS[match[2]] if match else None
