"""An OSV export against packages; exceptions with a last day; what was not checked is never none."""

import json
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from bundler.adapters.fetch_http.advisories import IndexAdvisories
from bundler.domain.hostindex import HostIndex
from bundler.domain.vulnerability import Unchecked
from bundler.errors import FormatError, SourceError, SpecError
from bundler.review.osv import read_osv
from bundler.review.vulnerabilities import check_by_index, check_by_osv, judge, read_exceptions

TODAY = "2026-12-02"
V31_CRITICAL = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"
V31_LOW = "CVSS:3.1/AV:L/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N"
V4_HIGH = "CVSS:4.0/AV:N/AC:L/AT:N/PR:L/UI:N/VC:H/VI:N/VA:N/SC:N/SI:N/SA:N"


def record(name: str = "GHSA-aaaa", package: str = "Torch", **changes: Any) -> dict[str, Any]:
    """As https://ossf.github.io/osv-schema/ has it."""
    events = changes.pop("events", [{"introduced": "0"}, {"fixed": "2.10.0"}])
    affected = {
        "package": {"ecosystem": "PyPI", "name": package},
        "ranges": [{"type": "ECOSYSTEM", "events": events}],
        "versions": changes.pop("versions", []),
    }
    return {
        "id": name, "modified": "2026-11-01T00:00:00Z", "summary": f"{name} does harm",
        "affected": [affected], **changes,
    }  # fmt: skip


