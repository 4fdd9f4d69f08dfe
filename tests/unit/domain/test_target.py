"""A spec may leave the glibc open; a lock and a manifest may not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from bundler.build.resolve import spec_digest
from bundler.domain.spec import BundleSpec
from bundler.domain.target import Target, WantedTarget


def spec(**target: Any) -> BundleSpec:
    return BundleSpec.model_validate(
        {
            "name": "x",
            "target": {"python": "3.12", **target},
            "engine": {"name": "vllm", "version": "0.17.1"},
            "models": [{"source": "local", "path": "m"}],
            "services": [{"name": "s", "model": "m"}],
        }
    )


def test_left_out_is_auto() -> None:
    assert spec_digest(spec()) == spec_digest(spec(glibc="auto")) != spec_digest(spec(glibc="2.28"))
    assert not spec().target.states_glibc
    assert spec(glibc="2.28").target.states_glibc


@pytest.mark.parametrize("glibc", ["2", "2.", "3.1", "auto ", "2.100", "", "Auto", "2.31\n"])
def test_anything_else_is_refused(glibc: str) -> None:
    with pytest.raises(ValidationError, match="glibc"):
        spec(glibc=glibc)


def test_a_target_always_has_one() -> None:
    wanted = WantedTarget(python="3.12", arch="aarch64", tools=("gcc",), driver="570.1")
    target = wanted.with_glibc("2.31")
    assert (target.glibc, target.arch, target.tools, target.driver) == (
        "2.31", "aarch64", ("gcc",), "570.1",
    )  # fmt: skip
    assert target.with_glibc("2.35").glibc == "2.35"
    for glibc in ({}, {"glibc": "auto"}):
        with pytest.raises(ValidationError, match="glibc"):
            Target.model_validate({"python": "3.12", **glibc})
