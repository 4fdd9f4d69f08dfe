"""What `airbundle init` writes goes through `plan`, with a Hub on the loopback and the real wheels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bundler.demo.hub import LoopbackHub
from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.demo.tiny_qwen35moe import write_tiny_qwen35_moe

pytestmark = pytest.mark.index


@pytest.mark.parametrize(
    ("repo", "write", "options", "answers"),
    [
        (
            "Qwen/Qwen3.5-35B-A3B-FP8",
            write_tiny_qwen35_moe,
            ["--gpu", "NVIDIA H200", "--glibc", "2.31", "--cuda", "12.8", "--context", "4096"],
            {"can work"},
        ),
        (
            "unsloth/Qwen3.5-27B-GGUF",
            lambda folder: write_tiny_gguf(folder / "tiny-Q4_K_M.gguf"),
            ["--gpu", "3090 Ti", "--python", "3.10", "--glibc", "2.35", "--context", "512"],
            # Whether the host has Vulkan's loader is for the site to see to.
            {"can work", "can work, with warnings"},
        ),
    ],
    ids=["vllm", "llama.cpp"],
)
def test_the_first_spec_can_work(
    repo: str, write: Callable[[Path], None], options: list[str], answers: set[str], tmp_path: Path
) -> None:
    model = tmp_path / "hub" / repo
    model.mkdir(parents=True)
    write(model)
    with LoopbackHub(tmp_path / "hub") as address:
        # A process of its own: the Hub's library reads the variable once, when it is loaded.
        env = {**os.environ, "HF_ENDPOINT": address}

        def airbundle(*words: str) -> str:
            argv = [sys.executable, "-m", "bundler", *words]
            done = subprocess.run(argv, env=env, cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        airbundle("init", "spec.yaml", "--model", repo, *options)
        answer = json.loads(airbundle("plan", "spec.yaml", "--json", "--quiet"))
    warnings = {one["code"]: one["what"] for one in answer["findings"] if one["level"] == "warning"}
    assert answer["answer"] in answers, warnings
    assert "model-unread" not in warnings
