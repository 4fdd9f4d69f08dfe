"""The report as one HTML file: no script, no network, nothing to install; prints on A4."""

from __future__ import annotations

import re
from html import escape

from bundler.adapters.report_html import (
    correctness,
    expected,
    figures,
    glossary,
    integrity,
    ladder,
    sections,
    settings,
    timeline,
)
from bundler.adapters.report_html.style import CSS, labels
from bundler.adapters.report_html.texts import both
from bundler.domain.beside import NOTHING, Beside
from bundler.domain.facts import AcceptanceRecord

_LABELS = labels("ladder", ladder.HEADS) + labels("checks", sections.CHECK_HEADS)
# Marks that reorder or hide text, in an engine's own words: shown, not obeyed.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
# The browser itself is told to load nothing, so that a reviewer need not take our word for it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class HtmlReport:
    """For people: the verdict first, then what it rests on. Korean, with a switch to English."""

    filename = "report.html"

    def render(self, record: AcceptanceRecord, beside: Beside = NOTHING) -> str:
        """The whole document."""
        title = f"{record.name} · 반입 승인 시험 보고서 · {record.verdict.value}"
        return document(
            title,
            _header(record),
            sections.verdict(record),
            ladder.ladders(record),
            ladder.searched(beside.searches),
            sections.checks(record),
            expected.expected(record),
            correctness.probed(record),
            integrity.gates(record),
            figures.measured(record),
            integrity.known(record),
            settings.compared(beside.settings),
            timeline.observed(record.telemetry),
            sections.errors(record),
            integrity.fingerprints(record),
            sections.what_ran(record),
            sections.services(record),
            glossary.glossary(),
            _footer(record),
        )


def document(title: str, *parts: str) -> str:
    """A page of these parts, with the switch between the languages."""
    body = _STEERING.sub(_escaped, "\n".join(part for part in parts if part))
    return (
        '<!DOCTYPE html>\n<html lang="ko"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{_STEERING.sub(_escaped, escape(title))}</title><style>{CSS}{_LABELS}</style></head><body><main>\n"
        # The switch works without script: the inputs stand before what they govern.
        '<input class="lang" type="radio" name="lang" id="ko" checked aria-label="한국어">'
        '<input class="lang" type="radio" name="lang" id="en" aria-label="English">'
        '<nav><label for="ko">한국어</label><label for="en">English</label></nav>\n'
        f'<div class="page">{body}</div></main></body></html>\n'
    )


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _header(record: AcceptanceRecord) -> str:
    boxes = (("담당", "Tested"), ("검토", "Reviewed"), ("승인", "Approved"))
    head = "".join(f"<th>{both(*box)}</th>" for box in boxes)
    blank = "<td></td>" * len(boxes)
    about = f"<p>{escape(record.description)}</p>" if record.description else ""
    return (
        '<header class="top"><div>'
        f'<p class="dim">{both("LLM 서비스 반입 승인 시험 보고서", "LLM service acceptance report")}</p>'
        f"<h1>{escape(record.name)}</h1>{about}</div>"
        f'<table class="sign"><tr>{head}</tr><tr>{blank}</tr></table></header>'
    )


def _footer(record: AcceptanceRecord) -> str:
    told = both(
        "이 보고서는 report.json의 기록에서 생성했습니다. 외부 자원을 불러오지 않습니다.",
        "Made from the record in report.json. It loads nothing from elsewhere.",
    )
    return f'<p class="foot">{told} <code>{escape(record.manifest_sha256)}</code></p>'
