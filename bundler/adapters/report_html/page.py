"""The report as one HTML file: no script, no network, nothing to install; prints on A4."""

from __future__ import annotations

from html import escape

from bundler.adapters.report_html import correctness, figures, integrity, sections, timeline
from bundler.adapters.report_html.style import CSS
from bundler.adapters.report_html.texts import both
from bundler.domain.facts import AcceptanceRecord

# The browser itself is told to load nothing, so that a reviewer need not take our word for it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class HtmlReport:
    """For people: the verdict first, then what it rests on. Korean, with a switch to English."""

    filename = "report.html"

    def render(self, record: AcceptanceRecord) -> str:
        """The whole document."""
        title = escape(f"{record.name} · 반입 승인 시험 보고서 · {record.verdict.value}")
        body = "\n".join(
            (
                _header(record),
                sections.verdict(record),
                sections.what_ran(record),
                sections.checks(record),
                correctness.probed(record),
                integrity.gates(record),
                figures.measured(record),
                integrity.known(record),
                timeline.observed(record.telemetry),
                sections.errors(record),
                sections.services(record),
                sections.definitions(),
                _footer(record),
            )
        )
        return (
            '<!DOCTYPE html>\n<html lang="ko"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            f"<title>{title}</title><style>{CSS}</style></head><body>\n"
            # The switch works without script: the inputs stand before what they govern.
            '<input class="lang" type="radio" name="lang" id="ko" checked aria-label="한국어">'
            '<input class="lang" type="radio" name="lang" id="en" aria-label="English">'
            '<nav><label for="ko">한국어</label><label for="en">English</label></nav>\n'
            f"<main>{body}</main></body></html>\n"
        )


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
