"""What the shell may complete: names in a root and codes of findings, read with a folder's listing at most."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_MOST = 200


def completed_words() -> list[str]:
    """The words of the command line that a shell asks about; none when this is no such question.

    typer's scripts hand them over so: bash in COMP_WORDS, zsh and fish in _TYPER_COMPLETE_ARGS.
    """
    if "_AIRBUNDLE_COMPLETE" not in os.environ:
        return []
    asked = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")
    return asked.split()[1:]


def bundles(ctx: Any, incomplete: str) -> list[str]:
    """Imported bundles."""
    return _starting(_names(_root(ctx) / "bundles"), incomplete)


def releases(ctx: Any, incomplete: str) -> list[str]:
    """Installed releases, and what a purge could forget."""
    root = _root(ctx)
    return _starting([*_names(root / "releases"), *_names(root / "bundles")], incomplete)


def services(ctx: Any, incomplete: str) -> list[str]:
    """Services that were started in the root."""
    names = [name.removesuffix(".json") for name in _names(_root(ctx) / "run")]
    names += [name.removesuffix(".log") for name in _names(_root(ctx) / "logs")]
    return _starting(names, incomplete)


def findings(incomplete: str) -> list[str]:
    """Codes of findings."""
    from bundler.domain.catalogue import KINDS

    return _starting(KINDS, incomplete)


def _root(ctx: Any) -> Path:
    """As the command itself would choose it."""
    given = ctx.params.get("root") or os.environ.get("AIRBUNDLE_ROOT")
    return Path(given).expanduser() if given else Path("~/airbundle").expanduser()


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as found:
            return sorted(one.name for one in found if not one.name.startswith("."))[:_MOST]
    except OSError:
        return []


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    """Those that begin so; a name that would steer the terminal is left out."""
    fitting = (name for name in names if name.startswith(incomplete) and name.isprintable())
    return list(dict.fromkeys(fitting))
