"""The page's sections of words. Whatever comes from the record is escaped where it enters the markup."""

from __future__ import annotations

import shlex
from collections import Counter
from html import escape

from bundler.adapters.report_html import ladder
from bundler.adapters.report_html.texts import MEANING, VERDICT, both, said
from bundler.domain.facts import AcceptanceRecord, ServiceState
from bundler.domain.running import Running
from bundler.domain.verdict import Check, Verdict

_BANNER_LINES = 5
CHECK_HEADS = (
    ("판정", "Verdict"), ("서비스", "Service"), ("동시 요청 수", "In flight"),
    ("판정 항목", "Check"), ("측정값", "Measured"), ("사유", "Reason"),
)  # fmt: skip
# Errors are grouped by their text already; so many kinds are enough to find a cause.
_MOST_ERRORS = 60


def verdict(record: AcceptanceRecord) -> str:
    """The banner: the verdict, what it means, how many checks gave it; red words when unsigned."""
    counts = Counter(check.verdict for check in record.checks)
    total = len(record.checks)
    ko = ", ".join(f"{VERDICT[kind][0]} {counts[kind]}" for kind in Verdict)
    en = ", ".join(f"{VERDICT[kind][1]} {counts[kind]}" for kind in Verdict)
    unsigned = both(
        "서명되지 않은 번들입니다. 출처와 무결성을 보증할 수 없으므로 운영 반입 승인 근거로 쓰지 마십시오.",
        "UNSIGNED bundle: neither origin nor integrity is vouched for. Do not approve it for production.",
    )
    return (
        f'<section class="verdict {record.verdict.name}">'
        f"<strong>{both(*VERDICT[record.verdict])}</strong>"
        f"<p>{both(*MEANING[record.verdict])}</p>"
        f"{_capacity(record)}"
        f'<p class="dim">{both(f"판정 항목 {total}건: {ko}", f"{total} checks: {en}")}</p>'
        f"{_why(record)}</section>"
        + ("" if record.key_id else f'<p class="unsigned">{unsigned}</p>')
    )


def _capacity(record: AcceptanceRecord) -> str:
    """How many users each service stands, the first few of them: what an owner asks first."""
    services = list(dict.fromkeys(level.service for level in record.levels))
    rows = [
        f"<li>{escape(service)}: {ladder.told(ladder.highest(ladder.rungs(record, service)))}</li>"
        for service in services[:_BANNER_LINES]
    ]
    return f'<ul class="capacity">{"".join(rows)}</ul>' if rows else ""


def _why(record: AcceptanceRecord) -> str:
    """The checks that gave the verdict, the first few of them."""
    if record.verdict is Verdict.PASS:
        return ""
    deciding = [check for check in record.checks if check.verdict is record.verdict]
    rows = [
        f"<li>{escape(check.service)}, "
        + _load(check)
        + f": {said(check.what)} — {said(check.reason or check.measured)}</li>"
        for check in deciding[:_BANNER_LINES]
    ]
    more = len(deciding) - len(rows)
    if more:
        rows.append(f"<li>{both(f'외 {more}건', f'and {more} more')}</li>")
    return f"<ul>{''.join(rows)}</ul>"


def _load(check: Check) -> str:
    if not check.concurrency:
        return both("실행 구성", "what runs")
    return both(f"동시 요청 {check.concurrency}건", f"{check.concurrency} in flight")


def what_ran(record: AcceptanceRecord) -> str:
    """Bundle, signature, engine, models, plan and host."""
    plan = record.plan
    signed = (
        f"<code>{escape(record.key_id)}</code>"
        if record.key_id
        else f'<span class="red">{both("서명 없음", "UNSIGNED")}</span>'
    )
    levels = ", ".join(map(str, plan.concurrency))
    rows = [
        (both("번들", "Bundle"), f"<code>{escape(record.bundle_id)}</code>"),
        (
            both("매니페스트 SHA-256", "Manifest SHA-256"),
            f"<code>{escape(record.manifest_sha256)}</code>",
        ),
        (both("서명 키", "Signed by key"), signed),
        *_changed(record),
        (both("추론 엔진", "Engine"), escape(f"{record.engine_name} {record.engine_version}")),
        (both("모델과 리비전", "Models"), "<br>".join(map(escape, record.models))),
        (
            both("측정 시각 (UTC)", "Measured (UTC)"),
            escape(f"{_time(record.began)} – {_time(record.ended)}"),
        ),
        (
            both("부하 조건", "Load"),
            both(
                f"동시 요청 수 {levels} / 단계별 요청 {plan.requests}건 / 입력 약 {plan.input_tokens}토큰,"
                f" 출력 {plan.output_tokens}토큰 / 요청 제한 시간 {plan.request_timeout_s:g}초",
                f"{levels} requests in flight; {plan.requests} requests a level; about"
                f" {plan.input_tokens} input and {plan.output_tokens} output tokens;"
                f" timeout {plan.request_timeout_s:g} s",
            ),
        ),
        *((_host_name(name), escape(value)) for name, value in record.host.items()),
    ]
    inside = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
    return f"<h2>{both('시험 대상과 환경', 'What ran')}</h2><dl>{inside}</dl>"


