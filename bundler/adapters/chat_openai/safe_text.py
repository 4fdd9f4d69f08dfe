"""Words of an engine that can be shown, stored and counted, whatever the engine put into them."""

from __future__ import annotations

import json
import re

from bundler.errors import EngineError

_LONGEST_MESSAGE = 300
# Control characters but tab and newline, marks that reorder a line, and halves of surrogate pairs.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def safe(text: str) -> str:
    """Unsafe characters are replaced, not left out: one alone is still a token."""
    # What is printable holds none of them, and nearly every token is.
    return text if text.isprintable() else _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str, longest: int = _LONGEST_MESSAGE) -> str:
    """One line of at most `longest` characters."""
    # Cut before and after: no need to sift megabytes, and a space less may come of it.
    words = " ".join(_UNSAFE.sub(" ", text[: 4 * longest]).split())
    return words[:longest]


def failure(text: str) -> EngineError:
    """An error that says this in one short line."""
    return EngineError(one_line(text))


def message(body: bytes) -> str:
    """The server's own words, in one line, from the error shapes that engines use."""
    text = body.decode("utf-8", errors="replace").strip()
    try:
        value: object = json.loads(text)
        for key in ("error", "message", "detail"):
            if isinstance(value, dict) and value.get(key):
                value = value[key]
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        said = text
    return one_line(said) or "(no message)"
