"""`airbundle preflight` as a user runs it, with GPUs that a stand-in of NVIDIA's library shows."""

import json
import os
import socket
from pathlib import Path

import pytest

from bundler.cli.app import run
from tests.fakes.small_bundle import SmallBundle


@pytest.fixture
def small(session_bundle: SmallBundle) -> SmallBundle:
    return session_bundle


def test_before_and_after_the_import(
    small: SmallBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = ["--root", str(tmp_path / "root")]
    key = ["--key", str(small.public)]
    assert run(["preflight", *root]) == 17
    assert run(["preflight", "--dir", str(small.out), *root]) == 8
    assert run(["preflight", "--dir", str(small.out), *root, *key]) == 0
    assert not (tmp_path / "root").exists()
    assert run(["import", str(small.out), *root, *key, "--quiet"]) == 0
    capsys.readouterr()
    assert run(["preflight", *root, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert {"glibc", "python", f"port {small.port}", "clock"} <= {
        row["name"] for row in found["rows"]
    }


def test_what_is_in_the_way_ends_in_exit_code_10(
    small: SmallBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "preflight",
        "--dir",
        str(small.out),
        "--root",
        str(tmp_path),
        "--key",
        str(small.public),
    ]
    with socket.create_server(("127.0.0.1", small.port)):
        assert run(words) == 10
        said = capsys.readouterr().out
        assert f"process {os.getpid()}" in " ".join(said.split())
        assert "give the service another port" in said
        assert run([*words, "--json"]) == 10
        assert json.loads(capsys.readouterr().out)["ok"] is False
