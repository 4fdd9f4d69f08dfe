"""ReportWriter: Markdown for tickets and wikis; the verdict first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bundler.domain.beside import NOTHING, Beside
from bundler.domain.compared import RunsCompared
from bundler.domain.facts import AcceptanceRecord

_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#|!~])")


class MarkdownReport:
    """Korean headings with the field's terms in English, as they are used."""

    filename = "report.md"

    def render(self, record: AcceptanceRecord, beside: Beside = NOTHING) -> str:
        """The whole document."""
        return "\n".join((*_lines(record), *_beside(beside))) + "\n"


class MarkdownComparison:
    """Two runs side by side, what differs between the set-ups first."""

    filename = "compare.md"

    def render(self, compared: RunsCompared) -> str:
        """The whole document."""
        return "\n".join(_compared(compared)) + "\n"


def _compared(compared: RunsCompared) -> Iterator[str]:
    told = {
        "within": "차이 없음(오차 범위)", "worse": "B가 나빠짐", "better": "B가 좋아짐",
        "not comparable": "비교 불가 (NOT COMPARABLE)",
    }  # fmt: skip
    yield f"# {_plain(compared.a.name)} / {_plain(compared.b.name)}: {told[compared.outcome]}"
    yield ""
    for side, head in (("A", compared.a), ("B", compared.b)):
        unsigned = "" if head.key_id else ", **서명 없음**"
        yield f"- {side}: {_plain(head.label)} ({head.began}, {_plain(head.engine)}, {head.verdict.value}{unsigned})"
    yield from (f"- 비교할 수 없는 이유: {_plain(why)}" for why in compared.not_comparable)
    yield ""
    yield "## 무엇이 다른가"
    yield ""
    if compared.setup:
        rows = [(row.what, row.a or "모름", row.b or "모름") for row in compared.setup]
        yield from _table(("항목", "A", "B"), rows)
    else:
        yield "구성, 시험 계획, 호스트가 모두 같습니다."
        yield ""
    for pair in compared.services:
        yield f"## {_plain(pair.a if pair.a == pair.b else f'{pair.a} / {pair.b}')}"
        yield ""
        yield from _table(
            ("동시 요청", "A", "B"),
            [
                (str(x.concurrency), x.a.value if x.a else "-", x.b.value if x.b else "-")
                for x in pair.levels
            ],
        )
        yield from _table(
            ("동시 요청", "지표", "A", "B", "B/A", "결과", "기준"),
            [
                (str(x.concurrency), x.metric, f"{x.a:.4g}", f"{x.b:.4g}", f"{x.ratio:.2f}", x.outcome, x.basis)
                for x in pair.figures
            ],
        )  # fmt: skip


def _lines(record: AcceptanceRecord) -> Iterator[str]:
    yield f"# {_plain(record.name)}: {record.verdict.value}"
    yield ""
    if record.key_id is None:
        yield "**서명되지 않은 번들입니다. 운영 반입 승인 근거로 쓰지 마십시오.**"
        yield ""
    yield f"- 번들: `{record.bundle_id}` (manifest SHA-256 `{record.manifest_sha256}`)"
    if record.changed is not None:
        yield f"- **서명된 번들과 설정이 다름**: {_plain(record.changed.settings)}"
        yield from (
            f"- 설정 변경 근거: A/B 비교 기록 `{step.record_sha256}` ({_plain(step.record)}), 적용(UTC) {step.applied}"
            for step in record.changed.steps
        )
    yield f"- 서명 키: `{record.key_id or '없음'}`"
    yield f"- 엔진: {_plain(f'{record.engine_name} {record.engine_version}')}"
    yield f"- 모델: {_plain(', '.join(record.models))}"
    yield f"- 측정(UTC): {record.began} – {record.ended}"
    for state in record.services:
        if state.running is not None:
            yield f"- {_plain(state.service)} 실행 커널: {_plain(state.running.words())}"
    yield ""
    yield "## 판정"
    yield ""
    head = ("판정", "서비스", "동시 요청", "항목", "측정", "사유")
    yield from _table(
        head,
        [
            (c.verdict.value, c.service, str(c.concurrency or "-"), c.what, c.measured, c.reason)
            for c in record.checks
        ],
    )
    yield "## 측정값"
    yield ""
    yield from _table(
        ("서비스", "동시 요청", "성공", "TTFT p50/p95 ms", "TPOT p50/p95 ms", "E2E p95 ms", "출력 tok/s"),
        [
            (
                level.service, str(level.concurrency), f"{level.succeeded}/{level.requests}",
                f"{_ms(level.ttft.p50)}/{_ms(level.ttft.p95)}",
                f"{_ms(level.tpot.p50)}/{_ms(level.tpot.p95)}",
                _ms(level.e2e.p95), f"{level.output_tokens_per_s:.1f}",
            )
            for level in record.levels
        ],
    )  # fmt: skip
    flawed = [gate for gate in record.gates if gate.state == "failed"]
    if flawed:
        yield "## 측정이 타당하지 않은 이유"
        yield ""
        yield from _table(
            ("항목", "서비스", "동시 요청", "측정", "기준", "사유"),
            [
                (g.name, g.service, str(g.concurrency), g.measured, g.limit, g.reason)
                for g in flawed
            ],
        )
    if record.warnings:
        yield "## 참고"
        yield ""
        yield from (f"- {_plain(line)}" for line in record.warnings)


def _beside(beside: Beside) -> Iterator[str]:
    """Searches for the most users, and settings compared."""
    for one in beside.searches:
        yield f"## 최대 동시 사용자: {_plain(one.service)} {one.best if one.best is not None else '-'}"
        yield ""
        yield f"{one.verdict.value}: {_plain(one.reason)}"
        yield ""
        yield from _table(
            ("동시 요청", "판정", "성공", "TTFT p95 ms", "출력 tok/s"),
            [
                (
                    str(trial.metrics.concurrency), trial.verdict.value,
                    f"{trial.metrics.succeeded}/{trial.metrics.requests}", _ms(trial.metrics.ttft.p95),
                    f"{trial.metrics.output_tokens_per_s:.1f}",
                )
                for trial in one.trials
            ],
        )  # fmt: skip
    for compared in beside.settings:
        yield "## 두 설정의 비교"
        yield ""
        yield from (f"- {arm.name}: {_plain(arm.words)}" for arm in compared.arms)
        yield f"- {_plain(compared.said)}"
        yield ""
        yield from _table(
            ("지표", "B/A", "95%", "나은 쪽"),
            [
                (one.figure, f"{one.ratio:.2f}", f"{one.low:.2f}–{one.high:.2f}", one.wins or "-")
                for one in compared.comparisons
            ],
        )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(map(_plain, row))} |" for row in rows)
    yield ""


def _plain(text: str) -> str:
    """One line in which nothing is markup, and nothing reorders or hides text."""
    shown = _STEERING.sub(lambda m: m[0].encode("unicode_escape").decode(), " ".join(text.split()))
    return _SPECIAL.sub(r"\\\1", shown)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
