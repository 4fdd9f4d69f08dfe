"""The document as one HTML file: no script, no network, nothing to install; prints on A4."""

from __future__ import annotations

from html import escape

from bundler.review.document import (
    Block,
    Cell,
    Commands,
    Document,
    Facts,
    Items,
    Paragraph,
    Section,
    Table,
    Words,
)
from bundler.review.style import CSS

# The browser itself is told to load nothing, so that a reviewer need not take our word for it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_LONG = 24


def html(document: Document, language: str = "both") -> bytes:
    """The page; with `both` a reader switches between the languages."""
    ko, en = ("checked", "") if language != "en" else ("", "checked")
    switch = (
        '<nav><label for="ko">한국어</label><label for="en">English</label></nav>\n'
        if language == "both"
        else ""
    )
    title = escape(f"{document.title} · {document.kind.of('en' if language == 'en' else 'ko')}")
    body = "\n".join((_header(document), *map(_section, document.sections)))
    return (
        f'<!DOCTYPE html>\n<html lang="{"en" if language == "en" else "ko"}"><head>'
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{title}</title><style>{CSS}</style></head><body><main>\n"
        # The switch works without script: the inputs stand before what they govern.
        f'<input class="lang" type="radio" name="lang" id="ko" {ko} aria-label="한국어">'
        f'<input class="lang" type="radio" name="lang" id="en" {en} aria-label="English">'
        f'{switch}<div class="page">{body}<p class="foot">{_both(document.foot)}</p></div>'
        "</main></body></html>\n"
    ).encode()


def _header(document: Document) -> str:
    boxes = (Words("신청", "Applied"), Words("검토", "Reviewed"), Words("승인", "Approved"))
    head = "".join(f"<th>{_both(box)}</th>" for box in boxes)
    figures = "".join(
        f'<div class="{cell.tone}"><span class="dim">{_both(label)}</span>'
        f"<strong>{_both(cell.words)}</strong></div>"
        for label, cell in document.figures
    )
    contents = "".join(
        f'<li><a href="#{section.anchor}">{_both(section.title)}</a></li>'
        for section in document.sections
    )
    return (
        f'<header class="top"><div><p class="dim">{_both(document.kind)}</p>'
        f"<h1>{escape(document.title)}</h1></div>"
        f'<table class="sign"><tr>{head}</tr><tr>{"<td></td>" * len(boxes)}</tr></table></header>'
        f'<div class="figures">{figures}</div><ol class="toc">{contents}</ol>'
    )


def _section(section: Section) -> str:
    body = "\n".join(map(_block, section.blocks))
    return f'<section id="{section.anchor}"><h2>{_both(section.title)}</h2>{body}</section>'


def _block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return f'<p class="{block.tone}">{_both(block.words)}</p>'
    if isinstance(block, Facts):
        rows = "".join(f"<dt>{_both(k)}</dt><dd>{_content(v)}</dd>" for k, v in block.rows)
        return f"<dl>{rows}</dl>"
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{_both(item)}</li>' for item in block.items)}</ul>"
    if isinstance(block, Commands):
        return f"<pre>{_lines(block)}</pre>"
    return _table(block)


def _lines(block: Commands) -> str:
    return "\n".join(
        f'<span class="note">{_both(line)}</span>' if line.ko.startswith("#") else _both(line)
        for line in block.lines
    )


def _table(block: Table) -> str:
    head = "".join(f"<th>{_both(words)}</th>" for words in block.head)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in block.rows)
    table = (
        f'<div class="scroll" tabindex="0"><table class="data"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    if block.folded is None:
        return table
    return f"<details><summary>{_both(block.folded)}</summary>{table}</details>"


def _cell(cell: Cell) -> str:
    long = len(cell.words.ko) > _LONG
    kind = "num" if cell.number else "long" if long else ""
    return f'<td class="{kind}">{_content(cell)}</td>' if kind else f"<td>{_content(cell)}</td>"


def _content(cell: Cell) -> str:
    text = _both(cell.words)
    if cell.code and text:
        text = f"<code>{text}</code>"
    return text if cell.tone == "plain" else f'<span class="{cell.tone}">{text}</span>'


def _both(words: Words) -> str:
    if words.ko == words.en:
        return escape(words.ko)
    return (
        f'<span class="ko" lang="ko">{escape(words.ko)}</span>'
        f'<span class="en" lang="en">{escape(words.en)}</span>'
    )
