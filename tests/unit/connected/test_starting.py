"""The spec that `airbundle init` writes: valid, explained, and what the shipped manifests say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from bundler.build.specfile import load_spec
from bundler.build.starting import VERSIONS, Answers, check_answers, engine_for, levels, spec_text
from bundler.domain.gpus import GPUS
from bundler.domain.sizes import MEDIA
from bundler.errors import SpecError

MANIFESTS = Path(__file__).parents[3] / "manifests"
H200 = Answers(model="Qwen/Qwen3.5-35B-A3B-FP8", gpu="NVIDIA H200", cuda="12.8", glibc="2.31")
GGUF = Answers(
    model="unsloth/Qwen3.5-27B-GGUF",
    gpu="3090 Ti",
    engine="llama.cpp",
    python="3.10",
    glibc="2.35",
    context=98304,
    users=1,
)


def test_defaults_are_those_of_the_shipped_manifests() -> None:
    shipped = [load_spec(path) for path in sorted(MANIFESTS.glob("*.yaml"))]
    versions = {(spec.engine.name, spec.engine.version) for spec in shipped}
    assert {("vllm", VERSIONS["vllm"]), ("llama.cpp", VERSIONS["llama.cpp"])} <= versions


@pytest.mark.parametrize(
    ("answers", "manifest"),
    [
        (
            replace(H200, engine_version="0.17.1", context=131072, users=50),
            "qwen35-35b-a3b-h200",
        ),
        (
            replace(
                H200, gpu="H100 SXM", gpus=2, engine_version="0.17.1", context=131072, users=100
            ),
            "qwen35-35b-a3b-2xh100",
        ),
        (GGUF, "qwen35-27b-gguf-3090ti"),
    ],
)
def test_the_shipped_cases_come_out_of_their_answers(answers: Answers, manifest: str) -> None:
    ours = check_answers(answers)
    theirs = load_spec(MANIFESTS / f"{manifest}.yaml")
    assert ours.target == theirs.target
    assert ours.settings == theirs.settings
    assert ours.engine == theirs.engine
    assert [(m.repo, m.include, m.exclude) for m in ours.models] == [
        (m.repo, m.include, m.exclude) for m in theirs.models
    ]
    assert [s.port for s in ours.services] == [s.port for s in theirs.services]
    assert ours.acceptance.slo.ttft_ms == theirs.acceptance.slo.ttft_ms


@pytest.mark.parametrize("card", GPUS, ids=lambda card: card.name)
def test_every_known_gpu_makes_a_spec(card: object) -> None:
    assert check_answers(replace(H200, gpu=card.name)).target.gpus[0].model  # type: ignore[attr-defined]


@pytest.mark.parametrize("medium", [*MEDIA, "16GB-usb"])
def test_every_medium_makes_a_spec(medium: str) -> None:
    assert check_answers(replace(H200, medium=medium)).volumes.medium == medium


def test_every_key_has_a_reason_before_it() -> None:
    for answers in (H200, replace(H200, gpus=2), GGUF, replace(H200, model="./m")):
        lines = spec_text(answers).splitlines()
        assert lines[0].startswith("# yaml-language-server: $schema=")
        assert yaml.safe_load("\n".join(lines))
        for at, line in enumerate(lines):
            if line and not line.lstrip().startswith("#") and not line.startswith("    "):
                before = [one.lstrip()[:1] for one in lines[max(0, at - 4) : at]]
                assert "#" in before, line


def test_kernel_triton_is_for_moe_in_fp8_on_hopper() -> None:
    assert check_answers(H200).settings.kernel == "triton"
    assert check_answers(replace(H200, gpu="L40S")).settings.kernel == "auto"
    assert check_answers(replace(H200, model="Qwen/Qwen3.5-27B-FP8")).settings.kernel == "auto"
    assert check_answers(replace(H200, model="Qwen/Qwen3.5-35B-A3B")).settings.kernel == "auto"


def test_without_nvcc_where_the_engine_can() -> None:
    assert check_answers(H200).target.tools == ("gcc", "python-headers")
    assert "nvcc" in check_answers(replace(H200, engine_version="0.17.1")).target.tools
    assert check_answers(replace(H200, tools=())).target.tools == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"gpu": "A100"},
        {"gpu": "Voodoo 2"},
        {"gpus": 0},
        {"python": "2.7"},
        {"glibc": "new"},
        {"medium": "floppy"},
        {"port": 0},
        {"users": 5000},
        {"context": 0},
        {"name": "con"},
        {"model": "no-owner"},
        {"revision": ""},
        {"model": 'a/b"\n- x'},
        {"model": "./a\x1b[2J"},
        {"engine_version": "latest"},
        {"tools": ("rustc",)},
    ],
)
def test_wrong_answers_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SpecError):
        check_answers(replace(H200, **wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("odd", ["yes", "1.5", "a: b", "- x", "한국어", "#x", "{a}", "null", "'"])
def test_odd_text_stays_text(odd: str) -> None:
    assert check_answers(replace(H200, revision=odd)).models[0].revision == odd


def test_levels_end_at_what_was_promised() -> None:
    assert levels(1) == (1,)
    assert levels(50) == (1, 10, 25, 50)
    assert levels(30) == (1, 10, 25, 30)
    assert engine_for("unsloth/X-GGUF") == "llama.cpp"
    assert engine_for("Qwen/X") == "vllm"