def export(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "all.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in records:
            archive.writestr(f"{one['id']}.json", json.dumps(one))
    return path


def hits(tmp_path: Path, version: str, **changes: Any) -> bool:
    found = read_osv(export(tmp_path, record(**changes)), {"torch": version})
    return bool(found.advisories)


@pytest.mark.parametrize(
    ("version", "events", "hit"),
    [
        ("2.9.1", [{"introduced": "0"}, {"fixed": "2.10.0"}], True),
        ("2.10.0", [{"introduced": "0"}, {"fixed": "2.10.0"}], False),
        ("2.10.0+cpu", [{"introduced": "0"}, {"fixed": "2.10.0"}], False),
        ("2.9.1+cu128", [{"introduced": "0"}, {"fixed": "2.10.0"}], True),
        ("2.10.0rc1", [{"introduced": "0"}, {"fixed": "2.10.0"}], True),
        ("2.10.0.post1", [{"introduced": "0"}, {"last_affected": "2.10.0"}], False),
        ("2.10.0", [{"introduced": "0"}, {"last_affected": "2.10.0"}], True),
        ("1.9", [{"introduced": "2.0"}, {"fixed": "2.10.0"}], False),
        ("2.5", [{"introduced": "0"}, {"fixed": "2.0"}, {"introduced": "2.4"}, {"fixed": "2.6"}], True),
        ("2.3", [{"introduced": "0"}, {"fixed": "2.0"}, {"introduced": "2.4"}, {"fixed": "2.6"}], False),
        # In any order, and without an end.
        ("2.5", [{"fixed": "2.6"}, {"introduced": "2.4"}], True),
        ("99", [{"introduced": "2.4"}], True),
        ("2.5", [], False),
    ],
)  # fmt: skip
def test_ranges_are_those_of_the_schema(
    tmp_path: Path, version: str, events: list[dict[str, str]], hit: bool
) -> None:
    assert hits(tmp_path, version, events=events) is hit


def test_listed_versions_count_too(tmp_path: Path) -> None:
    assert hits(tmp_path, "2.10", events=[], versions=["2.9", "2.10.0", "not-a-version"])
    assert not hits(tmp_path, "2.11", events=[], versions=["2.9", "2.10.0", "not-a-version"])


def test_another_ecosystem_a_withdrawn_record_and_another_name_are_none(tmp_path: Path) -> None:
    npm = record("GHSA-npm")
    npm["affected"][0]["package"]["ecosystem"] = "npm"
    gone = record("GHSA-gone", withdrawn="2026-01-01T00:00:00Z")
    git = record("GHSA-git")
    git["affected"][0]["ranges"][0]["type"] = "GIT"
    other = record("GHSA-other", package="torchvision")
    found = read_osv(export(tmp_path, npm, gone, git, other), {"torch": "2.0"})
    assert not found.advisories
    assert (found.records, found.date) == (4, "2026-11-01T00:00:00Z")


@pytest.mark.parametrize(
    ("changes", "severity", "score"),
    [
        ({"severity": [{"type": "CVSS_V3", "score": V31_CRITICAL}]}, "critical", 9.8),
        ({"severity": [{"type": "CVSS_V3", "score": V31_LOW}]}, "low", 1.8),
        # The newest CVSS decides.
        (
            {"severity": [{"type": "CVSS_V3", "score": V31_CRITICAL}, {"type": "CVSS_V4", "score": V4_HIGH}]},
            "high", 7.1,
        ),
        ({"database_specific": {"severity": "MODERATE"}}, "medium", None),
        ({"severity": [{"type": "CVSS_V3", "score": "garbage"}]}, "unknown", None),
        ({}, "unknown", None),
    ],
)  # fmt: skip
def test_severity_is_by_the_vector_or_the_word_or_unknown(
    tmp_path: Path, changes: dict[str, Any], severity: str, score: float | None
) -> None:
    found = read_osv(export(tmp_path, record(**changes)), {"torch": "2.0"})
    [advisory] = found.advisories["torch", "2.0"]
    assert (advisory.severity, advisory.score) == (severity, score)


def test_two_databases_speak_of_one_vulnerability_once(tmp_path: Path) -> None:
    github = record(
        "GHSA-aaaa", aliases=["CVE-2026-1", "PYSEC-2026-7"],
        severity=[{"type": "CVSS_V3", "score": V31_CRITICAL}],
    )  # fmt: skip
    pypa = record("PYSEC-2026-7", aliases=["CVE-2026-1"], modified="2026-11-20T00:00:00Z")
    other = record("PYSEC-2026-8", aliases=["CVE-2026-2"])
    check = check_by_osv({"torch": "2.0"}, export(tmp_path, pypa, github, other), (), TODAY)
    assert [one.advisory.id for one in check.found] == ["CVE-2026-1", "CVE-2026-2"]
    first = check.found[0].advisory
    assert (first.severity, first.aliases) == ("critical", ("GHSA-aaaa", "PYSEC-2026-7"))
    assert first.fixed == ("2.10.0",)
    assert (check.date, check.checked) == ("2026-11-20T00:00:00Z", 1)


def exceptions(folder: Path, text: str) -> Path:
    path = folder / "vex.yaml"
    path.write_text(text, encoding="utf-8")
    return path


VEX = """
exceptions:
  - id: GHSA-aaaa
    package: torch
    status: not_affected
    justification: vulnerable_code_not_in_execute_path
    reason: 학습 코드에만 있는 함수이며 추론 서버는 호출하지 않는다.
    by: 김보안
    expires: 2026-12-02
  - {id: CVE-2020-9, status: accepted, reason: no longer there, by: kim, expires: "2027-01-01"}
"""


def test_an_exception_counts_until_its_last_day_and_an_idle_one_is_named(tmp_path: Path) -> None:
    place = export(tmp_path, record(aliases=["CVE-2026-1"]))
    known = read_exceptions(exceptions(tmp_path, VEX))
    today = check_by_osv({"torch": "2.0"}, place, known, "2026-12-02")
    [found] = today.found
    assert found.excepted is not None
    assert found.excepted.by == "김보안"
    assert not today.at_least("low")
    assert [one.id for one in today.unused] == ["CVE-2020-9"]
    later = check_by_osv({"torch": "2.0"}, place, known, "2026-12-03")
    [found] = later.found
    assert found.excepted is None
    assert found.expired is not None
    assert len(later.at_least("high")) == 1


def test_an_exception_for_another_package_or_version_covers_nothing(tmp_path: Path) -> None:
    text = "exceptions: [{id: GHSA-aaaa, package: numpy, status: accepted, reason: r, by: b, expires: 2027-01-01}]"
    known = read_exceptions(exceptions(tmp_path, text))
    assert check_by_osv({"torch": "2.0"}, export(tmp_path, record()), known, TODAY).at_least("high")
    text = text.replace("package: numpy", 'version: "2.1"')
    known = read_exceptions(exceptions(tmp_path, text))
    assert check_by_osv({"torch": "2.0"}, export(tmp_path, record()), known, TODAY).at_least("high")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("exceptions: [{id: x}]", "exceptions.0.status"),
        (
            "exceptions: [{id: x, status: not_affected, reason: r, by: b, expires: 2027-01-01}]",
            "needs a justification",
        ),
        (
            "exceptions: [{id: x, status: accepted, reason: r, by: b, expires: soon}]",
            "exceptions.0.expires",
        ),
        ("exceptions: [{id: x, status: accepted, by: b, expires: 2027-01-01}]", "exceptions.0.reason"),
        ("[", "is no YAML"),
        ("ignored: true", "ignored"),
    ],
)  # fmt: skip
def test_a_wrong_exception_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_exceptions(exceptions(tmp_path, text))
    assert words in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04 but no more"])
