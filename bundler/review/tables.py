"""Tables for other programs: CSV and XLSX, with nothing in them that a spreadsheet would compute."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator, Sequence

from openpyxl import Workbook
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.worksheet import Worksheet

from bundler.review.document import Words
from bundler.review.form import Field
from bundler.review.sections import KIND_WORDS, RANK_WORDS, UNKNOWN
from bundler.review.subject import Subject

Row = Sequence[str]
_MODIFIED = re.compile(rb"(<dcterms:(created|modified)[^>]*>)[^<]*(</dcterms:)")
_MAX_CELL = 32_000
_WIDEST = 70


def components_csv(subject: Subject) -> bytes:
    """Every file of every component, one a line."""
    return _csv(_component_rows(subject))


def form_csv(subject: Subject, fields: Sequence[Field]) -> bytes:
    """The transfer form, then the files on the media."""
    return _csv([*_form_rows(fields), (), *_file_rows(subject)])


def form_xlsx(subject: Subject, fields: Sequence[Field]) -> bytes:
    """The form as a workbook: the form, the files, the components, what could execute."""
    book = Workbook()
    first = book.active
    if not isinstance(first, Worksheet):
        raise TypeError("a new workbook has a sheet")
    first.title = "반입 신청서"
    _fill(first, _form_rows(fields))
    for title, rows in (
        ("파일 목록", _file_rows(subject)),
        ("구성 요소", _component_rows(subject)),
        ("실행 항목", _executable_rows(subject)),
    ):
        _fill(book.create_sheet(title), rows)
    buffer = io.BytesIO()
    book.save(buffer)
    return _steady(buffer.getvalue(), subject)


def _form_rows(fields: Sequence[Field]) -> list[Row]:
    rows: list[Row] = [("항목 / item", "내용 / content", "비고 / note")]
    for field in fields:
        rows.append((_said(field.label), _said(field.value), _said(field.hint)))
    return rows


def _said(words: Words) -> str:
    return words.ko if words.ko == words.en else f"{words.ko} / {words.en}"


def _file_rows(subject: Subject) -> list[Row]:
    manifest = subject.verified.manifest
    rows: list[Row] = [("파일명 / file", "크기(바이트) / bytes", "SHA-256")]
    rows += [(v.name, str(v.size), v.sha256) for v in manifest.volumes]
    rows += [(loose.name, str(loose.size), loose.sha256) for loose in manifest.loose]
    return rows


def _component_rows(subject: Subject) -> list[Row]:
    rows: list[Row] = [
        ("종류 / kind", "이름 / name", "버전 / version", "리비전 / revision", "라이선스 / licence",
         "출처 / origin", "제작자 / supplier", "파일 / file", "크기(바이트) / bytes", "SHA-256",
         "최고 등급 / rank"),
    ]  # fmt: skip
    for one in subject.inventory.components:
        rank = RANK_WORDS[one.worst] if one.worst else None
        for file in one.files:
            rows.append(
                (KIND_WORDS[one.kind].ko, one.name, one.version, one.revision,
                 one.licence.expression or f"{UNKNOWN.ko} / {UNKNOWN.en}", one.origin, one.supplier,
                 file.path, str(file.size), file.sha256, f"{rank.ko} / {rank.en}" if rank else "")
            )  # fmt: skip
    return rows


def _executable_rows(subject: Subject) -> list[Row]:
    rows: list[Row] = [("등급 / rank", "종류 / kind", "구성 요소 / component", "파일 / file",
                        "내용 / what", "파일 수 / files")]  # fmt: skip
    rows += [
        (RANK_WORDS[found.rank].ko, found.kind, one.name, found.where, found.what, str(found.count))
        for one, found in subject.inventory.findings
    ]
    return rows


def _csv(rows: Sequence[Row]) -> bytes:
    """With a byte-order mark: without it Excel takes Korean for another encoding."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerows([[_harmless(cell) for cell in row] for row in rows])
    return buffer.getvalue().encode("utf-8-sig")


def _harmless(cell: str) -> str:
    """A name that begins as a formula would is one to a spreadsheet; the quote makes it text."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def _fill(sheet: Worksheet, rows: Sequence[Row]) -> None:
    widths: dict[int, int] = {}
    for at, row in enumerate(rows, 1):
        for column, text in enumerate(row, 1):
            cell = sheet.cell(at, column)
            number = text.isdecimal() and len(text) < 16 and at > 1
            cell.value = int(text) if number else "".join(_printable(text))[:_MAX_CELL]
            if not number:
                # Never a formula, whatever it begins with.
                cell.data_type = "s"
            cell.alignment = Alignment(wrap_text=True, vertical="top")
            widths[column] = min(max(widths.get(column, 12), _width(text) + 2), _WIDEST)
            if at == 1:
                cell.font = Font(bold=True)
                cell.fill = PatternFill("solid", fgColor="DDE3EA")
    for column, width in widths.items():
        sheet.column_dimensions[get_column_letter(column)].width = width
    sheet.freeze_panes = "A2"
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr.fitToPage = True


def _width(text: str) -> int:
    """Hangul takes two columns."""
    return sum(2 if ord(letter) > 0x1100 else 1 for letter in text[: 2 * _WIDEST])


def _printable(text: str) -> Iterator[str]:
    """XML 1.0 has no place for control characters."""
    for letter in text:
        yield letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}"


def _steady(data: bytes, subject: Subject) -> bytes:
    """The same bundle gives the same bytes: openpyxl writes the time of day into both places."""
    moment = subject.created.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "docProps/core.xml":
                content = _MODIFIED.sub(rb"\g<1>" + moment + rb"\g<3>", content)
            fixed = zipfile.ZipInfo(info.filename, (1980, 1, 1, 0, 0, 0))
            new.writestr(fixed, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
