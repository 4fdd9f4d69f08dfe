"""The page's sections on what the figures are worth: the gates of the measurement, and known figures beside them."""

from __future__ import annotations

from html import escape

from bundler.adapters.report_html.texts import both, number, said
from bundler.domain.facts import AcceptanceRecord
from bundler.domain.profile import Comparison
from bundler.domain.verdict import Gate

_GATES = {
    "token counts": "토큰 수 집계",
    "output length": "출력 길이",
    "stream end": "스트림 종료",
    "client lag": "측정 클라이언트 지연",
    "prefix cache": "프리픽스 캐시",
    "server agreement": "서버 지표와의 일치",
    "warm-up": "예열",
    "cold start": "초기 컴파일",
    "load": "동시 부하",
    "GPU": "GPU 상태",
}
_STATES = {
    "ok": ("정상", "ok", "PASS"),
    "failed": ("부적합", "failed", "FAIL"),
    "unknown": ("확인 불가", "unknown", "INCONCLUSIVE"),
}
_OUTCOMES = {
    "within": ("범위 안", "PASS"),
    "worse": ("범위보다 나쁨", "FAIL"),
    "better": ("범위보다 좋음: 캐시·모델 확인 필요", "INCONCLUSIVE"),
    "not judged": ("판정하지 않음", "INCONCLUSIVE"),
}
_KINDS = {"measured": "실측", "published": "공개 자료", "field": "현장 보고"}


def gates(record: AcceptanceRecord) -> str:
    """Whether the measurement is what it claims to be; nothing for a record without gates."""
    if not record.gates:
        return ""
    names = (
        ("항목", "Gate"), ("서비스", "Service"), ("동시 요청", "In flight"), ("상태", "State"),
        ("측정", "Measured"), ("기준", "Limit"), ("사유", "Reason"),
    )  # fmt: skip
    # What failed first: it is what a reader looks for.
    order = {"failed": 0, "unknown": 1, "ok": 2}
    rows = "".join(map(_gate, sorted(record.gates, key=lambda gate: order[gate.state])))
    note = both(
        "하나라도 부적합이면 그 단계의 수치는 기록으로만 남고 판정에 쓰지 않습니다(비교 불가).",
        "Where one failed, the level's figures stand as a record and judge nothing (NOT COMPARABLE).",
    )
    return _table(("측정의 타당성", "Is the measurement sound?"), names, rows, note)


def _gate(gate: Gate) -> str:
    ko, en, style = _STATES[gate.state]
    return (
        f"<tr><td>{both(escape(_GATES.get(gate.name, gate.name)), escape(gate.name))}</td>"
        f"<td>{escape(gate.service)}</td><td>{gate.concurrency}</td>"
        f'<td><span class="tag {style}">{both(ko, en)}</span></td>'
        f"<td>{said(gate.measured)}</td><td>{said(gate.limit)}</td><td>{said(gate.reason)}</td></tr>"
    )


def known(record: AcceptanceRecord) -> str:
    """The figures beside those that are known of the same set-up; nothing when none are."""
    if not record.comparisons:
        return ""
    names = (
        ("서비스", "Service"), ("동시 요청", "In flight"), ("지표", "Figure"), ("측정값", "Measured"),
        ("알려진 범위", "Known"), ("결과", "Outcome"), ("출처", "Profile"),
    )  # fmt: skip
    note = both(
        "실측과 조건이 모두 명시된 공개 자료만 판정에 쓰고, 현장 보고는 참고로만 봅니다.",
        "Measured profiles, and published ones with every condition stated, decide; field reports never do.",
    )
    rows = "".join(map(_known, record.comparisons))
    return _table(("알려진 수치와의 비교", "Beside known figures"), names, rows, note)


def _known(one: Comparison) -> str:
    ko, style = _OUTCOMES[one.outcome]
    kind = both(_KINDS.get(one.kind, one.kind), escape(one.kind))
    return (
        f"<tr><td>{escape(one.service)}</td><td>{one.concurrency}</td>"
        f"<td><code>{escape(one.metric)}</code></td><td>{number(one.measured)}</td>"
        f"<td>{number(one.worst)} – {number(one.best)}</td>"
        f'<td><span class="tag {style}">{both(ko, escape(one.outcome))}</span></td>'
        f"<td>{escape(one.profile)} ({kind})</td></tr>"
    )


def _table(title: tuple[str, str], names: tuple[tuple[str, str], ...], rows: str, note: str) -> str:
    head = "".join(f"<th>{both(*name)}</th>" for name in names)
    return (
        f'<h2>{both(*title)}</h2><div class="scroll"><table class="data"><thead><tr>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table></div><p class="dim">{note}</p>'
    )
