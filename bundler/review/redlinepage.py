"""A redline as the files that a person reads at the second approval, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from bundler.domain.redline import AREAS, Area, Redline, RedlineChange, RedlineSide, What
from bundler.format import reviewpack
from bundler.format.codec import to_bytes
from bundler.format.trust import digest_line
from bundler.review.document import (
    Block,
    Cell,
    Document,
    Facts,
    Paragraph,
    Section,
    Table,
    Tone,
    Words,
    code,
    plain,
    same,
)
from bundler.review.korean import korean
from bundler.review.markdown import markdown
from bundler.review.page import html
from bundler.review.redlinewords import FIELDS, SAID, WHY

_KIND = Words("변경 사항 검토 자료", "Redline: what changed between two bundles")
_AREAS: dict[Area, tuple[Words, Words, Words]] = {
    "trust": (
        Words("서명과 신뢰", "Signature and trust"),
        Words("서명한 키가 같습니다.", "The same key signed both."),
        Words("항목", "What"),
    ),
    "component": (
        Words("구성 요소", "Components"),
        Words("추가·삭제되거나 바뀐 구성 요소가 없습니다.", "No component was added, removed or changed."),
        Words("항목", "Field"),
    ),
    "file": (
        Words("모델 파일", "Files of models"),
        Words("두 번들에 모두 있는 모델의 파일이 같습니다.", "Models that both hold have the same files."),
        Words("파일", "File"),
    ),
    "execution": (
        Words("실행될 수 있는 요소", "What could execute"),
        Words("새로 생기거나 없어진 실행 요소가 없습니다.", "Nothing that could execute is new, gone or changed."),
        Words("종류·파일", "Kind and file"),
    ),
    "vulnerability": (
        Words("알려진 취약점", "Known vulnerabilities"),
        Words("새로 확인되거나 해소된 취약점이 없습니다.", "No known vulnerability is new, gone or changed."),
        Words("취약점", "Vulnerability"),
    ),
    "policy": (
        Words("라이선스 정책", "Licence policy"),
        Words("정책 판정이 달라진 구성 요소가 없습니다.", "The policy judges nothing otherwise than before."),
        Words("항목", "What"),
    ),
    "setting": (
        Words("설정", "Settings"),
        Words("설정이 같습니다.", "The settings are the same."),
        Words("설정", "Setting"),
    ),
    "record": (
        Words("명세·기록 파일", "Records"),
        Words("명세와 기록 파일이 같습니다.", "The records (spec, lock, texts) are the same."),
        Words("파일", "File"),
    ),
}  # fmt: skip
_WHAT: dict[What, Words] = {
    "added": Words("추가", "added"),
    "removed": Words("삭제", "removed"),
    "changed": Words("변경", "changed"),
}
_SOURCES = {
    "bundle": Words("번들의 내용", "the bundle's contents"),
    "manifest": Words("매니페스트만", "the manifest alone"),
    "inventory": Words("이전 검토 자료의 inventory.json", "an earlier pack's inventory.json"),
}
_ALL = Words(
    "여기에 없는 것은 이전에 승인한 번들과 같습니다.",
    "What is not listed is as it was in the bundle approved before.",
)
_PARTLY = Words(
    "비교하지 못한 것이 있으니 각 항목을 확인하십시오.",
    "Some of it was not compared; its section says so.",
)
_COUNTED = re.compile(r"(.*) (\((?:alarm|attention|usual), \d+ files.*\))", re.DOTALL)
_TONES: dict[str, Tone] = {
    "alarm": "alarm", "attention": "attention", "critical": "alarm", "high": "alarm",
    "medium": "attention", "unknown": "attention", "deny": "alarm", "review": "attention",
}  # fmt: skip


def redline_files(found: Redline, language: Literal["ko", "en", "both"]) -> dict[str, bytes]:
    """Every file of a redline, by its name; the same two bundles give the same bytes."""
    document = redline_document(found)
    files = {"redline.json": to_bytes(found), "redline.html": html(document, language)}
    for one in ("ko", "en") if language == "both" else (language,):
        files[f"redline.{one}.md"] = markdown(document, one)
    files[reviewpack.BUNDLE] = digest_line(found.new.manifest_sha256)
    return files


def redline_document(found: Redline) -> Document:
    """What a person reads."""
    foot = Words(
        "같은 것은 싣지 않았습니다. 작성 일시, 볼륨 나누기, 패리티의 차이는 변경으로 보지 않습니다.",
        "What is equal is not listed. Dates, the cut into volumes and parity are no change.",
    )
    return Document(
        kind=_KIND,
        title=f"{found.old.bundle_id} → {found.new.bundle_id}",
        figures=[_figure(found, area) for area in AREAS],
        sections=[_overview(found), *(_section(found, area) for area in AREAS)],
        foot=foot,
    )


def _figure(found: Redline, area: Area) -> tuple[Words, Cell]:
    title, _, _ = _AREAS[area]
    changes = found.of(area)
    if not changes and any(one.area == area for one in found.uncompared):
        return title, Cell(Words("비교 안 됨", "not compared"), "attention")
    tones = {_tone(one) for one in changes if one.what != "removed"}
    tone: Tone = "alarm" if "alarm" in tones else "attention" if changes else "good"
    return title, Cell(same(str(len(changes))), tone, number=True)


def _overview(found: Redline) -> Section:
    blocks: list[Block] = []
    if found.old.manifest_sha256 == found.new.manifest_sha256:
        both = Words("두 번들은 같은 번들입니다.", "Both are the same bundle, byte by byte.")
        blocks.append(Paragraph(both, "good"))
    elif not found.changes:
        said = Words("비교한 범위에서 바뀐 것이 없습니다.", "Nothing differs in what was compared.")
        blocks.append(Paragraph(said, "good" if not found.uncompared else "attention"))
    else:
        count, rest = len(found.changes), _PARTLY if found.uncompared else _ALL
        said = Words(
            f"아래 {count}건이 바뀌었습니다. {rest.ko}",
            f"{count} things differ. {rest.en}",
        )
        blocks.append(Paragraph(said))
    head = (Words("항목", "Item"), Words("이전", "Before"), Words("이번", "Now"))
    rows = [
        (Cell(label), of(found.old), of(found.new))
        for label, of in (
            (Words("번들 ID", "Bundle id"), lambda side: code(side.bundle_id)),
            (Words("manifest.json SHA-256", "manifest.json SHA-256"),
             lambda side: code(side.manifest_sha256)),
            (Words("일련번호", "Sequence"), lambda side: plain(str(side.sequence or "-"))),
            (Words("서명 키 ID", "Signed by key"), _key),
            (Words("비교에 쓴 자료", "Read from"), lambda side: Cell(_SOURCES[side.source])),
        )
    ]  # fmt: skip
    blocks.append(Table(head, rows))
    return Section("overview", Words("개요", "Overview"), blocks)


def _key(side: RedlineSide) -> Cell:
    if side.verified:
        return plain(side.key_id or "-")
    if side.source == "bundle":
        return Cell(Words("서명 없음", "NOT SIGNED"), "alarm")
    unchecked = Words("서명 확인 안 함", "signature not checked")
    if side.key_id is None:
        return Cell(unchecked, "attention")
    return Cell(
        Words(f"{side.key_id} ({unchecked.ko})", f"{side.key_id} ({unchecked.en})"), "attention"
    )


def _section(found: Redline, area: Area) -> Section:
    title, nothing, label = _AREAS[area]
    return Section(area, title, tuple(_blocks(found, area, nothing, label)))


def _blocks(found: Redline, area: Area, nothing: Words, label: Words) -> Iterator[Block]:
    silent = [one.why for one in found.uncompared if one.area == area]
    changes = found.of(area)
    for why in silent:
        yield Paragraph(
            Words(f"비교하지 못한 것이 있습니다: {_korean(why, WHY)}", f"Not compared: {why}."),
            "attention",
        )
    if not changes:
        if not silent:
            yield Paragraph(nothing)
        return
    if area == "trust":
        yield Paragraph(
            Words(
                "서명한 키나 순번이 달라졌습니다. 공급자에게 다른 경로로 확인하십시오.",
                "The key or the sequence is another one. Ask the supplier by another way.",
            ),
            "alarm" if any(one.rank == "alarm" for one in changes) else "attention",
        )
        yield Facts([(FIELDS[one.name], _facts_cell(one)) for one in changes])
        return
    head = (
        Words("구분", "Change"),
        Words("부분", "Part") if area == "setting" else Words("구성 요소", "Component"),
        label,
        Words("이전", "Before"), Words("이번", "Now"),
    )  # fmt: skip
    yield Table(head, [_row(one) for one in changes])


def _facts_cell(one: RedlineChange) -> Cell:
    return Cell(same(f"{one.old} → {one.new}"), _tone(one), code=True)


def _row(one: RedlineChange) -> tuple[Cell, ...]:
    as_typed = one.area in ("file", "record") or one.name == "digest"
    name = (
        FIELDS.get(one.name, same(one.name)) if one.area == "component" else same(one.name or "-")
    )
    return (
        Cell(_WHAT[one.what], _tone(one) if one.what != "removed" else "plain"),
        plain(one.component or "-"),
        Cell(name, code=one.area not in ("component", "vulnerability", "policy")),
        _value(one, one.old, as_typed=as_typed),
        _value(one, one.new, as_typed=as_typed),
    )


def _value(one: RedlineChange, text: str, *, as_typed: bool) -> Cell:
    if not text:
        return plain("-")
    if one.area == "execution":
        return Cell(Words(" | ".join(map(_execution, text.split(" | "))), text))
    if one.area in ("component", "vulnerability", "policy"):
        return Cell(Words(_korean(text, SAID), text), code=as_typed)
    return Cell(same(text), code=as_typed)


def _execution(text: str) -> str:
    """A finding's words, and behind them what `redline` adds of its rank, number and digest."""
    match = _COUNTED.fullmatch(text)
    if match is None:
        return korean(text)
    return f"{korean(match[1])} {_korean(match[2], SAID)}"


def _tone(one: RedlineChange) -> Tone:
    return _TONES.get(one.rank, "plain")


def _korean(text: str, table: tuple[tuple[str, str], ...]) -> str:
    for english, said in table:
        text = text.replace(english, said)
    return text
