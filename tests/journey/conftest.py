"""A real llama-server of its own for journeys that start it by hand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

MANIFEST = Path(__file__).parents[2] / "manifests" / "demo.yaml"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The llama-server of the demo's spec, in an environment of its own."""
    text = MANIFEST.read_text(encoding="utf-8")
    package = re.search(r"package: (\S+)", text)
    version = re.search(r"version: (\S+)", text)
    assert package
    assert version
    place = tmp_path_factory.mktemp("llama") / "venv"
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "-q", "-p", sys.executable, str(place)], check=True)
    wanted = f"{package[1]}=={version[1]}"
    install = [uv, "pip", "install", "-q", "-p", str(place / "bin" / "python"), wanted]
    subprocess.run(install, check=True)
    return next((place / "bin").glob("llama-server*"))
