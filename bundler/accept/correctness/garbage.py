"""Detectors of broken answers. Each gives a reason, or nothing.

Thresholds are engineering choices, tested on good and bad samples in Korean and English; they are set so that
lists, tables and code pass. What they are for: '!!!!' from a kernel that computes no numbers (token 0 of Qwen's vocabulary), loops from a
broken cache, bytes that are no text, and scripts that nobody asked for.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

# A character that repeats so often is no text, unless it draws a line or indents.
_LONGEST_RUN = 16
_DRAWS = frozenset(" \n\t-=_*.#~|·─━")
_RUN = re.compile(rf"(.)\1{{{_LONGEST_RUN - 1},}}", re.DOTALL)
# A loop: the end of the answer is the same piece, at least so many times and so long in all.
_LONGEST_PIECE = 120
_LEAST_TIMES = 6
_LEAST_LOOP = 60
_LEAST_WORDS, _LEAST_DISTINCT = 50, 0.2
_MOST_REPLACED = 2
_LEAST_LETTERS, _MOST_FOREIGN = 20, 0.3
_KNOWN = (
    "LATIN",
    "HANGUL",
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "GREEK",
    "FULLWIDTH",
    "KATAKANA-HIRAGANA",
)
_LEAST_KOREAN = 0.5
_LEAST_SYLLABLES = 20
_MOST_LOOSE_JAMO = 0.1


def fault(text: str) -> str:
    """Why this is no sensible text in Korean or English; empty when it may be."""
    return (
        _one_character(text)
        or _replaced(text)
        or _control(text)
        or _loop(text)
        or _few_words(text)
        or _foreign(text)
    )


def not_korean(text: str) -> str:
    """Why this is no Korean answer; empty when it is one. Foreign words and code in it are fine."""
    letters = [letter for letter in text if letter.isalpha()]
    syllables = sum("가" <= letter <= "힣" for letter in letters)
    loose = sum("ㄱ" <= letter <= "ㅣ" or "ᄀ" <= letter <= "ᇿ" for letter in letters)
    if syllables < _LEAST_SYLLABLES:
        return f"only {syllables} Hangul syllables"
    if loose > _MOST_LOOSE_JAMO * len(letters):
        return f"{loose} of {len(letters)} letters are loose jamo"
    if syllables < _LEAST_KOREAN * len(letters):
        return f"{syllables} of {len(letters)} letters are Hangul"
    return fault(text)


def _one_character(text: str) -> str:
    for found in _RUN.finditer(text):
        if found[1] not in _DRAWS:
            return f"{_named(found[1])} repeats {len(found[0])} times"
    drawn = [letter for letter in text if not letter.isspace()]
    if len(drawn) >= 4 * _LONGEST_RUN and len(set(drawn)) == 1:
        return f"nothing but {_named(drawn[0])}"
    return ""


def _replaced(text: str) -> str:
    # The last character may be cut where the answer ends.
    count = text.rstrip("\N{REPLACEMENT CHARACTER}").count("\N{REPLACEMENT CHARACTER}")
    return f"{count} characters are no text" if count > _MOST_REPLACED else ""


def _control(text: str) -> str:
    count = sum(unicodedata.category(letter) == "Cc" and letter not in "\n\r\t" for letter in text)
    return f"{count} control characters" if count else ""


def _loop(text: str) -> str:
    end = text.rstrip()
    for length in range(1, _LONGEST_PIECE + 1):
        span = max(_LEAST_TIMES * length, _LEAST_LOOP)
        if span > len(end):
            return ""
        tail = end[-span:]
        piece = tail[-length:]
        drawn = set(piece) <= _DRAWS
        if not drawn and tail[:-length] == tail[length:]:
            return f"it ends in a loop of {_named(piece.strip() or piece)}"
    return ""


def _few_words(text: str) -> str:
    words = text.split()
    if len(words) < _LEAST_WORDS:
        return ""
    distinct = len(set(words))
    if distinct >= _LEAST_DISTINCT * len(words):
        return ""
    word, count = Counter(words).most_common(1)[0]
    return f"{len(words)} words, {distinct} different ones; {_named(word)} {count} times"


def _foreign(text: str) -> str:
    letters = [letter for letter in text if letter.isalpha()]
    if len(letters) < _LEAST_LETTERS:
        return ""
    strange = sum(not unicodedata.name(letter, "").startswith(_KNOWN) for letter in letters)
    if strange <= _MOST_FOREIGN * len(letters):
        return ""
    return f"{strange} of {len(letters)} letters are of scripts that nobody asked for"


def _named(piece: str) -> str:
    shown = piece if len(piece) <= 30 else piece[:29] + "…"
    return repr(shown)
