"""A real llama-server that fails on purpose: its words are those of the table."""

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.deploy.diagnosis import diagnose

pytestmark = pytest.mark.engine


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path)
    return path


def last_said(server: Path, *args: str) -> list[str]:
    done = subprocess.run(
        [str(server), *args], capture_output=True, text=True, errors="replace", timeout=60
    )
    assert done.returncode != 0
    return (done.stdout + done.stderr).splitlines()


@pytest.mark.parametrize(
    ("args", "name", "words"),
    [
        (["--no-such-flag"], "args-llama", "--no-such-flag"),
        (["-ctk", "q9_9"], "args-llama", "q9_9"),
        (["-fa", "off", "-ctv", "q8_0"], "v-cache-flash", "Flash Attention"),
    ],
)
def test_wrong_arguments(
    server: Path, model: Path, free_port: int, args: list[str], name: str, words: str
) -> None:
    told = diagnose(last_said(server, "-m", str(model), "--port", str(free_port), *args))
    assert told is not None
    assert told.name == name
    assert words in told.meaning


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda data: data[:-2000], "gguf-truncated"),
        (lambda data: data[:300], "gguf-broken"),
        (lambda data: b"", "gguf-broken"),
        (lambda data: b"vers" + data[4:], "gguf-broken"),
        (lambda data: data.replace(b"\0llama", b"\0nopes", 1), "arch-llama"),
    ],
)
def test_a_model_that_is_no_good(
    server: Path, model: Path, free_port: int, change: Callable[[bytes], bytes], name: str
) -> None:
    model.write_bytes(change(model.read_bytes()))
    told = diagnose(last_said(server, "-m", str(model), "--port", str(free_port)))
    assert told is not None
    assert told.name == name


def test_a_model_that_is_not_there(server: Path, tmp_path: Path, free_port: int) -> None:
    told = diagnose(last_said(server, "-m", str(tmp_path / "none.gguf"), "--port", str(free_port)))
    assert told is not None
    assert told.name == "gguf-unreadable"


def test_a_port_that_is_taken(server: Path, model: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        told = diagnose(last_said(server, "-m", str(model), "--port", port))
    assert told is not None
    assert told.name == "port-in-use"
