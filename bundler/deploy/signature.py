"""The form of a row in the table of known engine failures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Engine = Literal["vLLM", "llama.cpp", "Ollama", "both"]
# A cause that explains others; a failure that a cause may stand behind; what only follows from one.
CAUSE, FAILURE, CONSEQUENCE = 0, 1, 3
# A warning is the cause only when no error names a better one.
_WARNED = 2


@dataclass(frozen=True)
class Signature:
    """What a line of an engine's log means, and what to do.

    Args:
        name: stable name of the row.
        pattern: what upstream prints; its groups fill `{0}`, `{1}` ... of the meaning.
        meaning: one line.
        fix: one or two lines, in airbundle's own settings where there are any.
        upstream: the file that prints it, or an issue that quotes it.
        engine: which engine prints it.
        rank: `CAUSE`, `FAILURE` or `CONSEQUENCE`; the lowest in a log wins, then the first line.
        warned: it counts in a line that is only a warning, too.
    """

    name: str
    pattern: re.Pattern[str]
    meaning: str
    fix: str
    upstream: str
    engine: Engine = "vLLM"
    rank: int = FAILURE
    warned: bool = False

    def weight(self, *, harmless: bool) -> int | None:
        """How far this row is from the cause; nothing when such a line says nothing of it."""
        if not harmless:
            return self.rank
        return max(self.rank, _WARNED) if self.warned else None


def row(
    name: str,
    pattern: str,
    meaning: str,
    fix: str,
    upstream: str,
    *,
    engine: Engine = "vLLM",
    rank: int = FAILURE,
    warned: bool = False,
) -> Signature:
    """A row, its pattern compiled."""
    return Signature(name, re.compile(pattern), meaning, fix, upstream, engine, rank, warned)
