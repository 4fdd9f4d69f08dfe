"""Reads a chunk that differs from an earlier one in its text alone, without parsing it again.

In a stream that is nearly every chunk.
"""

from __future__ import annotations

import json

from bundler.adapters.chat_openai.chunks import delta_of
from bundler.ports import Delta

_PROBE = "\N{SNOWMAN}x"
# A server whose chunks differ in more than their text is not learned from for ever.
_MOST_LESSONS = 8


class Repeats:
    """The chunks of one stream.

    What stands before and after the text is kept from a chunk that was parsed. Between the same two pieces,
    a text without quotes, backslashes and control characters can only be the same JSON with another text.
    """

    def __init__(self) -> None:
        self._head = self._tail = ""
        self._reasoning = False
        self._lessons = _MOST_LESSONS

    def delta(self, text: str, at: float) -> Delta:
        """One chunk that arrived at `at`.

        Raises:
            EngineError: as `delta_of`.
        """
        head, tail = self._head, self._tail
        if head and text.startswith(head) and text.endswith(tail):
            said = text[len(head) : -len(tail)]
            fits = len(text) > len(head) + len(tail)
            if fits and '"' not in said and "\\" not in said and said.isprintable():
                return Delta(at, said, self._reasoning)
        delta = delta_of(text, at)
        if self._lessons and delta.text:
            self._learn(text, delta)
        return delta

    def _learn(self, text: str, delta: Delta) -> None:
        self._lessons -= 1
        value = json.dumps(delta.text, ensure_ascii=False)
        place = text.find(value)
        if place < 0 or delta != Delta(delta.at, delta.text, delta.reasoning):
            return
        head, tail = text[: place + 1], text[place + len(value) - 1 :]
        # Another text there must change nothing but the text.
        if _only_the_text_differs(head, tail, delta):
            self._head, self._tail, self._reasoning = head, tail, delta.reasoning


def _only_the_text_differs(head: str, tail: str, delta: Delta) -> bool:
    """Whether a text between these pieces is the chunk's text and nothing else."""
    try:
        json.loads(head + _PROBE + tail)
    except (ValueError, RecursionError):
        return False
    return delta_of(head + _PROBE + tail, delta.at) == delta._replace(text=_PROBE)
