"""A document in two languages, before it is a page or a text: headings, lists, tables, commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "alarm", "attention", "good"]


@dataclass(frozen=True)
class Words:
    """The same thing said in Korean and in English. Plain text: renderers escape it."""

    ko: str
    en: str

    def of(self, language: str) -> str:
        """In `ko` or `en`."""
        return self.ko if language == "ko" else self.en


def same(text: str) -> Words:
    """A name or a figure: one form for both languages."""
    return Words(text, text)


@dataclass(frozen=True)
class Cell:
    """A cell of a table. `code`: set as it is typed. `number`: right-aligned."""

    words: Words
    tone: Tone = "plain"
    code: bool = False
    number: bool = False


def plain(text: str) -> Cell:
    """A cell with a name or a figure."""
    return Cell(same(text))


def code(text: str) -> Cell:
    """A cell with a digest or a path."""
    return Cell(same(text), code=True)


def number(text: str) -> Cell:
    """A cell with a figure."""
    return Cell(same(text), number=True)


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; with a tone it stands out."""

    words: Words
    tone: Tone = "plain"


@dataclass(frozen=True)
class Facts:
    """Label and value, one below the other."""

    rows: Sequence[tuple[Words, Cell]]


@dataclass(frozen=True)
class Table:
    """Rows of cells below a head. A `folded` one is closed on a page until it is asked for."""

    head: Sequence[Words]
    rows: Sequence[Sequence[Cell]]
    folded: Words | None = None


@dataclass(frozen=True)
class Items:
    """A list."""

    items: Sequence[Words]


@dataclass(frozen=True)
class Commands:
    """What is typed, line by line; comments are words."""

    lines: Sequence[Words]


Block = Paragraph | Facts | Table | Items | Commands


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it. `anchor` is its name in links."""

    anchor: str
    title: Words
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """The whole of it. `figures` stand first: label, figure, tone."""

    kind: Words
    title: str
    figures: Sequence[tuple[Words, Cell]]
    sections: Sequence[Section]
    foot: Words
