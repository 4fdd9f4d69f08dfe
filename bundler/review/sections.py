"""What a reviewer reads, section by section: from the signed manifest and the inventory alone."""

from __future__ import annotations

from collections import Counter

from bundler.domain.inventory import Component, Executable, ExecutableKind, Rank
from bundler.domain.manifest import Manifest
from bundler.domain.needs import needs_lines
from bundler.domain.sizes import human
from bundler.review.document import (
    Cell,
    Facts,
    Items,
    Paragraph,
    Section,
    Table,
    Tone,
    Words,
    code,
    number,
    plain,
    same,
)
from bundler.review.korean import korean
from bundler.review.licencepolicy import Judgement
from bundler.review.subject import Subject

RANK_WORDS: dict[Rank, Words] = {
    "alarm": Words("위험", "alarm"),
    "attention": Words("주의", "attention"),
    "usual": Words("일반", "usual"),
}
KIND_WORDS = {
    "wheel": Words("파이썬 패키지", "Python package"),
    "model": Words("모델", "model"),
    "file": Words("파일", "file"),
    "tool": Words("반입 도구", "transfer tool"),
    "spec": Words("명세·기록", "record"),
}
_RUNS: dict[ExecutableKind, Words] = {
    "pickle": Words("pickle", "pickle"),
    "path-file": Words("자동 실행(.pth)", "runs at start (.pth)"),
    "remote-code": Words("모델 코드", "model code"),
    "template": Words("대화 템플릿", "chat template"),
    "install-script": Words("스크립트", "script"),
    "unreadable": Words("검사 불가", "not looked into"),
    "script": Words("실행 파일", "program"),
    "native": Words("기계어", "native code"),
    "python": Words("파이썬", "Python"),
    "entry-point": Words("진입점", "entry point"),
}
JUDGEMENTS: dict[Judgement, tuple[Words, Tone]] = {
    "allow": (Words("허용", "allowed"), "good"),
    "review": (Words("검토 필요", "needs review"), "attention"),
    "deny": (Words("금지", "denied"), "alarm"),
}
UNKNOWN = Words("알 수 없음", "unknown")


def tone_of(rank: Rank | None) -> Tone:
    """How a rank is set off."""
    return rank if rank in ("alarm", "attention") else "plain"


def overview(subject: Subject) -> Section:
    """What it is, who made and signed it, for which host."""
    verified = subject.verified
    manifest = verified.manifest
    target = manifest.target
    signed = (
        plain(verified.key_id or "")
        if verified.signed
        else Cell(Words("서명 없음", "NOT SIGNED"), "alarm")
    )
    needs = "; ".join(needs_lines(manifest.needs))
    rows: list[tuple[Words, Cell]] = [
        (Words("이름", "Name"), plain(manifest.name)),
        (Words("설명", "Description"), plain(manifest.description or "-")),
        (Words("번들 ID", "Bundle id"), code(verified.bundle_id)),
        (Words("manifest.json SHA-256", "manifest.json SHA-256"), code(verified.digest)),
        (Words("일련번호", "Sequence"), plain(str(manifest.sequence))),
        (Words("구성 확정 일시(UTC)", "Resolved (UTC)"), plain(manifest.created)),
        (Words("서명 키 ID", "Signed by key"), signed),
        (Words("제작 도구", "Built with"), plain(f"airbundle {manifest.tool.version}")),
        (Words("대상 서버", "Target"),
         plain(f"{target.os} {target.arch}, CPython {target.python}, glibc {target.glibc}")),
        (Words("추론 엔진", "Engine"),
         plain(f"{manifest.engine.distribution} {manifest.engine.version}")),
        (Words("모델", "Models"), plain(", ".join(_model_line(m.name, m.origin, m.revision)
                                                  for m in manifest.models) or "-")),
        (Words("서버에 있어야 하는 것", "The server must have"), plain(needs or "-")),
        (Words("볼륨", "Volumes"),
         plain(f"{len(manifest.volumes)} × ZIP, {human(sum(v.size for v in manifest.volumes))}")),
    ]  # fmt: skip
    if manifest.base is not None:
        based = Words("증분 번들의 기준", "Builds on")
        rows.append((based, code(manifest.base.bundle_id)))
    blocks: list[Facts | Table | Paragraph] = []
    if not verified.signed:
        blocks.append(
            Paragraph(
                Words(
                    "이 번들에는 서명이 없습니다. 누가 만들었는지, 중간에 바뀌지 않았는지 확인할 수 없습니다.",
                    "This bundle has no signature. Nothing shows who made it, or that it was not changed.",
                ),
                "alarm",
            )
        )
    blocks.append(Facts(rows))
    if manifest.waived:
        blocks.append(
            Table(
                (Words("공급자가 예외 처리한 항목", "Waived by the supplier"), Words("내용", "What"),
                 Words("사유", "Reason")),
                [(code(one.code), plain(one.what), plain(one.reason)) for one in manifest.waived],
            )
        )  # fmt: skip
    return Section("overview", Words("개요", "Overview"), blocks)


