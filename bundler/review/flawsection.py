"""The section of known vulnerabilities: what a database of a date says, what nobody looked up, and who excepted what."""

from __future__ import annotations

from collections.abc import Iterator

from bundler.domain.vulnerability import Severity, Vulnerability, VulnerabilityCheck
from bundler.review.document import (
    Block,
    Cell,
    Commands,
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

_SEVERITY: dict[Severity, tuple[Words, Tone]] = {
    "critical": (Words("심각", "critical"), "alarm"),
    "high": (Words("높음", "high"), "alarm"),
    "unknown": (Words("심각도 미상", "severity unknown"), "attention"),
    "medium": (Words("보통", "medium"), "attention"),
    "low": (Words("낮음", "low"), "plain"),
}
_COMMANDS = Commands(
    (
        Words("# SBOM으로 직접 점검하고, 데이터베이스 기준일을 함께 기록하십시오.",
              "# Check by the SBOM, and note the date of the database."),
        same("grype sbom:sbom.cdx.json -o table"),
        same("grype db status"),
        Words("# 또는 반출입이 승인된 OSV 내보내기 파일로", "# or by an export of OSV that was carried in"),
        same("airbundle review . --key KEY.pem --out /tmp/review --osv all.zip --exceptions vex.yaml"),
    )
)  # fmt: skip


def vulnerabilities(checked: VulnerabilityCheck | None) -> Section:
    """What is known, of which date; without a look-up it is "not checked", which is not "none"."""
    return Section(
        "vulnerabilities",
        Words("알려진 취약점", "Known vulnerabilities"),
        (*(_unchecked() if checked is None else _checked(checked)), _COMMANDS),
    )


def figure(checked: VulnerabilityCheck | None) -> Cell:
    """The number for the top of the page."""
    if checked is None or not checked.checked:
        return Cell(Words("미점검", "not checked"), "attention")
    count = sum(one.counts for one in checked.found)
    worst = any(
        one.advisory.severity in ("critical", "high") for one in checked.found if one.counts
    )
    tone: Tone = "alarm" if worst else "attention" if count or checked.unchecked else "good"
    text = str(count)
    rest = len(checked.unchecked)
    if rest:
        return Cell(Words(f"{text} (미점검 {rest})", f"{text} ({rest} not checked)"), tone)
    return Cell(same(text), tone, number=True)


def _unchecked() -> Iterator[Block]:
    yield Paragraph(
        Words(
            "미점검. 이 자료를 만들 때 취약점 데이터베이스를 조회하지 않았습니다. 취약점이 없다는 뜻이 아닙니다.",
            "Not checked. No vulnerability database was asked when this was made. That does not mean that there"
            " are none.",
        ),
        "attention",
    )


def _checked(checked: VulnerabilityCheck) -> Iterator[Block]:
    yield Facts(
        (
            (Words("데이터베이스", "Database"), plain(checked.source)),
            (Words("기준일", "Date of the database"), plain(checked.date or "-")),
            (Words("점검한 패키지", "Packages looked up"), plain(str(checked.checked))),
            (Words("미점검 패키지", "Packages not checked"), plain(str(len(checked.unchecked)))),
        )
    )
    head = (
        Words("심각도", "Severity"), Words("패키지", "Package"), Words("취약점", "Vulnerability"),
        Words("내용", "What"), Words("조치된 버전", "Mended in"), Words("예외", "Exception"),
    )  # fmt: skip
    if checked.found:
        yield Table(head, [_row(one) for one in checked.found])
    elif checked.checked:
        yield Paragraph(
            Words(
                "점검한 패키지에서 이 데이터베이스에 등록된 취약점은 없습니다.",
                "This database names no vulnerability of the packages that were looked up.",
            )
        )
    if checked.unchecked:
        yield Paragraph(
            Words(
                "다음 패키지는 점검하지 못했습니다. 취약점이 없다는 뜻이 아닙니다.",
                "These packages could not be looked up. That does not mean that they have none.",
            ),
            "attention",
        )
        yield Table(
            (Words("패키지", "Package"), Words("이유", "Why")),
            [(plain(f"{one.package} {one.version}"), plain(one.why)) for one in checked.unchecked],
            Words(f"미점검 {len(checked.unchecked)}건", f"{len(checked.unchecked)} not checked"),
        )
    if checked.unused:
        names = ", ".join(one.id for one in checked.unused)
        yield Paragraph(
            Words(
                f"해당 취약점이 없어 쓰이지 않은 예외: {names}",
                f"Exceptions that excuse nothing: {names}",
            ),
            "attention",
        )


def _row(one: Vulnerability) -> tuple[Cell, ...]:
    words, tone = _SEVERITY[one.advisory.severity]
    score = f" {one.advisory.score:g}" if one.advisory.score is not None else ""
    names = ", ".join((one.advisory.id, *one.advisory.aliases))
    return (
        Cell(Words(words.ko + score, words.en + score), tone if one.counts else "plain"),
        plain(f"{one.package} {one.version}"),
        code(names),
        plain(one.advisory.summary or "-"),
        plain(", ".join(one.advisory.fixed) or "-"),
        _exception(one),
    )


def _exception(one: Vulnerability) -> Cell:
    if one.excepted is not None:
        vex = one.excepted
        why = f"{vex.justification}: {vex.reason}" if vex.justification else vex.reason
        return Cell(
            Words(f"{why} ({vex.by}, {vex.expires}까지)", f"{why} ({vex.by}, until {vex.expires})"),
            "good",
        )
    if one.expired is not None:
        late = one.expired
        return Cell(
            Words(
                f"만료됨 ({late.by}, {late.expires}까지)",
                f"expired ({late.by}, until {late.expires})",
            ),
            "attention",
        )
    return plain("-")
