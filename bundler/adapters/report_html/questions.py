"""The five questions and their answers as one page, in the look of the report."""

from __future__ import annotations

from html import escape

from bundler.adapters.report_html.style import CSS
from bundler.adapters.report_html.texts import both
from bundler.domain.questions import Answer, Answers, Source, Told

_STATES = {
    "answered": ("PASS", "기록으로 답함", "answered by records"),
    "partly": ("INCONCLUSIVE", "일부 답함", "partly answered"),
    "open": ("FAIL", "근거 없음", "no evidence"),
}
# The inputs stand inside `main`, so that no part of the page is outside a landmark.
_SWITCH = """#ko:checked~.page .en,#en:checked~.page .ko{display:none}main nav{padding-left:0;padding-right:0}"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class QuestionPage:
    """For people: each question, what records show, and the command that fills a gap."""

    filename = "questions.html"

    def render(self, told: Answers) -> str:
        """The whole document."""
        title = both("도입 기관의 다섯 가지 질문", "The owner's five questions")
        unsigned = (
            ""
            if told.signed
            else f'<p class="unsigned">{both("서명되지 않은 번들입니다.", "The bundle is unsigned.")}</p>'
        )
        body = "".join(_answer(number, one) for number, one in enumerate(told.answers, 1))
        unread = "".join(f"<li>{_told(one)}</li>" for one in told.unread)
        if unread:
            head = both("근거로 쓰지 못한 기록", "Records that are no evidence")
            body += f'<h2>{head}</h2><ul class="warn">{unread}</ul>'
        foot = both(
            "모든 답은 해당 기록의 경로, 시각(UTC), SHA-256과 함께 적었습니다. 외부 자원을 불러오지 않습니다.",
            "Each answer names its record, its time (UTC) and its SHA-256. Nothing is loaded from elsewhere.",
        )
        return (
            '<!DOCTYPE html>\n<html lang="ko"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width,initial-scale=1">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            f"<title>{escape(told.bundle_id)} · questions</title><style>{CSS}{_SWITCH}</style></head><body><main>\n"
            '<input class="lang" type="radio" name="lang" id="ko" checked aria-label="한국어">'
            '<input class="lang" type="radio" name="lang" id="en" aria-label="English">'
            '<nav><label for="ko">한국어</label><label for="en">English</label></nav>\n'
            f'<div class="page"><p class="dim"><code>{escape(told.bundle_id)}</code> · {escape(told.host)}</p>'
            f"<h1>{title}</h1>{unsigned}{body}"
            f'<p class="foot">{foot} {escape(told.made)} <code>{told.manifest_sha256}</code></p>'
            "</div></main></body></html>\n"
        )


def _answer(number: int, answer: Answer) -> str:
    colour, ko, en = _STATES[answer.state]
    parts = [
        f"<h2>{number}. {_told(answer.question)}</h2>",
        f'<p><span class="tag {colour}">{both(ko, en)}</span></p>',
    ]
    if answer.statements:
        said = "".join(
            f"<li>{_told(one.said)}<br>{_source(one.source)}</li>" for one in answer.statements
        )
        parts.append(f"<ul>{said}</ul>")
    if answer.lacking:
        runs = "".join(
            f"<li>{_told(one.why)}<br><code>{escape(one.command)}</code></li>"
            for one in answer.lacking
        )
        parts.append(f"<h3>{both('더 필요한 실행', 'Runs that are missing')}</h3><ul>{runs}</ul>")
    return "".join(parts)


def _source(source: Source) -> str:
    return (
        f'<span class="dim"><code>{escape(source.record)}</code> · {escape(source.at)} · SHA-256 '
        f"<code>{source.sha256}</code></span>"
    )


def _told(told: Told) -> str:
    return both(escape(told.ko), escape(told.en))
