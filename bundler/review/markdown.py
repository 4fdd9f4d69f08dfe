"""The document as Markdown in one language: for wikis, tickets and a plain terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bundler.review.document import (
    Block,
    Cell,
    Commands,
    Document,
    Facts,
    Items,
    Paragraph,
    Table,
    Words,
)

# What others wrote stays text: no markup, no HTML, no link.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#|~!&])")


def markdown(document: Document, language: str) -> bytes:
    """The text in `ko` or `en`."""
    return ("\n".join(_Writer(language).lines(document)).rstrip() + "\n").encode()


class _Writer:
    def __init__(self, language: str) -> None:
        self._language = language

    def lines(self, document: Document) -> Iterator[str]:
        yield f"# {_safe(document.title)}: {self._said(document.kind)}"
        yield ""
        for label, cell in document.figures:
            yield f"- {self._said(label)}: **{self._said(cell.words)}**"
        for section in document.sections:
            yield ""
            yield f"## {self._said(section.title)}"
            for block in section.blocks:
                yield ""
                yield from self._block(block)
        yield ""
        yield f"---\n\n{self._said(document.foot)}"

    def _said(self, words: Words) -> str:
        return _safe(words.of(self._language))

    def _block(self, block: Block) -> Iterator[str]:
        if isinstance(block, Paragraph):
            text = self._said(block.words)
            yield f"> **{text}**" if block.tone in ("alarm", "attention") else text
        elif isinstance(block, Facts):
            for label, cell in block.rows:
                yield f"- {self._said(label)}: {self._cell(cell)}"
        elif isinstance(block, Items):
            yield from (f"- {self._said(item)}" for item in block.items)
        elif isinstance(block, Commands):
            yield "```sh"
            yield from (_fenced(line.of(self._language)) for line in block.lines)
            yield "```"
        else:
            yield from self._table(block)

    def _table(self, block: Table) -> Iterator[str]:
        if block.folded is not None:
            yield f"### {self._said(block.folded)}"
            yield ""
        yield self._row([self._said(words) for words in block.head])
        yield self._row(["---"] * len(block.head))
        for row in block.rows:
            yield self._row([self._cell(cell) for cell in row])

    @staticmethod
    def _row(cells: list[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def _cell(self, cell: Cell) -> str:
        text = cell.words.of(self._language)
        if cell.code and text and not set(text) & set("`|\n"):
            return f"`{text}`"
        return _safe(text)


def _safe(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split("\n")))


def _fenced(text: str) -> str:
    """A line of a fence cannot close it."""
    return " ".join(text.split("\n")).replace("```", "'''")
