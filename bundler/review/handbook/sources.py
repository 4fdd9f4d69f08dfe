"""The pages: which there are, in which order, and where their Markdown lies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bundler.errors import HostError, disk_errors
from bundler.format.manual import manual_files, manual_folder

# Group in Korean and English -> pages in reading order; what is named nowhere comes last.
GROUPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("시작", "Start", ("README.md", "docs/first-hour.md")),
    (
        "따라 하기",
        "Tutorials",
        ("docs/tutorial-supplier.md", "docs/tutorial-reviewer.md", "docs/tutorial-operator.md"),
    ),
    (
        "작업별 안내",
        "How to",
        (
            "docs/howto.md", "docs/review.md", "docs/launch.md", "docs/releases.md", "docs/reports.md",
            "docs/baselines.md",
            "docs/audit.md",
        ),
    ),
    (
        "설명",
        "Explanation",
        (
            "docs/trust.md", "docs/verdicts.md", "docs/memory.md", "docs/acceptance.md",
            "docs/correctness.md", "docs/kernels.md",
        ),
    ),
    (
        "레퍼런스",
        "Reference",
        (
            "docs/cli.md", "docs/spec.md", "docs/findings.md", "docs/exit-codes.md", "docs/diagnosis.md",
            "docs/bundle-format.md",
        ),
    ),
    ("개발", "Development", ("docs/architecture.md",)),
)  # fmt: skip
_KOREAN = ".ko.md"


@dataclass(frozen=True)
class Page:
    """One page: its path in the checkout, its Markdown, and the group that it stands in."""

    path: str
    text: str
    group: tuple[str, str]

    @property
    def file(self) -> str:
        """Its name in the site, where all pages lie side by side."""
        return page_file(self.path)

    @property
    def slug(self) -> str:
        """Its name in the one page that holds all."""
        return self.file.removesuffix(".html").replace(".", "-")

    @property
    def korean(self) -> bool:
        """Whether it is the Korean one of two."""
        return self.path.endswith(_KOREAN)

    @property
    def title(self) -> str:
        """Its first heading."""
        head = next((line for line in self.text.splitlines() if line.startswith("# ")), self.path)
        return head.removeprefix("# ").strip()


def page_file(path: str) -> str:
    """`docs/adr/0001-x.md` -> `adr-0001-x.html`."""
    stem = path.removesuffix(".md").removeprefix("docs/").replace("/", "-")
    return {"README": "index.html", "README.ko": "index.ko.html"}.get(stem, f"{stem}.html")


def read_pages() -> list[Page]:
    """Every page in reading order, the Korean one behind its English one.

    Raises:
        HostError: this installation came without documentation.
        FileAccessError: a page cannot be read.
    """
    folder = manual_folder()
    there = manual_files(folder)
    if "README.md" not in there:
        raise HostError(
            f"{folder}: holds no documentation", hint="Install airbundle again: its wheel has it."
        )
    return [
        Page(path, _read(folder / path), group)
        for path, group in _ordered(there)
    ]  # fmt: skip


def _ordered(there: list[str]) -> list[tuple[str, tuple[str, str]]]:
    left = dict.fromkeys(there)
    found: list[tuple[str, tuple[str, str]]] = []

    def take(path: str, group: tuple[str, str]) -> None:
        for one in (path, path.removesuffix(".md") + _KOREAN):
            if one in left:
                del left[one]
                found.append((one, group))

    for ko, en, paths in GROUPS:
        for path in paths:
            take(path, (ko, en))
    last = (GROUPS[-1][0], GROUPS[-1][1])
    for path in [one for one in left if not one.endswith(_KOREAN)]:
        take(path, last)
    return found


def _read(path: Path) -> str:
    with disk_errors("reading", path):
        return path.read_text(encoding="utf-8")
