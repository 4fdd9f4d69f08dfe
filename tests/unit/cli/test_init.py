"""`airbundle init`: files, refusals, and the questions on a real terminal."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import sys
from pathlib import Path

import pytest

from bundler.build.specfile import load_spec
from bundler.cli.app import run

ARGS = ("--model", "Qwen/Qwen3.5-35B-A3B-FP8", "--gpu", "NVIDIA H200")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_writes_the_spec_and_the_schema_that_it_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", *ARGS]) == 0
    [spec] = tmp_path.glob("*.yaml")
    assert load_spec(spec).name == spec.stem == "qwen3.5-35b-a3b-h200"
    first = spec.read_text().splitlines()[0]
    schema = tmp_path / first.partition("$schema=")[2]
    assert json.loads(schema.read_text())["title"] == "BundleSpec"
    capsys.readouterr()
    assert run(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(schema.read_text())


def test_never_writes_over_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("mine\n")
    assert run(["init", str(path), *ARGS]) != 0
    assert run(["init", str(path), *ARGS, "--dry-run"]) != 0
    assert path.read_text() == "mine\n"
    assert [*tmp_path.iterdir()] == [path]
    assert run(["init", str(path), *ARGS, "--force"]) == 0
    assert load_spec(path).engine.name == "vllm"


@pytest.mark.parametrize("place", [".", "/", "sub"])
def test_a_folder_is_no_name_of_a_file(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sub").mkdir()
    assert run(["init", place, *ARGS, "--force"]) == 17
    assert f"error: {place}: is a folder\nhint: Name the file" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["sub"]


def test_without_room_for_the_schema_there_is_no_spec_either(tmp_path: Path) -> None:
    (tmp_path / "airbundle.schema.json").mkdir()
    assert run(["init", "mine.yaml", *ARGS, "--force"]) == 20
    assert not (tmp_path / "mine.yaml").exists()


def test_dry_run_prints_the_spec_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", *ARGS, "--dry-run"]) == 0
    assert "kernel: triton" in capsys.readouterr().out
    assert not [*tmp_path.iterdir()]


def test_without_a_terminal_the_missing_option_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["init", "--model", "a/b"]) == 3
    assert "no value was given for --gpu" in capsys.readouterr().err
    assert run(["init", *ARGS, "--engine", "ollama"]) == 3
    assert "--archive is missing" in capsys.readouterr().err
    assert run(["init", *ARGS[:3], "A100"]) == 3
    assert "A100" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_ollama_gets_its_archives_digest(tmp_path: Path) -> None:
    (tmp_path / "ollama.tgz").write_bytes(b"archive")
    words = ["init", "o.yaml", *ARGS, "--engine", "ollama", "--archive", "ollama.tgz"]
    assert run(words) == 0
    archive = load_spec(tmp_path / "o.yaml").engine.archive
    assert archive
    assert archive.sha256 == hashlib.sha256(b"archive").hexdigest()


@pytest.mark.slow
def test_asks_on_a_terminal_and_asks_again_when_the_answer_is_wrong(tmp_path: Path) -> None:
    # Model (wrong, right), revision, GPU (wrong, number), count, engine, version, Python, glibc (wrong,
    # right), CUDA, context, users, port, medium, name.
    answers = ["nobody", "Qwen/Qwen3.5-35B-A3B-FP8", "", "A100", "1", "", "", "", "", "new", "2.31",
               "12.8", "131072", "50", "8005", "", "asked"]  # fmt: skip
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-m", "bundler", "init"])
    os.write(terminal, "".join(f"{one}\n" for one in answers).encode())
    seen = b""
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, seen.decode()
    spec = load_spec(tmp_path / "asked.yaml")
    assert (spec.target.glibc, spec.target.cuda) == ("2.31", "12.8")
    assert spec.services[0].port == 8005
    assert spec.settings.kernel == "triton"
    assert b"no GPU whose memory is known" in seen
