"""What `airbundle init` writes goes through `plan`, with a Hub on the loopback and the real wheels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bundler.cli.app import run
from bundler.demo.hub import LoopbackHub
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
        monkeypatch.setenv("HF_ENDPOINT", address)
        code = run(["plan", "spec.yaml", "--json", "--quiet"])
    answer = json.loads(capsys.readouterr().out)
    assert code == 0, answer["findings"]
    assert answer["answer"] == "can work"
