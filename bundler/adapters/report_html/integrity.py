"""The page's sections on what the figures are worth: the gates of the measurement, and known figures beside them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bundler.adapters.report_html.glossary import term, terms
from bundler.adapters.report_html.texts import both, number, said
from bundler.domain.facts import AcceptanceRecord
from bundler.domain.profile import Comparison, Fingerprint
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
_FIELDS = {
    "model": "모델", "size": "크기", "digest": "모델 파일 SHA-256", "engine": "엔진", "engine_version": "엔진 버전",
    "kernel": "MoE 커널", "kv_dtype": "KV 캐시 자료형", "gpu": "GPU", "gpu_count": "GPU 수", "processor": "CPU",
    "tensor_parallel": "텐서 병렬", "context_tokens": "문맥 길이", "input_tokens": "입력 토큰",
    "output_tokens": "출력 토큰",
}  # fmt: skip
# Rows of a table that people still read; the record has the rest.
_MOST_ROWS = 80
_KINDS = {"measured": "실측", "published": "공개 자료", "field": "현장 보고"}


def gates(record: AcceptanceRecord) -> str:
    """Whether the measurement is what it claims to be; nothing for a record without gates."""
    if not record.gates:
        return ""
    names = (
        ("항목", "Gate"), ("서비스", "Service"), ("동시 요청", "In flight"), ("상태", "State"),
        ("측정", "Measured"), ("기준", "Limit"), ("사유", "Reason"),
    )  # fmt: skip
    # What failed first: it is what a reader looks for. Sound ones stand in the panel alone.
    order = {"failed": 0, "unknown": 1}
    told = _alike(
        sorted((g for g in record.gates if g.state in order), key=lambda g: order[g.state])
    )
    rows = "".join(f"{_gate(gate, levels)}" for gate, levels in told[:_MOST_ROWS])
    more = len(told) - _MOST_ROWS
    note = both(
        "하나라도 부적합이면 그 단계의 수치는 기록으로만 남고 판정에 쓰지 않습니다(비교 불가).",
        "Where one failed, the level's figures stand as a record and judge nothing (NOT COMPARABLE).",
    )
    if more > 0:
        note += " " + both(
            f"외 {more}건은 report.json에 있습니다.", f"{more} more are in report.json."
        )
    title = f"<h2>{both('측정의 타당성', 'Is the measurement sound?')}</h2>"
    line = terms(("gate", "prefix_cache", "not_comparable"), "gates")
    detail = _table(None, names, rows, note) if told else f'<p class="dim">{note}</p>'
    return f"{title}{line}{_panel(record.gates)}{detail}"


def _alike(gates_: Sequence[Gate]) -> list[tuple[Gate, str]]:
    """Gates that say the same of several levels are told once, with those levels."""
    levels: dict[Gate, list[int]] = {}
    for gate in gates_:
        levels.setdefault(gate.model_copy(update={"concurrency": 0}), []).append(gate.concurrency)
    return [(gate, ", ".join(map(str, several))) for gate, several in levels.items()]


def _panel(gates_: Sequence[Gate]) -> str:
    """Every gate at every level, a cell each."""
    names = list(dict.fromkeys(gate.name for gate in gates_))
    states: dict[tuple[str, int], dict[str, Gate]] = {}
    for gate in gates_:
        states.setdefault((gate.service, gate.concurrency), {})[gate.name] = gate
    head = "".join(
        f"<th>{both(escape(_GATES.get(name, name)), escape(name))}</th>" for name in names
    )
    rows = "".join(
        f"<tr><th>{escape(service)} x{concurrency}</th>"
        + "".join(_cell(found.get(name)) for name in names)
        + "</tr>"
        for (service, concurrency), found in states.items()
    )
    key = both("✓ 정상, ✗ 부적합, ? 확인 불가", "✓ ok, ✗ failed, ? unknown")
    label = both("서비스 x 동시 요청", "Service x in flight")
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="측정의 타당성 / gates">'
        f'<table class="data panel"><thead><tr><th>{label}</th>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table></div><p class="dim">{key}</p>'
    )


def _cell(gate: Gate | None) -> str:
    """The state as a mark and a word, the figure in the tooltip: never by colour alone."""
    if gate is None:
        return '<td class="dim">–</td>'
    ko, en, style = _STATES[gate.state]
    mark = {"ok": "✓", "failed": "✗", "unknown": "?"}[gate.state]
    word = "" if gate.state == "ok" else f" {both(ko, en)}"
    return f'<td class="{style}" title="{escape(gate.measured)}">{mark}{word}</td>'


def _gate(gate: Gate, levels: str) -> str:
    ko, en, style = _STATES[gate.state]
    return (
        f"<tr><td>{both(escape(_GATES.get(gate.name, gate.name)), escape(gate.name))}</td>"
        f"<td>{escape(gate.service)}</td><td>{levels}</td>"
        f'<td><span class="tag {style}">{both(ko, en)}</span></td>'
        f"<td>{said(gate.measured)}</td><td>{said(gate.limit)}</td><td>{said(gate.reason)}</td></tr>"
    )


def fingerprints(record: AcceptanceRecord) -> str:
    """What each service's figures depend on; nothing for a record that does not say."""
    if not record.fingerprints:
        return ""
    prints = list(record.fingerprints.items())[:_MOST_ROWS]
    fields = [
        name
        for name in Fingerprint.model_fields
        if any(getattr(one, name) is not None for _, one in prints)
    ]
    rows = "".join(
        f"<tr><th>{both(_FIELDS.get(name, name), name.replace('_', ' '))}</th>"
        + "".join(f"<td>{_value(getattr(one, name))}</td>" for _, one in prints)
        + "</tr>"
        for name in fields
    )
    head = "".join(f"<th>{escape(service)}</th>" for service, _ in prints)
    title = term("fingerprint", "fingerprint", both("구성 지문", "Fingerprint"))
    line = terms(("kernel", "moe", "kv_cache"), "fingerprint")
    return (
        f'<h2>{title}</h2>{line}<div class="scroll" tabindex="0" role="group" aria-label="구성 지문 / fingerprint">'
        f'<table class="data"><thead><tr><th>{both("조건", "What")}</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _value(value: object) -> str:
    if value is None:
        return f'<span class="dim">{both("모름", "unknown")}</span>'
    return escape(str(value))


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
    rows = "".join(map(_known, record.comparisons[:_MOST_ROWS]))
    return _table(("알려진 수치와의 비교", "Beside known figures"), names, rows, note)


def _known(one: Comparison) -> str:
    ko, style = _OUTCOMES[one.outcome]
    kind = both(escape(_KINDS.get(one.kind, one.kind)), escape(one.kind))
    return (
        f"<tr><td>{escape(one.service)}</td><td>{one.concurrency}</td>"
        f"<td><code class=metric>{escape(one.metric)}</code></td><td>{number(one.measured)}</td>"
        f"<td>{number(one.worst)} – {number(one.best)}</td>"
        f'<td><span class="tag {style}">{both(ko, escape(one.outcome))}</span></td>'
        f"<td>{escape(one.profile)} ({kind})</td></tr>"
    )


def _table(
    title: tuple[str, str] | None, names: tuple[tuple[str, str], ...], rows: str, note: str
) -> str:
    head = "".join(f"<th>{both(*name)}</th>" for name in names)
    above = f"<h2>{both(*title)}</h2>" if title else ""
    return (
        f'{above}<div class="scroll" tabindex="0" role="group" aria-label="{escape(" / ".join(names[0]))}">'
        f'<table class="data"><thead><tr>{head}</tr></thead>'
        f'<tbody>{rows}</tbody></table></div><p class="dim">{note}</p>'
    )
