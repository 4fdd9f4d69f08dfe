"""The page's section on whether answers are right: every probe, its outcome, and what was seen."""

from __future__ import annotations

from html import escape

from bundler.adapters.report_html.texts import both, said
from bundler.domain.correctness import CorrectnessResult, Outcome
from bundler.domain.facts import AcceptanceRecord

_PROBES = {
    "golden": ("기준 응답", "golden answers"),
    "nll": ("고정 문장 우도", "likelihood of fixed texts"),
    "garbage": ("깨진 출력 여부", "answers are text"),
    "needle": ("긴 문맥 검색", "needle in a long context"),
    "tools": ("도구 호출", "tool call"),
    "json": ("JSON 스키마", "JSON schema"),
    "korean": ("한국어 응답", "Korean answer"),
}
_PHASES = {"idle": ("유휴", "idle"), "load": ("부하 중", "under load")}
_OUTCOMES = {
    Outcome.RIGHT: ("정상", "right", "PASS"),
    Outcome.WRONG: ("오류", "wrong", "FAIL"),
    Outcome.NOT_OFFERED: ("엔진이 제공하지 않음", "not offered", "INCONCLUSIVE"),
    Outcome.UNKNOWN: ("확인 불가", "unknown", "INCONCLUSIVE"),
}


def probed(record: AcceptanceRecord) -> str:
    """The section; nothing when nothing was asked."""
    if not record.correctness:
        return ""
    names = (
        ("서비스", "Service"), ("항목", "Probe"), ("상태", "Phase"), ("결과", "Outcome"),
        ("측정", "Measured"), ("사유·근거", "Reason, evidence"),
    )  # fmt: skip
    head = "".join(f"<th>{both(*name)}</th>" for name in names)
    body = "".join(_row(one) for one in record.correctness)
    note = both("판정에 쓰지 않은 항목은 †로 표시합니다.", "† is shown and does not decide.")
    return (
        f"<h2>{both('응답 정확성', 'Correctness of answers')}</h2>"
        f'<div class="scroll" tabindex="0" role="group" aria-label="응답 정확성 / correctness"><table class="data"><thead><tr>{head}</tr></thead>'
        f'<tbody>{body}</tbody></table></div><p class="dim">{note}</p>'
    )


def _row(one: CorrectnessResult) -> str:
    ko, en, style = _OUTCOMES[one.outcome]
    phase = both(*_PHASES[one.phase]) + (f" x{one.in_flight}" if one.in_flight else "")
    seen = "".join(f"<br><code>{escape(text)}</code>" for text in one.evidence)
    mark = "" if one.judged else " †"
    return (
        f"<tr><td>{escape(one.service)}</td><td>{both(*_PROBES[one.probe])}</td><td>{phase}</td>"
        f'<td><span class="tag {style}">{both(ko, en)}</span>{mark}</td>'
        f"<td>{said(one.measured)}</td><td>{said(one.reason)}{seen}</td></tr>"
    )
