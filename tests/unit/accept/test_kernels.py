"""What was asked for against what the engine says: verdicts."""

from __future__ import annotations

from typing import Any

import pytest

from bundler.accept.kernels import judge_kernels
from bundler.domain.facts import ServiceState
from bundler.domain.running import Running
from bundler.domain.spec import Service, Settings
from bundler.domain.verdict import Verdict


def judged(settings: Settings, **runs: Any) -> list[tuple[str, str, str]]:
    service = Service(name="m", model="m", settings=settings)
    state = ServiceState(
        service="m", bundle_id="b", pid=1, start_ticks=1, boot="b", port=1, url="u", argv=(), env={},
        started="s", running=Running(**runs) if runs else None,
    )  # fmt: skip
    return [(c.what, c.verdict.value, c.measured) for c in judge_kernels([service], [state])]


TRITON = Settings(kernel="triton")


@pytest.mark.parametrize(
    ("runs", "verdict", "measured"),
    [
        ({"moe": ("triton",)}, "PASS", "triton"),
        ({"moe": ("deepgemm",)}, "FAIL", "deepgemm"),
        ({"moe": ("triton", "deepgemm")}, "FAIL", "triton/deepgemm"),
        ({"attention": ("FLASH_ATTN",)}, "INCONCLUSIVE", "unknown"),
        ({}, "INCONCLUSIVE", "unknown"),
    ],
)
def test_the_kernel(runs: dict[str, Any], verdict: str, measured: str) -> None:
    assert judged(TRITON, **runs) == [("MoE kernel: triton", verdict, measured)]


def test_what_was_left_to_the_engine_is_not_judged() -> None:
    assert judged(Settings(), moe=("deepgemm",), kv_dtype=("fp8",)) == []


def test_the_line_of_the_log_is_the_reason() -> None:
    service = Service(name="m", model="m", settings=Settings(kv_cache_dtype="q8_0"))
    state = ServiceState(
        service="m", bundle_id="b", pid=1, start_ticks=1, boot="b", port=1, url="u", argv=(), env={},
        started="s", running=Running(kv_dtype=("f16",), evidence={"kv_dtype": "K (f16)"}),
    )  # fmt: skip
    [check] = judge_kernels([service], [state])
    assert (check.verdict, check.reason) == (Verdict.FAIL, "K (f16)")
