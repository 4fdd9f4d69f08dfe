"""What people read of a proof: the verdict first, then what weighs most."""

from __future__ import annotations

import pytest

from bundler.cli.proof_view import show_proof
from bundler.domain.catalogue import finding
from bundler.domain.findings import Finding, ranked
from bundler.domain.fit import Fit, Term
from bundler.domain.needs import HostNeeds, Tool
from bundler.domain.proof import Proof
from bundler.domain.target import Target

TARGET = Target.model_validate(
    {
        "python": "3.12",
        "glibc": "2.31",
        "cuda": "12.8",
        "gpus": [{"model": "NVIDIA H200", "count": 2}],
    }
)
GIB = 2**30
FIT = Fit(
    service="svc", model="m", gpu="NVIDIA H200", gpus=2, gpu_bytes=140 * GIB, usable_bytes=126 * GIB,
    terms=(Term(name="weights", bytes=60 * GIB, how="120 GiB / 2 GPUs"),), kv_bytes=66 * GIB,
    kv_dtype="auto", per_token=Term(name="KV cache per token", bytes=20480, how="2 x 10 layers"),
    per_request=Term(name="state", bytes=0, how=""), max_context=262144, context=131072, requests=25,
    at={4096: 600}, unknown=("the overhead is an estimate",),
)  # fmt: skip


def shown(capsys: pytest.CaptureFixture[str], *found: Finding, **rest: object) -> list[str]:
    show_proof("b", TARGET, Proof(findings=ranked(found), services=(), **rest))  # type: ignore[arg-type]
    return capsys.readouterr().out.splitlines()


def test_the_verdict_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys)
    assert lines[0] == "b: can work"
    assert lines[1] == "on linux x86_64, CPython 3.12, glibc 2.31, CUDA 12.8, 2x NVIDIA H200"
    assert shown(capsys, finding("jit-host-compiler", "s", "x"))[0] == "b: can work, with warnings"
    assert shown(capsys, finding("no-config", "m", "x"))[0] == "b: cannot work"


def test_errors_stand_before_warnings_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(
        capsys,
        finding("driver-needed", "d", "note"),
        finding("jit-host-compiler", "s", "warn"),
        finding("no-config", "m", "gone", fix="Include it."),
        finding("jit-avoided", "s", "sampler", applied="VLLM_USE_FLASHINFER_SAMPLER=0"),
    )
    text = "\n".join(lines)
    assert text.index("no-config") < text.index("jit-host-compiler") < text.index("driver-needed")
    assert "         -> Include it." in lines
    assert "         applied: VLLM_USE_FLASHINFER_SAMPLER=0" in lines
    assert any("--explain" in line for line in lines)


def test_memory_is_shown_with_its_terms(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(shown(capsys, fits=(FIT,)))
    assert "120 GiB / 2 GPUs" in text
    assert "longest request 262,144 tokens; at once: 25 of 131,072 tokens, 600 of 4,096" in text
    assert "the overhead is an estimate" in text


def test_what_the_host_must_have(capsys: pytest.CaptureFixture[str]) -> None:
    needs = HostNeeds(
        checked=True, glibc="2.29", driver="525.60.13", cuda_runtime="12.8",
        libraries=("libgomp.so.1",), tools=(Tool(name="gcc", why="Triton"),),
    )  # fmt: skip
    lines = shown(capsys, needs=needs)
    assert lines[-5:] == [
        "the host must have",
        "  glibc 2.29 or newer",
        "  NVIDIA driver 525.60.13 or newer (CUDA 12.8)",
        "  libgomp.so.1",
        "  gcc: Triton",
    ]
    assert shown(capsys, needs=needs.model_copy(update={"checked": False}))[-5].endswith("read)")


def test_each_column_of_a_memory_term_is_korean_by_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIRBUNDLE_LANG", "ko")
    how = "2 full layers x 8 kv heads x (256 K + 256 V elements) of auto"
    term = Term(name="KV cache per token", bytes=20480, how=how)
    lines = shown(capsys, fits=(FIT.model_copy(update={"per_token": term}),))
    assert "█ 가중치 60.0 GiB" in lines or "# 가중치 60.0 GiB" in lines
    told = next(line for line in lines if "토큰당 KV cache" in line)
    assert (
        told.split("  ")[-1]
        == "full attention 레이어 2개 x KV head 8개 x (원소 K 256 + V 256) x auto"
    )
    assert any("동시 처리: 131,072토큰 25건, 4,096토큰 600건" in line for line in lines)
