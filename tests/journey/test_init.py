"""What `airbundle init` writes goes through `plan`, with a Hub on the loopback and the real wheels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bundler.cli.app import run
from bundler.demo.hub import LoopbackHub
from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.demo.tiny_qwen35moe import write_tiny_qwen35_moe

pytestmark = pytest.mark.index


def test_the_first_spec_can_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "hub" / "Qwen" / "Qwen3.5-35B-A3B-FP8"
    model.mkdir(parents=True)
    write_tiny_qwen35_moe(model)
    monkeypatch.chdir(tmp_path)
    words = ["init", "spec.yaml", "--model", "Qwen/Qwen3.5-35B-A3B-FP8", "--gpu", "NVIDIA H200",
             "--glibc", "2.31", "--cuda", "12.8", "--context", "4096"]  # fmt: skip
    assert run(words) == 0
    capsys.readouterr()
    with LoopbackHub(tmp_path / "hub") as address:
        # The library reads the variable once, when it is loaded.
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        code = run(["plan", "spec.yaml", "--json", "--quiet"])
    answer = json.loads(capsys.readouterr().out)
    assert code == 0, answer["findings"]
    assert answer["answer"].startswith("can work")


def test_the_first_gguf_spec_can_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "hub" / "unsloth" / "Qwen3.5-27B-GGUF"
    model.mkdir(parents=True)
    write_tiny_gguf(model / "tiny-Q4_K_M.gguf")
    monkeypatch.chdir(tmp_path)
    words = ["init", "spec.yaml", "--model", "unsloth/Qwen3.5-27B-GGUF", "--gpu", "RTX 3090 Ti",
             "--python", "3.10", "--glibc", "2.35", "--context", "512", "--users", "1"]  # fmt: skip
    assert run(words) == 0
    capsys.readouterr()
    with LoopbackHub(tmp_path / "hub") as address:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        code = run(["plan", "spec.yaml", "--json", "--quiet"])
    answer = json.loads(capsys.readouterr().out)
    assert code == 0, answer.get("findings", answer)
    assert answer["answer"].startswith("can work")
