"""What the scenarios share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bundler.cli.app import run
from tests.fakes.site import Site
from tests.fakes.small_bundle import SmallBundle


@pytest.fixture
def site(tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]) -> Any:
    made: list[Site] = []

    def make(*args: str, **changes: Any) -> Site:
        small = SmallBundle(
            tmp_path / f"b{len(made)}", args=args, port=free_port, **changes
        ).build()
        made.append(Site(small, tmp_path / "root", capsys))
        return made[-1]

    yield make
    for one in made:
        run(["stop", "--root", str(one.root)])
