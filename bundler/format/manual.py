"""The documentation that comes with airbundle: Markdown in an installed package, beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

# Its folder in the package, and in the wheel that crosses the gap.
FOLDER = "manual"
_TOP = ("README.md", "README.ko.md", "CHANGELOG.md")


def manual_folder() -> Path:
    """The folder that holds README.md and docs/."""
    package = Path(__file__).parents[1]
    inside = package / FOLDER
    return inside if inside.is_dir() else package.parent


def manual_files(folder: Path) -> list[str]:
    """Paths of its pages, sorted: README, CHANGELOG, docs/ and docs/adr/; no pictures."""
    names = [name for name in _TOP if (folder / name).is_file()]
    found = (*folder.glob("docs/*.md"), *folder.glob("docs/adr/*.md"))
    return sorted([*names, *(path.relative_to(folder).as_posix() for path in found)])
