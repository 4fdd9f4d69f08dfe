"""The documentation beside a bundle, and its pages in a real Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bundler import wiring
from bundler.build.pipeline import build
from bundler.cli.app import run
from bundler.cli.docs_cmds import whole_handbook
from bundler.format import layout
from tests.fakes.browser import needs_chromium, opened
from tests.fakes.small_bundle import SmallBundle

pytestmark = pytest.mark.slow


def test_it_travels_beside_the_volumes_and_is_signed_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = SmallBundle(tmp_path)
    small.prepare()
    lock = small.lock()
    made = []
    for name in ("one", "two"):
        build(
            spec=small.spec(), lock=lock, base=small.folder, out=tmp_path / name, tool_wheel=small.tool_wheel(),
            signer=wiring.signer(small.private), tools=small.tools(), handbook=whole_handbook(),
        )  # fmt: skip
        made.append({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()})
    assert made[0] == made[1]
    out = tmp_path / "one"
    page = out / layout.HANDBOOK
    assert b"<h1" in page.read_bytes()
    assert layout.HANDBOOK in (out / layout.READ_ME).read_text(encoding="utf-8")
    assert len(page.read_bytes()) < 1_000_000
    assert run(["verify", str(out), "--key", str(small.public), "--quiet"]) == 0
    stick = tmp_path / "stick"
    stick.mkdir()
    assert run(["copy", str(out), "--key", str(small.public), "--to", str(stick), "--quiet"]) == 0
    assert (stick / layout.HANDBOOK).read_bytes() == page.read_bytes()
    page.write_bytes(page.read_bytes().replace(b"airbundle", b"airbumdle", 1))
    assert run(["verify", str(out), "--key", str(small.public), "--quiet"]) == 7
    assert f"{layout.HANDBOOK}: changed" in "".join(capsys.readouterr())
    bare = [sys.executable, out / layout.BOOTSTRAP, "verify", "--key", small.public, "--dir", out]
    done = subprocess.run(bare, capture_output=True, text=True)
    assert done.returncode == 7
    assert layout.HANDBOOK in done.stderr
    shutil.rmtree(out)


@needs_chromium
@pytest.mark.parametrize("name", ["index.html", "launch.html", "all.html"])
def test_pages_open_from_a_folder(name: str, tmp_path: Path) -> None:
    assert run(["docs", "--out", str(tmp_path)]) == 0
    for dark in (False, True):
        with opened(tmp_path / name, dark=dark) as look:
            assert look.page.locator("nav a").count() > 10
            assert look.axe() == []
            assert look.fits()
            assert (look.requests, look.complaints) == ([], [])
    if name == "index.html":
        with opened(tmp_path / name) as look:
            look.page.locator("nav a", has_text="Trust").first.click()
            assert look.page.url.endswith("/trust.html")
            assert look.printed().startswith(b"%PDF-")