def _model_line(name: str, origin: str, revision: str | None) -> str:
    return f"{name} ({origin}{'@' + revision if revision else ''})"


def executables(subject: Subject) -> Section:
    """What could execute, what matters most first."""
    found = subject.inventory.findings
    first = [row for row in found if row[1].rank != "usual"]
    usual = [row for row in found if row[1].rank == "usual"]
    head = (
        Words("등급", "Rank"), Words("종류", "Kind"), Words("구성 요소", "Component"),
        Words("파일", "File"), Words("내용", "What it does"),
        Words("있는 이유", "Why it is there"), Words("파일 수", "Files"),
    )  # fmt: skip
    why = reasons(subject)
    intro = Words(
        "아무것도 실행하지 않고 파일 내용만 읽어 찾았습니다. '위험'은 명령 실행을 의도한 구조, '주의'는 스스로"
        " 실행되거나 검사하지 못한 것, '일반'은 이런 소프트웨어에 으레 있는 코드입니다.",
        "Found by reading, nothing was run. Alarm: built so that it runs commands. Attention: runs by"
        " itself, or could not be looked into. Usual: code of the sort that such software has.",
    )
    blocks: list[Paragraph | Table] = [Paragraph(intro)]
    if first:
        blocks.append(Table(head, [_runs_row(*row, why) for row in first]))
    else:
        none = Words("위험·주의 항목이 없습니다.", "Nothing of rank alarm or attention.")
        blocks.append(Paragraph(none, "good"))
    if usual:
        blocks.append(
            Table(
                head,
                [_runs_row(*row, why) for row in usual],
                Words(
                    f"일반 등급 {len(usual)}건(기계어가 든 패키지 전부 포함)",
                    f"{len(usual)} of rank usual (every package with native code among them)",
                ),
            )
        )
    return Section("executes", Words("실행될 수 있는 요소", "What could execute"), blocks)


def reasons(subject: Subject) -> dict[tuple[str, str], Words]:
    """Kind and name of a component -> why it is in the bundle."""
    manifest = subject.verified.manifest
    users: dict[str, list[str]] = {}
    for one in subject.inventory.of("wheel"):
        for name in one.requires:
            users.setdefault(name, []).append(one.name)
    return {
        (one.kind, one.name): _reason(
            one, manifest, list(dict.fromkeys(users.get(one.package, [])))
        )
        for one in subject.inventory.components
    }


def _reason(one: Component, manifest: Manifest, users: list[str]) -> Words:
    if one.kind == "wheel" and users:
        names = ", ".join(users[:4]) + (f" +{len(users) - 4}" if len(users) > 4 else "")
        return Words(f"{names}의 의존성", f"needed by {names}")
    if one.kind == "wheel" and one.name == manifest.engine.distribution:
        return Words("추론 엔진", "the engine")
    if one.kind == "tool" or one.name == "airbundle":
        return Words("반입 도구", "the transfer tool")
    served = ", ".join(service.name for service in manifest.services if service.model == one.name)
    if one.kind == "model" and served:
        return Words(f"서비스 {served}의 모델", f"served as {served}")
    if one.kind == "file" and one.summary:
        return same(one.summary)
    return Words("구성에서 지정", "named by the spec")


def _runs_row(
    component: Component, found: Executable, why: dict[tuple[str, str], Words]
) -> tuple[Cell, ...]:
    return (
        Cell(RANK_WORDS[found.rank], tone_of(found.rank)),
        Cell(_RUNS[found.kind]),
        plain(f"{component.name} {component.version}".strip()),
        code(found.where),
        Cell(Words(korean(found.what), found.what)),
        Cell(why[component.kind, component.name]),
        number(str(found.count)),
    )


