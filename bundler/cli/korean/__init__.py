"""Korean for what the code says in English, found by the shape of the finished message.

`texts.json` maps English templates to Korean ones. A message reaches this place finished, with paths and
numbers in it: it is laid against the templates, the one with the most fixed text first, and what fills the
gaps is carried over unchanged, save where it is a message itself. What no template fits stays English.

A Korean template names gaps by number, `{0}`, and may ask for the particle that follows what fills one:
`{0:을}` is the value with 을 or 를. `scripts/gen_messages.py` finds every template in the code, and a test demands
an entry for each.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bundler.cli.korean.particles import particle

CATALOGUE = Path(__file__).with_name("texts.json")
_GAP = re.compile(r"\{(\d+)(?::([가-힣]+))?\}")
_WORD = re.compile(r"[A-Za-z]{2,}")
_SMALL = frozenset(
    ("of", "is", "to", "at", "in", "on", "for", "and", "by", "as", "not", "an", "the", "or", "over")
)
# How messages are put together where no template says so, from the outside in.
_JOINTS = (" -> ", "; ", ": ", " - ", ". ", ", ")
# How an addition to a message begins.
_ADDED = ("; ", " (")
_ARROW = "-> "
# A part of a sum: an amount and what it is of.
_AMOUNT = re.compile(r"(-?[\d.,]+ [KMGT]?i?B) (\D.*)")
_LEAD = re.compile("[a-z]+: ")
# A line in columns: each with the spaces that fill it up.
_COLUMNS = re.compile(r"\S+(?: \S+)*(?: {2,}|$)")
# A message inside a message inside a message: no sentence of ours goes deeper.
_DEEPEST = 6
# Nobody reads a longer line word by word; a log's line of megabytes is not searched.
_LONGEST = 4000


@dataclass(frozen=True, slots=True)
class Template:
    """An English template and its Korean one."""

    pieces: tuple[str, ...]
    """Fixed text between the gaps: one more than there are gaps."""
    korean: str
    telling: bool
    """Whether its fixed text is enough to know it by inside another message."""
    loose: bool
    """Whether its fixed text is of words that stand in any sentence, such as `{0} of {1}`."""

    @property
    def lead(self) -> bool:
        """Whether it only says of what sort the message after it is, such as `warning: {0}`."""
        return (
            len(self.pieces) == 2 and not self.pieces[1] and bool(_LEAD.fullmatch(self.pieces[0]))
        )

    @property
    def weight(self) -> int:
        """How much it takes for a message to fit by chance; a beginning of its own counts more."""
        return sum(map(len, self.pieces)) + (8 if _WORD.search(self.pieces[0]) else 0)

    def fits(self, text: str) -> list[str] | None:
        """What fills the gaps, None when the text is another message."""
        first, last = self.pieces[0], self.pieces[-1]
        if not text.startswith(first) or not text.endswith(last):
            return None
        at, end = len(first), len(text) - len(last)
        filled = []
        for piece in self.pieces[1:-1]:
            found = text.find(piece, at, end)
            if found < 0:
                return None
            filled.append(text[at:found])
            at = found + len(piece)
        if at > end:
            return None
        filled.append(text[at:end])
        # A gap that ends in the middle of a sentence belongs to another message.
        if any(gap.endswith((":", ";")) for gap in filled[:-1]):
            return None
        if self.loose and any(gap.count(" ") > 1 for gap in filled[1:]):
            return None
        return filled


@dataclass(frozen=True)
class Catalogue:
    """All templates: whole texts, templates with gaps, single words of tables and progress, units."""

    whole: dict[str, str]
    gapped: tuple[Template, ...]
    suffixes: tuple[Template, ...]
    """Those of them that are added to the end of others."""
    words: dict[str, str]
    units: dict[str, str]


@lru_cache(maxsize=1)
def catalogue() -> Catalogue:
    """The catalogue, read once and only when something Korean is said."""
    held = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    whole, gapped = {}, []
    for english, korean in held["messages"].items():
        if korean is None:  # no language: a flag, a format, another program's words
            continue
        pieces = tuple(_GAP.split(english)[::3])
        if len(pieces) == 1:
            whole[english] = korean
        else:
            gapped.append(_template(pieces, korean))
    # What begins as a lead does is no message whose first gap holds that word.
    leads = tuple(one.pieces[0] for one in gapped if one.lead)
    gapped.sort(key=lambda one: (not one.pieces[0].startswith(leads), -one.weight))
    suffixes = tuple(one for one in gapped if one.pieces[0].startswith(("; ", "(")))
    return Catalogue(whole, tuple(gapped), suffixes, held["words"], held["units"])


def _template(pieces: tuple[str, ...], korean: str) -> Template:
    """The template; two gaps side by side in both languages are one, since nothing says where the first ends."""
    parts = list(pieces)
    for gap in range(len(parts) - 3, -1, -1):
        pair = f"{{{gap}}} {{{gap + 1}}}"
        if parts[gap + 1] == " " and pair in korean:
            del parts[gap + 1]
            after = gap

            def renumbered(match: re.Match[str], after: int = after) -> str:
                number = int(match[1])
                return match[0].replace(match[1], str(number - (number > after)), 1)

            korean = _GAP.sub(renumbered, korean.replace(pair, f"{{{gap}}}"))
    words = _WORD.findall(" ".join(parts).lower())
    loose = _SMALL.issuperset(words)
    # Two words, or one with a colon or a bracket beside it: `line {0}: {1}`, `{0} (given: {1})`.
    marked = any(sign in piece for piece in parts for sign in ":(")
    telling = not loose and (len(words) >= 2 or marked)
    return Template(tuple(parts), korean, telling, loose)


def word(text: str) -> str:
    """A heading, a label or a state."""
    bare = text.lstrip("#")
    found = catalogue().words.get(bare)
    return translate(text) if found is None else text[: len(text) - len(bare)] + found


def unit(text: str) -> str:
    """What is counted, after its number."""
    return catalogue().units.get(text, text)


@lru_cache(maxsize=4096)
def translate(text: str) -> str:
    """The message in Korean, line by line; in English where the catalogue lacks it."""
    if len(text) > _LONGEST:
        return text
    return _said(text, 0) or text


def _said(text: str, depth: int) -> str | None:
    """The text in Korean, None when nothing in it is known."""
    bare = text.strip()
    if depth > _DEEPEST or not _WORD.search(bare):
        return None
    # First a template that explains all of it, then one with an addition at the end.
    found = _by_template(bare, depth, clean=True)
    if found is None:
        found = _by_suffix(bare, depth)
    if found is None:
        found = _by_template(bare, depth, clean=False)
    if found is None:
        found = _by_joint(bare, depth)
    if found is None:
        return None
    return _laid_out(text, bare, found)


def _by_suffix(bare: str, depth: int) -> str | None:
    """A message and what was added to its end: `...; the engine does not need it`, `... (estimate)`."""
    held = catalogue()
    for mark in _ADDED:
        at = bare.rfind(mark)
        if at <= 0:
            continue
        tail = bare[at:].strip()
        added = held.whole.get(tail) or _by_gaps(tail, depth + 1, held.suffixes)
        if added is not None:
            return (_said(bare[:at], depth) or bare[:at]) + (" " if mark == " (" else "") + added
    return None


def _by_template(bare: str, depth: int, *, clean: bool) -> str | None:
    held = catalogue()
    if bare in held.whole:
        return held.whole[bare]
    return _by_gaps(bare, depth, held.gapped, clean=clean)


def _by_gaps(
    bare: str, depth: int, templates: tuple[Template, ...], *, clean: bool = False
) -> str | None:
    for template in templates:
        if depth and not template.telling:
            continue
        filled = template.fits(bare)
        if clean and filled and any(mark in gap for gap in filled for mark in _ADDED):
            continue
        if filled is not None:
            # What follows a lead is a whole message.
            below = depth if template.lead else depth + 1
            return _fill(template.korean, [_said(value, below) or value for value in filled])
    return None


def _fill(korean: str, values: list[str]) -> str:
    return _GAP.sub(lambda gap: _filled(gap, values), korean)


def _filled(gap: re.Match[str], values: list[str]) -> str:
    value = values[int(gap[1])]
    return value + particle(value, gap[2]) if gap[2] else value


def _by_joint(bare: str, depth: int) -> str | None:
    """Several messages in a row, such as a place and what is wrong there, or columns of a list."""
    cut = _COLUMNS.findall(bare)
    if len(cut) > 1:
        cut[0] = _laid_out(cut[0], cut[0].strip(), word(cut[0].strip()))
        return "".join([cut[0], *(_said(part, depth + 1) or part for part in cut[1:])])
    amount = _AMOUNT.fullmatch(bare)
    if amount:
        return f"{amount[1]} {word(amount[2])}"
    if bare.startswith(_ARROW):
        below = _said(bare[len(_ARROW) :], depth)
        return _ARROW + below if below else None
    for joint in _JOINTS:
        if joint not in bare:
            continue
        parts = _split(bare, joint)
        # The full stop belongs to the sentence before it.
        if joint == ". ":
            parts = [f"{part}." for part in parts[:-1]] + parts[-1:]
        said = [_said(part, depth + 1) for part in parts]
        # A list that is understood in part only stays as it is.
        whole = joint != ", " or all(
            korean or " " not in part for part, korean in zip(parts, said, strict=True)
        )
        if any(said) and whole:
            pairs = zip(parts, said, strict=True)
            return joint.lstrip(".").join(korean or part for part, korean in pairs)
    return None


def _split(text: str, joint: str) -> list[str]:
    """The parts between the joints, none of them cut within brackets."""
    parts: list[str] = []
    # A place is before its colon; what follows is a message of its own, with colons of its own.
    for part in text.split(joint, 1 if joint == ": " else -1):
        if parts and parts[-1].count("(") > parts[-1].count(")"):
            parts[-1] += joint + part
        else:
            parts.append(part)
    return parts


def _laid_out(text: str, bare: str, korean: str) -> str:
    """With the white space around it; what was filled up to a column's width still ends there."""
    before = text[: len(text) - len(text.lstrip())]
    after = text[len(text.rstrip()) :]
    if len(after) > 1:
        after = " " * max(1, len(after) + len(bare) - cells(korean))
    return f"{before}{korean}{after}"


def cells(text: str) -> int:
    """Columns that a text takes: two for each Hangul syllable."""
    return sum(2 if sign >= "ᄀ" and _wide(sign) else 1 for sign in text)


def _wide(sign: str) -> bool:
    from unicodedata import east_asian_width

    return east_asian_width(sign) in "WF"
