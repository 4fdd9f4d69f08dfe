"""The shell commands of README and docs/, as lines with their page: what readers will type."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Line:
    """One command line of a page; comments are gone, continued lines are joined."""

    page: str
    block: int
    text: str

    def commands(self) -> list[list[str]]:
        """Words of each command of a line of `a && b`; a pipe stays one shell command."""
        if "|" in self.text:
            return [["sh", "-c", self.text]]
        return [shlex.split(part) for part in self.text.split("&&")]


def pages() -> list[str]:
    names = ["README.md", "README.ko.md"]
    names += sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
    return [name for name in names if (ROOT / name).is_file()]


def lines(page: str) -> Iterator[Line]:
    text = (ROOT / page).read_text(encoding="utf-8")
    for number, found in enumerate(_FENCE.finditer(text)):
        for line in found[1].replace("\\\n", " ").splitlines():
            bare = re.sub(r"(^|\s)#\s.*$", "", line).strip()
            if bare:
                yield Line(page, number, bare)


def every_line() -> list[Line]:
    return [line for page in pages() for line in lines(page)]