def components(subject: Subject) -> Section:
    """Every component with origin, version, licence, size, digest."""
    head = (
        Words("종류", "Kind"), Words("이름", "Name"), Words("버전·리비전", "Version, revision"),
        Words("라이선스", "Licence"), Words("크기", "Size"), Words("SHA-256", "SHA-256"),
        Words("출처", "Origin"), Words("제작자", "Supplier"),
    )  # fmt: skip
    rows = [_component_row(one) for one in subject.inventory.components]
    blocks: list[Table] = [Table(head, rows)]
    for one in subject.inventory.components:
        if len(one.files) > 1:
            blocks.append(
                Table(
                    (Words("파일", "File"), Words("크기(바이트)", "Size, bytes"), Words("SHA-256", "SHA-256")),
                    [(code(f.path), number(f"{f.size:,}"), code(f.sha256)) for f in one.files],
                    Words(f"{one.name}: 파일 {len(one.files)}개", f"{one.name}: {len(one.files)} files"),
                )
            )  # fmt: skip
    return Section("components", Words("구성 요소", "Components"), blocks)


def _component_row(one: Component) -> tuple[Cell, ...]:
    many = Words(f"파일 {len(one.files)}개, 아래 표", f"{len(one.files)} files, below")
    return (
        Cell(KIND_WORDS[one.kind]),
        plain(one.name),
        code(one.revision) if one.revision else plain(one.version or "-"),
        licence_cell(one),
        number(human(one.size)),
        code(one.sha256) if one.sha256 else Cell(many),
        plain(one.origin or "-"),
        plain(one.supplier or "-"),
    )


def licence_cell(one: Component) -> Cell:
    """The expression; unknown and conflicts stand out."""
    if not one.licence.known:
        return Cell(UNKNOWN, "attention")
    if one.licence.conflict:
        text = one.licence.expression
        return Cell(Words(f"{text} (표기 상충)", f"{text} (conflicting)"), "attention")
    return plain(one.licence.expression)


def licences(subject: Subject) -> Section:
    """How many of each, what is unknown, where statements conflict, what the policy says."""
    rated = [one for one in subject.inventory.components if one.kind not in ("spec", "tool")]
    unknown = [one for one in rated if not one.licence.known]
    counts = Counter(one.licence.expression for one in rated if one.licence.known)
    share = f"{len(rated) - len(unknown)}/{len(rated)}"
    blocks: list[Paragraph | Table | Items] = [
        Paragraph(
            Words(
                f"라이선스가 확인된 구성 요소: {share}. 메타데이터(PEP 639 표기, License 항목, 분류자)와 라이선스 원문에서"
                " 읽었으며, 추정하지 않습니다. 원문은 licences/ 폴더에 있습니다.",
                f"Licence known for {share}. Read from metadata (PEP 639 expression, License field,"
                " classifiers) and licence files; nothing is guessed. The texts are in licences/.",
            )
        )
    ]
    if subject.policy is None:
        blocks.append(
            Paragraph(
                Words(
                    "라이선스 정책 파일을 주지 않아 허용·금지 판정은 하지 않았습니다(--policy).",
                    "No licence policy was given, so nothing was judged (--policy).",
                )
            )
        )
    else:
        blocks.append(_judged(subject, rated))
    odd = [one for one in rated if not one.licence.known or one.licence.conflict]
    if odd:
        blocks.append(
            Table(
                (Words("확인할 구성 요소", "To be looked at"), Words("라이선스", "Licence"),
                 Words("근거", "Evidence")),
                [(plain(f"{one.name} {one.version}"), licence_cell(one), plain(_evidence(one)))
                 for one in odd],
            )
        )  # fmt: skip
    blocks.append(
        Table(
            (Words("라이선스(SPDX)", "Licence (SPDX)"), Words("개수", "Count")),
            [(plain(name), number(str(n))) for name, n in sorted(counts.items(), key=_by_count)],
        )
    )
    return Section("licences", Words("라이선스", "Licences"), blocks)


def _by_count(row: tuple[str, int]) -> tuple[int, str]:
    return -row[1], row[0]


def _judged(subject: Subject, rated: list[Component]) -> Table:
    policy = subject.policy
    rows = []
    for one in rated:
        judgement = policy.judge(one) if policy else "review"
        if judgement != "allow":
            words, tone = JUDGEMENTS[judgement]
            row = (Cell(words, tone), plain(f"{one.name} {one.version}".strip()), licence_cell(one))
            rows.append((judgement, row))
    rows.sort(key=lambda row: ("deny", "review").index(row[0]))
    allowed = len(rated) - len(rows)
    head = Words(
        f"정책 판정(허용 {allowed}건 제외)", f"By the policy ({allowed} allowed, not listed)"
    )
    return Table((head, Words("구성 요소", "Component"), Words("라이선스", "Licence")),
                 [row for _, row in rows])  # fmt: skip


def _evidence(one: Component) -> str:
    rows = (f"{row.source}: {row.said}" for row in one.licence.evidence)
    return "; ".join(rows) or "-"
