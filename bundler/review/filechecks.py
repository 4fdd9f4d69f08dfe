"""The section of what was looked at in a model's files, by whom, and with which result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bundler.domain.inventory import CheckKind, Component, FileCheck
from bundler.review.document import (
    Block,
    Cell,
    Paragraph,
    Section,
    Table,
    Tone,
    Words,
    code,
    number,
    plain,
)
from bundler.review.korean import korean
from bundler.review.subject import Subject

_CHECKS: dict[CheckKind, Words] = {
    "pickle": Words("pickle 명령", "Pickle opcodes"),
    "safetensors header": Words("safetensors 헤더", "safetensors header"),
    "GGUF header": Words("GGUF 헤더", "GGUF header"),
    "chat template": Words("대화 템플릿", "Chat template"),
}
_RESULTS: dict[str, tuple[Words, Tone]] = {
    "passed": (Words("이상 없음", "nothing found"), "good"),
    "found": (Words("발견", "found"), "attention"),
    "not checked": (Words("검사 안 함", "not scanned"), "attention"),
}
_SHOWN_PASSED = 200


def file_checks(subject: Subject) -> Section:
    """What readers of pickles, headers and templates said; who was not there is named."""
    return Section(
        "scans", Words("모델 파일 검사", "Scans of model files"), tuple(_blocks(subject))
    )


def _blocks(subject: Subject) -> Iterator[Block]:
    models = subject.inventory.of("model")
    rows = [(one, check) for one in models for check in one.checks]
    if not rows:
        yield Paragraph(
            Words(
                "pickle, safetensors, GGUF 파일이나 대화 템플릿이 없어 검사한 것이 없습니다.",
                "No pickle, safetensors or GGUF file and no chat template is here, so nothing was scanned.",
            )
        )
        return
    yield Paragraph(
        Words(
            "각 도구가 파일을 실행하지 않고 읽은 결과입니다. '이상 없음'은 그 도구가 아는 것이 없었다는 뜻입니다.",
            "What each reader said of the files; nothing was run. 'nothing found' means that it saw nothing it knows.",
        )
    )
    counts = Counter((check.check, check.by, check.result) for _, check in rows)
    head = (
        Words("검사", "Check"),
        Words("도구", "By"),
        Words("결과", "Result"),
        Words("파일 수", "Files"),
    )
    yield Table(
        head,
        [
            (Cell(_CHECKS[check]), plain(by), Cell(*_RESULTS[result]), number(str(count)))
            for (check, by, result), count in counts.items()
        ],
    )
    told = [row for row in rows if row[1].result != "passed" or row[1].check == "pickle"]
    rest = [row for row in rows if row not in told]
    if told:
        yield _table(told)
    if rest:
        title = Words(f"이상 없는 파일 {len(rest)}개", f"{len(rest)} files without a finding")
        yield _table(rest[:_SHOWN_PASSED], title)


def _table(rows: list[tuple[Component, FileCheck]], folded: Words | None = None) -> Table:
    head = (
        Words("모델", "Model"), Words("파일", "File"), Words("검사", "Check"), Words("도구", "By"),
        Words("결과", "Result"), Words("내용", "What"),
    )  # fmt: skip
    return Table(
        head,
        [
            (
                plain(owner.name),
                code(check.where),
                Cell(_CHECKS[check.check]),
                plain(check.by),
                Cell(*_RESULTS[check.result]),
                Cell(
                    Words("; ".join(map(korean, check.said.split("; "))) or "-", check.said or "-")
                ),
            )
            for owner, check in rows
        ],
        folded,
    )
