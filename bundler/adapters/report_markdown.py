"""ReportWriter: Markdown for tickets and wikis; the verdict first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bundler.domain.facts import AcceptanceRecord

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#|!~])")


class MarkdownReport:
    """Korean headings with the field's terms in English, as they are used."""

    filename = "report.md"

    def render(self, record: AcceptanceRecord) -> str:
        """The whole document."""
        return "\n".join(_lines(record)) + "\n"


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


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(map(_plain, row))} |" for row in rows)
    yield ""


def _plain(text: str) -> str:
    """One line in which nothing is markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
