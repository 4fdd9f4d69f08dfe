"""Korean particles after a word that is known only at run time.

을/를, 이/가, 은/는, 과/와 and 으로/로 depend on whether the word before them ends in a consonant as it is read
aloud. Hangul says so itself (Unicode 15, 3.12: a syllable is 0xAC00 + 28 x rest + final); digits are read in
Sino-Korean, Latin words as they are usually borrowed (wheel 휠, file 파일, token 토큰, list 리스트).
"""

from __future__ import annotations

import re

# Form that a template names -> (after a consonant, after a vowel).
PAIRS = {
    "을": ("을", "를"), "이": ("이", "가"), "은": ("은", "는"), "과": ("과", "와"),
    "으로": ("으로", "로"), "이라": ("이라", "라"), "이나": ("이나", "나"), "이어야": ("이어야", "여야"),
}  # fmt: skip
_L = 8  # the final consonant ㄹ, after which it is 로, not 으로
_OTHER = 1  # any other one
# 영 일 이 삼 사 오 육 칠 팔 구; a number that ends in zeros ends in 십, 백, 천, 만 or 억, as 영 does: not in ㄹ.
_DIGITS = dict(zip("0123456789", (1, _L, 0, 1, 0, 0, 1, _L, _L, 0), strict=True))
# Names of letters: 엘 알 end in ㄹ, 엠 엔 in another one, all others in a vowel.
_LETTERS = {"l": _L, "r": _L, "m": _OTHER, "n": _OTHER}
_TOKEN = re.compile(r"[0-9A-Za-z가-힣]+")
_BRACKETS = re.compile(r"\s*(\([^()]*\)|\[[^][]*\])$")


def particle(word: str, form: str) -> str:
    """The particle of this kind that follows the word; `form` is the one after a consonant."""
    closed, opened = PAIRS[form]
    final = _final(word)
    if form == "으로" and final == _L:
        return opened
    return closed if final else opened


def _final(word: str) -> int:
    """The final consonant of the word as it is read: 0 for none, 8 for ㄹ, another number for others."""
    bare = _BRACKETS.sub("", word.rstrip()) or word
    tokens = _TOKEN.findall(bare)
    if not tokens:
        return 0
    last: str = tokens[-1]
    end = last[-1]
    if "가" <= end <= "힣":
        return (ord(end) - 0xAC00) % 28
    if end.isdigit():
        return _DIGITS[end]
    letters = re.findall(r"[A-Za-z]+$", last)[0]
    if len(letters) == 1 or letters.isupper():
        return _LETTERS.get(end.lower(), 0)
    return _borrowed(letters.lower())


def _borrowed(word: str) -> int:
    """The final consonant of an English word as Korean borrows it."""
    if word.endswith(("le", "ll", "l")):
        return _L
    if word.endswith(("ne", "me")) and len(word) > 3:
        word = word[:-1]
    if word.endswith(("m", "n", "ng")):
        return _OTHER
    # 락 팩 훅: a stop after one short vowel closes the syllable; 디스크 리스트 루트 노드 do not.
    if re.search(r"(^|[^aeiou])[aeiou](ck|[kpt])$", word):
        return _OTHER
    return 0