def test_what_is_no_export_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "all.zip"
    path.write_bytes(content)
    with pytest.raises(FormatError):
        read_osv(path, {"torch": "2.0"})


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"id": 1, "modified": "x"}', '{"id": "x"}', "\x00", "[" * 100_000]
)
def test_what_is_no_record_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("GHSA-odd.json", text)
    with pytest.raises(FormatError, match=r"GHSA-odd\.json"):
        read_osv(path, {"torch": "2.0"})


def test_a_record_that_is_not_understood_is_not_checked_rather_than_none(tmp_path: Path) -> None:
    odd = record(events=[{"introduced": "0"}, {"fixed": "the next one"}])
    check = check_by_osv({"torch": "2.0", "numpy": "1.0"}, export(tmp_path, odd), (), TODAY)
    assert [(one.package, "GHSA-aaaa" in one.why) for one in check.unchecked] == [("torch", True)]
    assert check.checked == 1


def test_the_worst_comes_first_and_unknown_counts_as_high() -> None:
    from bundler.domain.vulnerability import Advisory

    known = {
        ("a", "1"): [Advisory(id="CVE-1", severity="medium", score=5.0)],
        ("b", "1"): [Advisory(id="CVE-2"), Advisory(id="CVE-3", severity="critical", score=9.9)],
        ("c", "1"): [],
    }
    check = judge(
        source="x", date="d", advisories=known, exceptions=(), today=TODAY,
        unchecked=[Unchecked(package="d", version="1", why="no answer")],
    )  # fmt: skip
    assert [one.advisory.id for one in check.found] == ["CVE-3", "CVE-2", "CVE-1"]
    assert [one.advisory.id for one in check.at_least("high")] == ["CVE-3", "CVE-2"]
    assert check.checked == 3


class _Index(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = {
            "/pypi/torch/2.0/json": {
                "vulnerabilities": [
                    {
                        "id": "PYSEC-1", "aliases": ["CVE-2026-1"], "details": "does\nharm",
                        "fixed_in": ["2.1"], "withdrawn": None,
                    },
                    {"id": "PYSEC-2", "aliases": [], "withdrawn": "2026-01-01T00:00:00Z"},
                ]
            },
            "/pypi/clean/1/json": {"vulnerabilities": []},
            "/pypi/mirror/1/json": {"info": {}},
        }.get(self.path)  # fmt: skip
        body = json.dumps(known).encode() if known is not None else b"none"
        self.send_response(200 if known is not None else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index() -> Iterator[IndexAdvisories]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Index)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/simple/"
        yield IndexAdvisories(HostIndex(default_index=url))
    finally:
        server.shutdown()
        server.server_close()


def test_the_index_is_asked_for_what_it_knows(index: IndexAdvisories) -> None:
    [found] = index.of("torch", "2.0")
    assert (found.id, found.aliases, found.fixed) == ("CVE-2026-1", ("PYSEC-1",), ("2.1",))
    assert (found.summary, found.severity) == ("does harm", "unknown")
    assert index.of("clean", "1") == ()


@pytest.mark.parametrize(("name", "words"), [("absent", "HTTP 404"), ("mirror", "says nothing")])
def test_an_index_that_does_not_know_is_an_error_and_not_none(
    index: IndexAdvisories, name: str, words: str
) -> None:
    with pytest.raises(SourceError, match=words):
        index.of(name, "1")


def test_a_folder_of_wheels_has_no_such_data() -> None:
    with pytest.raises(SourceError, match="no JSON API"):
        IndexAdvisories(HostIndex(default_index="file:///srv/simple")).of("torch", "2.0")


class _Counted:
    def advance(self, amount: int) -> None:
        pass


def test_an_index_that_never_answers_is_asked_three_times(index: IndexAdvisories) -> None:
    asked: list[str] = []

    def ask(name: str, version: str) -> tuple[Any, ...]:
        asked.append(name)
        raise SourceError("no answer\x1b[2J")

    packages = {f"p{number}": "1" for number in range(9)}
    check = check_by_index(packages, ask, "x", "2026-12-02T00:00:00Z", _Counted())
    assert asked == ["p0", "p1", "p2"]
    assert (check.checked, len(check.unchecked)) == (0, 9)
    assert "\x1b" not in check.unchecked[0].why


def test_what_one_index_does_not_know_is_named(index: IndexAdvisories) -> None:
    packages = {"torch": "2.0", "clean": "1", "absent": "1", "mirror": "1"}
    check = check_by_index(packages, index.of, index.source, "2026-12-02T01:02:03Z", _Counted())
    assert [one.advisory.id for one in check.found] == ["CVE-2026-1"]
    assert [one.package for one in check.unchecked] == ["absent", "mirror"]
    assert (check.checked, check.date) == (2, "2026-12-02T01:02:03Z")
