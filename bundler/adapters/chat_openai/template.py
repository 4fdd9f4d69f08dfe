"""Reads a chunk that differs from an earlier one in its text and counts alone, without parsing it again.

In a stream that is nearly every chunk.
"""

from __future__ import annotations

import json
import re

from bundler.adapters.chat_openai.chunks import delta_of
from bundler.adapters.chat_openai.safe_text import safe
from bundler.ports import Delta

_PROBE = "\N{SNOWMAN}x"
# A server whose chunks differ in more is not learned from for ever.
_MOST_LESSONS = 8
# What an engine writes anew into each chunk. llama.cpp: the time, too.
_NUMBER = re.compile(r'"(created|prompt_tokens|completion_tokens|total_tokens)"(\s*:\s*)(\d+)')
_COUNTS = {"prompt_tokens": b"(?P<p>", "completion_tokens": b"(?P<c>"}
# At most nine digits: any of them is a count that `chunks` would take.
_COUNT = b"(?:0|[1-9][0-9]{0,8}))"
_OTHER = b"(?:0|[1-9][0-9]{0,15})"
# Nothing that JSON would have escaped, so it can only be the whole text.
_TEXT = rb'(?P<t>[^"\\\x00-\x1f]+)'
_SIZE = rb"(?P<n>[0-9a-fA-F]{1,6})\r\n"


class Template:
    """The chunks of one stream.

    What stands around the text and the counts is kept from a chunk that was parsed. Between the same
    pieces another string without quotes, backslashes and control characters, and other whole numbers, can
    only be the same JSON with another text and other counts.
    """

    def __init__(self) -> None:
        self._lessons = _MOST_LESSONS
        self._event: re.Pattern[bytes] | None = None
        self._frame: re.Pattern[bytes] | None = None
        self._counts = False
        self._reasoning = False
        self._cached: int | None = None

    def read(self, data: bytes, at: float, chunked: bool, deltas: list[Delta]) -> int:
        """Put the events at the beginning of `data` that are known into `deltas`; how many bytes they took.

        `data` is what came at `at`: events, or HTTP chunks of one event each when `chunked`.
        """
        pattern = self._frame if chunked else self._event
        if pattern is None:
            return 0
        match, taken = pattern.match, 0
        while found := match(data, taken):
            end = found.end()
            if chunked:
                size = found["n"]
                # Between them stand the two line ends: after the size, and after the chunk.
                if int(size, 16) != end - taken - len(size) - 4:
                    break
            taken = end
            text = found["t"].decode("utf-8", "replace")
            if not text.isprintable():
                text = safe(text)
            if self._counts:
                deltas.append(
                    Delta(at, text, self._reasoning, "", int(found["p"]), int(found["c"]), self._cached)
                )  # fmt: skip
            else:
                deltas.append(Delta(at, text, self._reasoning))
        return taken

    def learn(self, event: str, delta: Delta) -> None:
        """Learn from an event that was parsed into `delta`; does nothing with one that teaches nothing."""
        if not self._lessons or not delta.text or delta.finish_reason:
            return
        self._lessons -= 1
        value = json.dumps(delta.text, ensure_ascii=False)
        place = event.find(value)
        if place < 0:
            return
        head, tail = event[: place + 1], event[place + len(value) - 1 :]
        counted = [found[1] for part in (head, tail) for found in _NUMBER.finditer(part)]
        counts = {"prompt_tokens", "completion_tokens"} & set(counted)
        if len(set(counted)) != len(counted) or len(counts) == 1:
            return
        # Another text and other counts there must change nothing but these.
        told = Delta(
            delta.at, _PROBE, delta.reasoning, "", 7 if counts else None, 8 if counts else None,
            None if not counts else delta.cached_tokens,
        )  # fmt: skip
        if not _reads(_probed(head) + _PROBE + _probed(tail), told):
            return
        json_bytes = _pattern(head) + _TEXT + _pattern(tail)
        line = b"data: ?" + json_bytes + rb"\r?\n(?:\r?\n)?"
        self._event = re.compile(line)
        self._frame = re.compile(_SIZE + line + rb"\r\n")
        self._counts, self._reasoning, self._cached = (
            bool(counts),
            delta.reasoning,
            told.cached_tokens,
        )


def _probed(part: str) -> str:
    """The same with other numbers."""
    numbers = {"prompt_tokens": 7, "completion_tokens": 8}
    return _NUMBER.sub(lambda found: f'"{found[1]}"{found[2]}{numbers.get(found[1], 9)}', part)


def _pattern(part: str) -> bytes:
    """What matches this with any numbers."""
    made, at = [], 0
    for found in _NUMBER.finditer(part):
        made.append(re.escape(part[at : found.start(3)].encode()))
        count = _COUNTS.get(found[1])
        made.append(_OTHER if count is None else count + _COUNT)
        at = found.end()
    return b"".join([*made, re.escape(part[at:].encode())])


def _reads(event: str, told: Delta) -> bool:
    """Whether an event says this."""
    try:
        json.loads(event)
    except (ValueError, RecursionError):
        return False
    return delta_of(event, told.at) == told