def _changed(record: AcceptanceRecord) -> list[tuple[str, str]]:
    """Settings that are not the signed bundle's, and the comparisons that justify them."""
    if record.changed is None:
        return []
    rows = "".join(
        f"<br>{both('근거: A/B 비교 기록 SHA-256', 'because of the A/B record with SHA-256')}"
        f" <code>{escape(step.record_sha256)}</code> ({escape(step.record)}, {escape(_time(step.applied))})"
        for step in record.changed.steps
    )
    name = both("서명된 설정과 다름", "Settings that differ from those signed")
    return [(name, f'<strong class="red">{escape(record.changed.settings)}</strong>{rows}')]


_HOST_NAMES = {
    "host": "호스트", "kernel": "커널", "glibc": "glibc", "processor": "CPU", "cores": "코어 수",
    "memory": "메모리", "gpus": "GPU", "driver": "GPU 드라이버", "python": "Python", "os": "운영체제",
}  # fmt: skip


def _host_name(name: str) -> str:
    return both(escape(_HOST_NAMES.get(name, name)), escape(name))


def _time(stamp: str) -> str:
    return stamp.replace("T", " ").removesuffix("Z")


def services(record: AcceptanceRecord) -> str:
    """The command line and the first answer of each service."""
    parts = []
    for state in record.services:
        ready = "" if state.ready_after_s is None else _ready(state)
        if state.running is not None:
            ready += _running(state.running)
        parts.append(
            f"<dt><strong>{escape(state.service)}</strong></dt>"
            f"<dd><pre>{escape(shlex.join(state.argv))}</pre>{ready}</dd>"
        )
    return f"<h2>{both('서비스 실행 명령', 'Services as started')}</h2><dl>{''.join(parts)}</dl>"


def _ready(state: ServiceState) -> str:
    first = f"<code>{escape(state.first_completion)}</code>"
    return (
        '<p class="dim">'
        + both(
            f"기동 후 {state.ready_after_s:g}초 만에 첫 응답: {first}",
            f"ready after {state.ready_after_s:g} s with the first answer: {first}",
        )
        + "</p>"
    )


def _running(running: Running) -> str:
    """Which kernels the engine named in its log."""
    words = escape(running.words())
    ko = words if running.evidence else "로그에 커널 정보가 없음"
    return (
        f'<p class="dim">{both(f"엔진이 보고한 실행 커널: {ko}", f"the engine says: {words}")}</p>'
    )


def checks(record: AcceptanceRecord) -> str:
    """What was judged, the figure that decided, and why; then the warnings."""
    head = "".join(f"<th>{both(*name)}</th>" for name in CHECK_HEADS)
    rows, last = [], None
    for check in record.checks:
        level = (check.service, check.concurrency)
        rows.append(_check_row(check, first=level != last))
        last = level
    warnings = "".join(f"<li>{said(text)}</li>" for text in record.warnings)
    title = both("주의 사항", "Warnings")
    return (
        f"<h2>{both('판정 항목', 'Checks')}</h2>"
        f'<table class="data cards checks"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
        + (f'<h2>{title}</h2><ul class="warn">{warnings}</ul>' if warnings else "")
    )


def _check_row(check: Check, *, first: bool) -> str:
    cells = (
        f'<span class="tag {check.verdict.name}">{both(*VERDICT[check.verdict])}</span>',
        escape(check.service),
        str(check.concurrency or "–"),
        said(check.what),
        said(check.measured),
        said(check.reason),
    )
    inside = "".join(
        f"<td{' class=num' if place == 2 else ''}>{cell}</td>" for place, cell in enumerate(cells)
    )
    return f"<tr{' class=first' if first else ''}>{inside}</tr>"


def errors(record: AcceptanceRecord) -> str:
    """The errors that requests met, commonest first."""
    rows = [
        (level, text, count)
        for level in record.levels
        for text, count in sorted(level.errors.items(), key=lambda item: -item[1])
    ]
    title = f"<h2>{both('발생한 오류', 'Errors seen')}</h2>"
    if not rows:
        return f'{title}<p class="dim">{both("없음", "None.")}</p>'
    body = "".join(
        f"<tr><td>{escape(level.service)}</td><td class=num>{level.concurrency}</td>"
        f"<td class=num>{count}</td><td><code>{escape(text)}</code></td></tr>"
        for level, text, count in rows[:_MOST_ERRORS]
    )
    names = (
        ("서비스", "Service"),
        ("동시 요청 수", "In flight"),
        ("건수", "Count"),
        ("오류 내용", "Error"),
    )
    head = "".join(f"<th>{both(*name)}</th>" for name in names)
    return (
        f'{title}<div class="scroll" tabindex="0" role="group" aria-label="오류 / errors"><table class="data"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
