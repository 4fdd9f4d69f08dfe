"""ReportWriter: the checks as JUnit XML, for CI systems (https://github.com/testmoapp/junitxml)."""

from __future__ import annotations

import re
from xml.sax.saxutils import quoteattr

from bundler.domain.beside import NOTHING, Beside
from bundler.domain.facts import AcceptanceRecord
from bundler.domain.verdict import Check, Verdict

# What XML 1.0 cannot hold, even escaped (https://www.w3.org/TR/xml/#charsets).
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JunitReport:
    """A check is a test case: FAIL is a failure, and what is undecided is skipped with its reason."""

    filename = "report.junit.xml"

    def render(self, record: AcceptanceRecord, beside: Beside = NOTHING) -> str:
        """The whole document."""
        failed = sum(check.verdict is Verdict.FAIL for check in record.checks)
        skipped = sum(check.verdict not in (Verdict.FAIL, Verdict.PASS) for check in record.checks)
        cases = "".join(map(_case, record.checks))
        properties = "".join(
            f"<property name={_quoted(name)} value={_quoted(value)}/>"
            for name, value in (
                ("bundle_id", record.bundle_id),
                ("manifest_sha256", record.manifest_sha256),
                ("verdict", record.verdict.value),
            )
        )
        counts = f'tests="{len(record.checks)}" failures="{failed}" errors="0" skipped="{skipped}"'
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f"<testsuites {counts}><testsuite name={_quoted(f'airbundle accept {record.name}')} {counts}"
            f" timestamp={_quoted(record.began.removesuffix('Z'))}>"
            f"<properties>{properties}</properties>{cases}</testsuite></testsuites>\n"
        )


def _case(check: Check) -> str:
    load = f", {check.concurrency} in flight" if check.concurrency else ""
    name = f"<testcase classname={_quoted(check.service)} name={_quoted(check.what + load)}"
    told = _quoted(f"{check.verdict.value}: {check.reason or check.measured}")
    if check.verdict is Verdict.PASS:
        return f"{name}/>"
    kind = "failure" if check.verdict is Verdict.FAIL else "skipped"
    return f"{name}><{kind} message={told}/></testcase>"


def _quoted(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))
