"""The transfer form (반입 신청서): what is known is filled in, the rest is left for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bundler.domain.sizes import human
from bundler.format.digests import sha256_hex
from bundler.review.document import Cell, Facts, Paragraph, Section, Words, same
from bundler.review.subject import Subject

CYCLONEDX = "sbom.cdx.json"
SPDX = "sbom.spdx.json"


NOTHING = Words("", "")


@dataclass(frozen=True)
class Field:
    """One line of the form. An empty value is for a person to fill in; `hint` says with what."""

    label: Words
    value: Words = NOTHING
    hint: Words = NOTHING


def transfer_form(subject: Subject, files: Mapping[str, bytes]) -> tuple[Field, ...]:
    """The form's fields.

    Args:
        subject: the bundle.
        files: the pack's other files, of which the SBOMs are named with their digests.
    """
    manifest = subject.verified.manifest
    inventory = subject.inventory
    size = human(sum(volume.size for volume in manifest.volumes))
    alarms = sum(1 for _, found in inventory.findings if found.rank == "alarm")
    native = sum(1 for one in inventory.components if any(x.kind == "native" for x in one.executes))
    unknown = [one for one in inventory.of("wheel", "model", "file") if not one.licence.known]
    names = {one.licence.expression for one in inventory.of("wheel", "model") if one.licence.known}
    key = subject.verified.key_id
    # Manifest, checksums and signature are files on the medium too.
    count = len(manifest.volumes) + len(manifest.loose) + (3 if key else 2)
    person = Words("기재", "to be filled in")
    return (
        Field(Words("신청자(소속·직위·성명)", "Applicant (unit, position, name)"), NOTHING, person),
        Field(Words("승인자(소속·직위·성명)", "Approver (unit, position, name)"), NOTHING, person),
        Field(Words("신청일", "Date of application"), NOTHING, person),
        Field(Words("반입 목적", "Purpose"), NOTHING, person),
        Field(Words("사용 시스템(설치 서버)", "System it is for"), NOTHING, person),
        Field(
            Words("반입 경로", "Way in"), NOTHING,
            Words("보안 USB / 망연계 / 기타", "secured USB / transfer system / other"),
        ),
        Field(Words("매체 일련번호", "Serial number of the medium"), NOTHING, person),
        Field(
            Words("반입 자료", "What is brought in"),
            same(f"{manifest.name} #{manifest.sequence} ({subject.verified.bundle_id})"),
            same(manifest.description),
        ),
        Field(
            Words("파일 수·총 크기", "Files and size"),
            Words(f"{count}개, {size}", f"{count} files, {size}"),
            Words("파일별 SHA-256은 파일 목록 참조", "SHA-256 of each in the list of files"),
        ),
        Field(Words("자료 식별값(SHA-256)", "Identity (SHA-256)"), same(subject.verified.digest),
              Words("manifest.json", "manifest.json")),
        Field(
            Words("전자서명", "Signature"),
            Words(f"Ed25519, 키 {key}", f"Ed25519, key {key}") if key else Words("없음", "none"),
        ),
        Field(
            Words("출처", "Origin"),
            same("; ".join(f"{m.name}: {m.origin}{'@' + m.revision if m.revision else ''}"
                           for m in manifest.models)),
            Words("패키지별 출처는 구성 요소 목록 참조", "of each package in the list of components"),
        ),
        Field(
            Words("버전", "Version"),
            same(f"{manifest.engine.distribution} {manifest.engine.version},"
                 f" airbundle {manifest.tool.version}"),
        ),
        Field(
            Words("라이선스", "Licences"),
            Words(f"{len(names)}종, 알 수 없음 {len(unknown)}건",
                  f"{len(names)} kinds, {len(unknown)} unknown"),
            Words("구성 요소 목록 참조", "see the list of components"),
        ),
        Field(
            Words("실행 코드 포함 여부", "Executable code"),
            Words(f"포함: 기계어가 든 구성 요소 {native}개, 위험 항목 {alarms}건",
                  f"yes: native code in {native} components, {alarms} of rank alarm"),
            Words("'실행될 수 있는 요소' 참조", "see 'What could execute'"),
        ),
        Field(
            Words("백신 검사 결과(제품·엔진·패턴 일자·검사 일시)",
                  "Malware scan (product, engine, pattern date, time)"),
            _scanned(subject), Words("미검사: 검사 후 기재", "not scanned: fill in after the scan"),
        ),
        Field(
            Words("취약점 점검 결과(CVE·DB 기준일)", "Vulnerabilities (CVE, date of the database)"),
            _checked(subject), Words("미점검: 점검 후 기재", "not checked: fill in after the check"),
        ),
        Field(Words("취약점 예외 사유·조치 계획", "Exceptions and reasons"), _exceptions(subject), person),
        Field(
            Words("SBOM", "SBOM"),
            same("; ".join(f"{name} sha256 {sha256_hex(files[name])}"
                           for name in (CYCLONEDX, SPDX) if name in files)),
        ),
        Field(Words("보관 장소·기간", "Kept where, how long"), NOTHING, person),
        Field(Words("파기 방법·예정일·확인자", "Destroyed how, when, by whom"), NOTHING, person),
    )  # fmt: skip


def _scanned(subject: Subject) -> Words:
    found = subject.scanned
    if found is None:
        return NOTHING
    patterns = " ".join(filter(None, (found.pattern_version, found.pattern_date))) or "-"
    by = f"{found.engine} {found.engine_version}"
    rest = len(found.uncovered)
    return Words(
        f"탐지 {len(found.hits)}건, 검사 기록 없는 파일 {rest}개 ({by}, 패턴 {patterns}, {found.ended or '-'})",
        f"{len(found.hits)} found, {rest} files not covered ({by}, patterns {patterns}, {found.ended or '-'})",
    )


def _checked(subject: Subject) -> Words:
    found = subject.checked
    if found is None or not found.checked:
        return NOTHING
    count = sum(one.counts for one in found.found)
    rest = len(found.unchecked)
    return Words(
        f"{count}건, 미점검 {rest}개 패키지 ({found.source}, 기준일 {found.date})",
        f"{count}; {rest} packages not checked ({found.source}, of {found.date})",
    )


def _exceptions(subject: Subject) -> Words:
    """Each reason once, with whom and until when."""
    given = (
        [one.excepted for one in subject.checked.found if one.excepted] if subject.checked else []
    )
    lines = [f"{one.id}: {one.reason} ({one.by}, {one.expires})" for one in dict.fromkeys(given)]
    return same("; ".join(lines)) if lines else NOTHING


def form_section(fields: tuple[Field, ...]) -> Section:
    """The form as a section."""
    rows = []
    for field in fields:
        if field.value != NOTHING:
            cell = Cell(field.value)
        else:
            cell = Cell(Words(f"({field.hint.ko})", f"({field.hint.en})"), "attention")
        rows.append((field.label, cell))
    note = Words(
        "기관 양식에 옮겨 적을 수 있도록 transfer-form.xlsx와 transfer-form.csv에도 같은 내용이 있습니다.",
        "The same is in transfer-form.xlsx and transfer-form.csv, to be pasted into the site's own form.",
    )
    title = Words("반입 신청서", "Transfer form")
    return Section("form", title, (Paragraph(note), Facts(rows)))
