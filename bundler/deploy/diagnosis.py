"""Why an engine did not start: its log against the table of known failures.

docs/diagnosis.md is generated from the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bundler.deploy import signatures_host, signatures_model
from bundler.deploy.enginelog import is_harmless
from bundler.deploy.signature import Signature

GROUPS: tuple[tuple[str, tuple[Signature, ...]], ...] = (
    ("Memory", signatures_model.MEMORY),
    ("The model", signatures_model.MODEL),
    ("Settings", signatures_model.SETTINGS),
    ("What is compiled on the host", signatures_host.COMPILERS),
    ("Libraries and the processor", signatures_host.LIBRARIES),
    ("Driver and GPUs", signatures_host.GPU),
    ("Limits of the host", signatures_host.LIMITS),
)
# In the table's order: of two rows that fit one line equally well, the earlier one is the narrower.
SIGNATURES: tuple[Signature, ...] = tuple(row for _, rows in GROUPS for row in rows)
# vLLM's longest known message lists every architecture after the words that matter.
LONGEST_LOOKED_AT = 2000
LONGEST_VALUE = 160
LONGEST_LINE = 300


@dataclass(frozen=True)
class Diagnosis:
    """What a log says went wrong: the row's name, its meaning filled in, the fix, and the line."""

    name: str
    meaning: str
    fix: str
    line: str


def diagnose(lines: Sequence[str]) -> Diagnosis | None:
    """The cause that a log names, when it is a known one.

    An engine of several processes tells a failure many times, and what follows from it as well: the row
    nearest to a cause wins, then the line that came first.
    """
    best: tuple[int, Diagnosis] | None = None
    for line in dict.fromkeys(line[:LONGEST_LOOKED_AT] for line in lines):
        harmless = is_harmless(line)
        for signature in SIGNATURES:
            weight = signature.weight(harmless=harmless)
            if weight is None or (best is not None and weight >= best[0]):
                continue
            match = signature.pattern.search(line)
            if match is not None:
                best = weight, _told(signature, match.groups(), line)
    return best[1] if best else None


def _told(signature: Signature, groups: tuple[str | None, ...], line: str) -> Diagnosis:
    found = [_plain(group) for group in groups if group is not None]
    values = found + ["?"] * (len(groups) - len(found))
    return Diagnosis(
        signature.name,
        signature.meaning.format(*values),
        signature.fix,
        _plain(line.strip(), LONGEST_LINE),
    )


def _plain(text: str, longest: int = LONGEST_VALUE) -> str:
    """A piece of a log, fit for a terminal: nothing that moves the cursor, and not long."""
    return "".join(c if c.isprintable() else " " for c in text[:longest]).strip()
