"""A closed host for tests through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bundler.cli.app import run
from tests.fakes.small_bundle import SmallBundle


class Site:
    """A closed host: a root, and the commands."""

    def __init__(self, small: SmallBundle, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.small, self.root, self._capsys = small, root, capsys

    def do(self, *words: str, code: int = 0) -> str:
        """Run a command; gives stdout and stderr together."""
        found = run([*words, "--root", str(self.root)])
        captured = self._capsys.readouterr()
        assert found == code, captured.err + captured.out
        return captured.out + captured.err

    def tried(self, *words: str) -> int:
        """Run a command that may be refused; gives its exit code."""
        found = run([*words, "--root", str(self.root)])
        self._capsys.readouterr()
        return found

    def json(self, *words: str, code: int = 0) -> Any:
        found = run([*words, "--root", str(self.root), "--json"])
        captured = self._capsys.readouterr()
        assert found == code, captured.err + captured.out
        return json.loads(captured.out)

    def bring(self, *folders: Path, code: int = 0) -> str:
        places = [str(folder) for folder in folders or (self.small.out,)]
        return self.do("import", *places, "--key", str(self.small.public), "--quiet", code=code)

    def up(self) -> None:
        self.bring()
        self.do("install", "--quiet")


def gone(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] in "ZX"
