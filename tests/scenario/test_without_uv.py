"""Installing where uv cannot be run: a real pip, from `ensurepip` or installed, into the same kind of release."""

import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bundler import wiring
from bundler.deploy import environment
from bundler.deploy.root import Root
from bundler.errors import HostError
from tests.scenario.test_closed_side import gapped

pytestmark = pytest.mark.slow


@pytest.fixture(params=["absent", "no execution"])
def without_uv(request: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "uv"
    program.write_text("#!/bin/sh\n")
    program.chmod(stat.S_IRUSR)

    def absent() -> str:
        raise HostError("uv is not in this environment")

    found = absent if request.param == "absent" else lambda: str(program)
    monkeypatch.setattr(wiring, "uv_program", found)


@pytest.mark.usefixtures("without_uv")
def test_pip_installs_what_uv_would(site: Any) -> None:
    here = site()
    here.bring()
    assert "pip installs" in here.do("install")
    try:
        [state] = here.json("start", "--quiet")
        assert state["first_completion"] == "pong"
        here.do("verify", "--installed")
        release = Root(here.root).path / "current"
        compiled = list(release.glob("venv/lib/*/site-packages/__pycache__/toy_engine.*.pyc"))
        assert compiled
        changed = release / "venv/bin/llama-server-toy"
        changed.write_text(changed.read_text() + "\n")
        assert "llama-server-toy: changed" in here.do("verify", "--installed", code=7)
        again = here.do("install", "--again", "--quiet", code=12)
        assert "airbundle uninstall" in again
    finally:
        here.do("stop")
    here.do("uninstall", state["bundle_id"], "--force")
    here.do("install", "--quiet")
    here.do("verify", "--installed", "--quiet")


def test_pip_names_a_gap(site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "uv_program", lambda: str(tmp_path / "none"))
    here = site()
    broken = gapped(tmp_path / "gapped", here.small.port, "absent-thing")
    here.do("import", str(broken.out), "--key", str(broken.public), "--quiet")
    said = here.do("install", "--quiet", code=12)
    assert "not complete on this host: absent-thing is missing" in said
    assert not list(Root(here.root).releases.glob("*"))
    meant = gapped(tmp_path / "meant", here.small.port, exclude=("absent-thing",))
    here.do("import", str(meant.out), "--key", str(meant.public), "--quiet")
    here.do("install", "--quiet")


def test_a_python_without_ensurepip_uses_its_installed_pip(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Debian's python3 with python3-pip and without python3-venv."""
    monkeypatch.setattr(wiring, "uv_program", lambda: str(tmp_path / "none"))
    asked = environment._ASK_FOR_PIP.replace("import ensurepip", "import no_ensurepip")
    monkeypatch.setattr(environment, "_ASK_FOR_PIP", asked)
    here = site()
    here.bring()
    base = Path(getattr(sys, "_base_executable", sys.executable))
    has_pip = subprocess.run([base, "-m", "pip", "--version"], capture_output=True, check=False)
    if has_pip.returncode:
        assert "no pip of version 22.3" in here.do("install", "--quiet", code=18)
        return
    here.do("install", "--quiet")
    here.do("verify", "--installed", "--quiet")


def test_without_any_pip_it_is_said_what_to_do(
    site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wiring, "uv_program", lambda: str(tmp_path / "none"))
    asked = environment._ASK_FOR_PIP.replace("import ensurepip", "import no_ensurepip")
    asked = asked.replace("import pip", "import no_pip")
    monkeypatch.setattr(environment, "_ASK_FOR_PIP", asked)
    here = site()
    here.bring()
    said = here.do("install", "--quiet", code=18)
    assert "install python3-pip or python3-venv" in said
    assert not list(Root(here.root).releases.glob("*"))
