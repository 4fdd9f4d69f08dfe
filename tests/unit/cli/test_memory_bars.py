from __future__ import annotations

import pytest

from bundler.cli.memory_bars import bars
from bundler.domain.fit import Fit, Term

GIB = 2**30


def a_fit(kv: int) -> Fit:
    return Fit(
        service="s", model="m", gpu="G", gpus=1, gpu_bytes=80 * GIB, usable_bytes=72 * GIB,
        terms=(Term(name="weights", bytes=40 * GIB, how=""), Term(name="o", bytes=8 * GIB, how="")),
        kv_bytes=kv, kv_dtype="auto", per_token=Term(name="t", bytes=1, how=""),
        per_request=Term(name="r", bytes=0, how=""), max_context=1, context=1, requests=1,
    )  # fmt: skip


@pytest.mark.parametrize("width", [1, 20, 60, 100, 500])
@pytest.mark.parametrize("unicode", [True, False])
def test_no_line_is_wider_than_asked(width: int, unicode: bool) -> None:
    for kv in (24 * GIB, -100 * GIB, 0):
        assert all(len(line) <= width for line in bars(a_fit(kv), width, unicode=unicode))


def test_parts_are_drawn_to_scale() -> None:
    bar = bars(a_fit(24 * GIB), 82, unicode=False)[0]
    assert [bar.count(sign) for sign in "#+-."] == [40, 8, 24, 8]


def test_what_is_too_much_is_said() -> None:
    assert bars(a_fit(-3 * GIB), 80, unicode=True)[-1] == "3.0 GiB too much"
