"""`airbundle plan` against real wheels: what cannot start there is said before the trip."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bundler.cli.app import run
from bundler.demo.tiny_qwen35moe import write_tiny_qwen35_moe

pytestmark = pytest.mark.index


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a Qwen3.5-MoE model, and one cache for all plans."""
    folder = tmp_path_factory.mktemp("plan")
    (folder / "model").mkdir()
    write_tiny_qwen35_moe(folder / "model")
    # A hand-made GGUF or FP8 checkpoint is not needed: these findings do not depend on the weights.
    return folder


def plan(
    place: Path, capsys: pytest.CaptureFixture[str], version: str, *, tools: tuple[str, ...] = (),
    gpu: str = "NVIDIA H200", **settings: Any,
) -> tuple[int, dict[str, Any], dict[str, str]]:  # fmt: skip
    spec = {
        "name": "b",
        "target": {"python": "3.12", "glibc": "2.35", "cuda": "13.0", "tools": list(tools),
                   "gpus": [{"model": gpu, "count": 1}]},
        "models": [{"source": "local", "name": "qwen", "path": "model"}],
        "engine": {"name": "vllm", "version": version},
        "settings": settings,
    }  # fmt: skip
    path = place / "spec.yaml"
    path.write_text(yaml.safe_dump(spec))
    capsys.readouterr()
    code = run(["plan", str(path), "--json", "--quiet", "--cache", str(place / "cache")])
    answer = json.loads(capsys.readouterr().out)
    return code, answer, {item["code"]: item["what"] for item in answer["findings"]}


ALL = ("gcc", "g++", "nvcc", "ninja", "python-headers")


def test_qwen35_on_0_16_names_the_first_version_that_knows_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer, found = plan(place, capsys, "0.16.0", kernel="triton")
    assert code == 10
    assert answer["answer"] == "cannot work"
    assert "Qwen3_5MoeForConditionalGeneration" in found["arch-unknown"]
    assert "first in 0.17.0" in found["arch-unknown"]


def test_0_17_1_needs_nvcc_for_this_model_and_is_fine_with_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, found = plan(place, capsys, "0.17.1", kernel="triton")
    assert code == 10
    assert "gated delta net" in found["jit-nvcc"]
    code, answer, found = plan(place, capsys, "0.17.1", kernel="triton", tools=ALL)
    assert code == 0, found
    assert answer["engine"]["count"] > 170
    assert answer["model_facts"][0]["architectures"] == ["Qwen3_5MoeForConditionalGeneration"]


def test_deepgemm_is_not_in_the_wheel_of_0_17_1(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, found = plan(place, capsys, "0.17.1", kernel="deepgemm", tools=ALL)
    assert code == 10
    assert "DeepGEMM" in found["kernel-absent"]


def test_names_that_this_version_does_not_know(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, found = plan(
        place, capsys, "0.17.1", tools=ALL, kv_cache_dtype="nvfp4",
        env={"VLLM_LOGING_LEVEL": "DEBUG", "VLLM_USE_DEEP_GEMM": "1"},
        args=["--gdn-prefill-backend", "triton", "--enforce-egar"],
    )  # fmt: skip
    assert code == 10
    assert "the nearest is VLLM_LOGGING_LEVEL" in found["env-unknown"]
    assert "forces DeepGEMM" in found["env-forces-deepgemm"]
    assert "first in 0.20.0" in found["kv-dtype-unknown"]
    assert "flag-unknown" in found


def test_the_newest_gets_the_settings_that_spare_it_a_compiler(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer, found = plan(place, capsys, "0.33.0")
    assert code == 0, found
    settings = answer["services"][0]["settings"]
    assert "--gdn-prefill-backend" in settings["args"]
    assert settings["env"]["VLLM_USE_FLASHINFER_SAMPLER"] == "0"
    assert (
        "VLLM_USE_DEEP_GEMM" not in settings["env"] or settings["env"]["VLLM_USE_DEEP_GEMM"] == "0"
    )
    assert "jit-avoided" in found


def test_people_read_the_verdict_first(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan(place, capsys, "0.16.0")
    assert run(["plan", str(place / "spec.yaml"), "--quiet", "--cache", str(place / "cache")]) == 10
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "b: cannot work"
    assert lines[2].startswith("error    arch-unknown: qwen: ")
    assert "0.17.0" in lines[3]
    assert any(line.startswith("engine  vllm 0.16.0") for line in lines)
