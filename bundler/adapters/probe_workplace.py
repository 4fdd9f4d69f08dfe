"""WorkplaceProbe: Python, libraries, programs, folders and keys, without writing anything."""

from __future__ import annotations

import importlib.metadata
import locale
import os
import platform
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path

from bundler.domain.workplace import Folder, KeyFile, Package, Program, Workplace
from bundler.errors import ToolError
from bundler.ports import CommandRunner

_ANSWER_WITHIN_S = 10
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")
_PYTHON = re.compile(r"""python_version\s*<\s*['"](\d+)\.(\d+)['"]""")
# Extras of people who work on airbundle itself.
_OURS = {"test", "docs"}
_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")


class ThisWorkplace:
    """This process's surroundings."""

    def __init__(self, runner: CommandRunner, uv: str | None) -> None:
        """`uv` is the program that came with this environment."""
        self._runner = runner
        self._uv = uv

    def look(self, folders: tuple[Path, ...], keys: tuple[Path, ...]) -> Workplace:
        """Look. Never raises.

        Args:
            folders: what is written to.
            keys: private keys whose permissions matter; those that are gone are left out.
        """
        return Workplace(
            airbundle=_version("airbundle"),
            python=platform.python_version(),
            executable=sys.executable,
            packages=tuple(_packages()),
            programs=tuple(self._programs()),
            folders=tuple(map(_folder, folders)),
            keys=tuple(_keys(keys)),
            encoding=(getattr(sys.stdout, "encoding", None) or "").lower(),
            locale=locale.setlocale(locale.LC_CTYPE),
            terminal=bool(sys.stdout and sys.stdout.isatty()),
            code_from=_code_from(),
        )

    def _programs(self) -> Iterator[Program]:
        yield self._asked("uv", [self._uv or "uv", "--version"])
        yield self._asked("pip", [sys.executable, "-m", "pip", "--version"])
        yield self._asked("openssl", ["openssl", "version"])
        yield self._asked("unshare", ["unshare", "--user", "--map-root-user", "--net", "true"])

    def _asked(self, name: str, argv: list[str]) -> Program:
        try:
            done = self._runner.run(argv, timeout_s=_ANSWER_WITHIN_S)
        except (ToolError, OSError) as error:
            return Program(name=name, fault=str(error))
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            return Program(name=name, fault=last[:200])
        found = _VERSION.search(done.stdout)
        return Program(name=name, version=found[0] if found else "works")


def _packages() -> Iterator[Package]:
    """What airbundle's own metadata asks for."""
    try:
        stated = importlib.metadata.requires("airbundle") or []
    except importlib.metadata.PackageNotFoundError:
        return
    for line in stated:
        name, extra = _REQUIREMENT.match(line), _EXTRA.search(line)
        only_before = _PYTHON.search(line)
        if name is None or (extra and extra[1] in _OURS):
            continue
        if only_before and sys.version_info >= (int(only_before[1]), int(only_before[2])):
            continue
        yield Package(extra=extra[1] if extra else "", name=name[1], version=_version(name[1]))


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _folder(path: Path) -> Folder:
    here = path.absolute()
    while not here.exists() and here != here.parent:
        here = here.parent
    try:
        mode = here.stat().st_mode
        return Folder(
            path=str(path),
            exists=path.is_dir(),
            writable=os.access(here, os.W_OK | os.X_OK),
            case_sensitive=_case_sensitive(here),
            open_to_others=path.is_dir() and bool(mode & stat.S_IWOTH and not mode & stat.S_ISVTX),
        )
    except OSError:
        return Folder(path=str(path), exists=False)


def _case_sensitive(here: Path) -> bool | None:
    """Whether a name in the other case is another name; tried on names that are there, nothing is written."""
    names = {path.name for path in here.iterdir()}
    for name in sorted(names):
        other = name.swapcase()
        if other != name and other not in names:
            return not (here / other).exists()
    return None


def _keys(paths: Iterable[Path]) -> Iterator[KeyFile]:
    for path in paths:
        try:
            yield KeyFile(path=str(path), mode=stat.S_IMODE(path.stat().st_mode))
        except OSError:
            continue


def _code_from() -> str:
    try:
        newest = max(path.stat().st_mtime for path in Path(__file__).parents[1].glob("*.py"))
        return datetime.fromtimestamp(newest, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OSError, ValueError, OverflowError):
        return ""
