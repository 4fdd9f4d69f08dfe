"""The reviewer's pack: read this first. A bundle under review -> the files that a person reads and signs."""

from __future__ import annotations

import glob
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from bundler.errors import StateError, disk_errors
from bundler.format import reviewpack
from bundler.format.codec import to_bytes
from bundler.format.rehearsal import instead, rehearsing
from bundler.format.trust import digest_line
from bundler.ports import Signer
from bundler.review import checksections, filechecks, flawsection, malwaresection, sections
from bundler.review.document import Cell, Document, Section, Words, number, same
from bundler.review.form import CYCLONEDX, SPDX, Field, form_section, transfer_form
from bundler.review.markdown import markdown
from bundler.review.packed import INVENTORY, packed_inventory
from bundler.review.page import html
from bundler.review.sbom_cyclonedx import cyclonedx
from bundler.review.sbom_spdx import spdx
from bundler.review.subject import ANTIVIRUS, VULNERABILITIES, Subject
from bundler.review.tables import components_csv, form_csv, form_xlsx

Language = Literal["ko", "en", "both"]
# Beside a pack while it is written: the new one, and the one before.
_ENDS = ("partial", "old")
_NOT_NAME = re.compile(r"[^A-Za-z0-9._+-]+")
_KIND = Words("반입 보안성 검토 자료", "Security review of a transfer bundle")


def make_pack(subject: Subject, language: Language = "both") -> dict[str, bytes]:
    """Every file of the pack, by its path; the same bundle gives the same bytes."""
    files = {CYCLONEDX: cyclonedx(subject), SPDX: spdx(subject)}
    fields = transfer_form(subject, files)
    document = document_of(subject, fields)
    files["review.html"] = html(document, language)
    for one in ("ko", "en") if language == "both" else (language,):
        files[f"review.{one}.md"] = markdown(document, one)
    files["components.csv"] = components_csv(subject)
    files["transfer-form.csv"] = form_csv(subject, fields)
    files["transfer-form.xlsx"] = form_xlsx(subject, fields)
    files[INVENTORY] = to_bytes(packed_inventory(subject))
    if subject.checked is not None:
        files[VULNERABILITIES] = to_bytes(subject.checked)
    if subject.scanned is not None:
        files[ANTIVIRUS] = to_bytes(subject.scanned)
    files.update(_licence_files(subject))
    files[reviewpack.BUNDLE] = digest_line(subject.verified.digest)
    return files


def write_pack(files: dict[str, bytes], out: Path, signer: Signer | None) -> None:
    """Write a pack: whole, in place of one that is there, or not at all.

    Raises:
        StateError: something else lies there.
        SpaceError, FileAccessError: of the disk.
    """
    if os.path.lexists(out) and not (out / reviewpack.BUNDLE).is_file():
        raise StateError(f"{out}: is there, and is no reviewer's pack", hint="Give another --out.")
    sums = reviewpack.sums(files)
    everything = {**files, reviewpack.SUMS: sums}
    if signer is not None:
        everything[reviewpack.SIGNATURE] = signer.sign(sums)
    if rehearsing():
        for name, data in everything.items():
            instead("write", out / name, len(data))
        return
    place = Path(os.path.realpath(out))  # `.` has no name, and a link is followed
    work, old = (place.with_name(f"{place.name}.{os.getpid()}.{end}") for end in _ENDS)
    try:
        with disk_errors("writing", place):
            _clear(place)
        with disk_errors("writing", work):
            for name, data in everything.items():
                path = work / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        with disk_errors("renaming", place):
            # Removed when the new one is there: half a pack in its place would be taken for none.
            if place.exists():
                place.rename(old)
            try:
                work.rename(place)
            except OSError:
                if old.exists():
                    old.rename(place)
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if place.exists():
            shutil.rmtree(old, ignore_errors=True)


def _clear(place: Path) -> None:
    """Remove what writers of this pack that were killed have left; a living one may still be at its own."""
    for end in _ENDS:
        for left in place.parent.glob(f"{glob.escape(place.name)}.*.{end}"):
            number = left.name.removeprefix(f"{place.name}.").removesuffix(f".{end}")
            if not number.isdecimal() or Path(f"/proc/{number}").exists():
                continue
            if end == "old" and not place.exists():  # killed between the two renames
                left.rename(place)
            else:
                shutil.rmtree(left, ignore_errors=True)


def document_of(subject: Subject, fields: tuple[Field, ...]) -> Document:
    """What a person reads."""
    found: list[Section] = [
        sections.overview(subject),
        sections.executables(subject),
        filechecks.file_checks(subject),
        sections.components(subject),
        sections.licences(subject),
        flawsection.vulnerabilities(subject.checked),
        malwaresection.malware(subject),
        checksections.network(subject),
        checksections.checks(subject),
        form_section(fields),
        checksections.volumes(subject),
        checksections.limits(),
    ]
    foot = Words(
        "서명된 manifest.json과 검증된 볼륨의 내용으로 만들었습니다. 외부 자원을 불러오지 않습니다. ",
        "Made from the signed manifest.json and from verified bytes of the volumes. It loads nothing from"
        " elsewhere. ",
    )
    return Document(
        kind=_KIND,
        title=f"{subject.verified.manifest.name} #{subject.verified.manifest.sequence}",
        figures=_figures(subject),
        sections=found,
        foot=Words(foot.ko + subject.verified.digest, foot.en + subject.verified.digest),
    )


def _figures(subject: Subject) -> list[tuple[Words, Cell]]:
    inventory = subject.inventory
    ranks = [found.rank for _, found in inventory.findings]
    rated = inventory.of("wheel", "model", "file")
    unknown = sum(1 for one in rated if not one.licence.known)
    rows: list[tuple[Words, Cell]] = [
        (Words("구성 요소", "Components"), number(str(len(inventory.components)))),
        (Words("실행 요소: 위험", "Alarm"), _counted(ranks.count("alarm"), "alarm")),
        (Words("실행 요소: 주의", "Attention"), _counted(ranks.count("attention"), "attention")),
        (Words("라이선스 불명", "Licence unknown"), _counted(unknown, "attention")),
    ]
    if subject.policy is not None:
        denied = sum(1 for one in rated if subject.policy.judge(one) == "deny")
        rows.append((Words("라이선스 금지", "Licence denied"), _counted(denied, "alarm")))
    rows += [
        (Words("취약점", "Vulnerabilities"), flawsection.figure(subject.checked)),
        (Words("악성코드", "Malware"), malwaresection.antivirus_figure(subject.scanned)),
    ]
    return rows


def _counted(count: int, tone: Literal["alarm", "attention"]) -> Cell:
    return Cell(same(str(count)), tone if count else "good", number=True)


def _licence_files(subject: Subject) -> Iterator[tuple[str, bytes]]:
    for one in subject.inventory.components:
        label = _NOT_NAME.sub("_", f"{one.name}-{one.version}".strip("-"))[:100]
        for at, text in enumerate(one.licence.texts, 1):
            last = _NOT_NAME.sub("_", text.path.rsplit("/", 1)[-1])[:60]
            yield f"licences/{one.kind}-{label}/{at:02d}-{last}.txt", text.text.encode()
