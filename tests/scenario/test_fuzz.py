"""A short run of every fuzz target; `python -m tests.fuzz` runs them for ten minutes each."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

SECONDS = 2


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_are_accepted_or_refused_as_promised(name: str, tmp_path: Path) -> None:
    target, promised = TARGETS[name]
    for data in seeds(name, tmp_path):
        for piece in (data, data[:-1], data[1:], b"", bytes(reversed(data))):
            try:
                target(piece)
            except promised:
                continue


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_a_short_run_finds_nothing(name: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris has no wheel for this Python")
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", name, "--seconds", str(SECONDS), "--finds", tmp_path],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    runs = re.search(rf"{name}: (\d+) inputs", done.stdout)
    assert runs, done.stdout
    assert int(runs[1]) > 20
