"""Resolving against the real package index, as it is configured on this host."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bundler import wiring
from bundler.build.toolwheel import write_tool_wheel
from bundler.cli.console import SilentProgress
from bundler.domain.lock import LockedWheel
from bundler.domain.target import Target
from bundler.errors import ResolveError
from bundler.ports import WheelRequest

pytestmark = pytest.mark.index
MANIFESTS = Path(__file__).parents[2] / "manifests"


def resolve(request: WheelRequest) -> tuple[LockedWheel, ...]:
    return wiring.build_tools("vllm", SilentProgress()).resolver.resolve(request)


def test_the_cuda_closure_of_vllm_0_17_1_for_a_foreign_target() -> None:
    spec = MANIFESTS / "qwen35-35b-a3b-h200.yaml"
    done = subprocess.run(
        [sys.executable, "-m", "bundler", "plan", spec, "--engine-only", "--json"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["target"] | {"gpus": [], "cuda": None} == {
        "os": "linux", "arch": "x86_64", "python": "3.12", "glibc": "2.31", "cuda": None, "gpus": [],
    }  # fmt: skip
    engine = plan["engine"]
    # Loose dependencies drift: 184 wheels and 4.8 GiB on 2026-12-01.
    assert 165 <= engine["count"] <= 205
    assert 4.4 <= engine["bytes"] / 2**30 <= 5.3
    assert engine["unknown_sizes"] == 0
    wheels = {wheel["name"]: wheel["filename"] for wheel in engine["wheels"]}
    assert all(name.endswith(".whl") for name in wheels.values())
    assert wheels["vllm"].startswith("vllm-0.17.1-")
    assert "cp312" in wheels["torch"]


def test_the_closed_halfs_own_closure_exists_for_ubuntu_22_04() -> None:
    with tempfile.TemporaryDirectory() as folder:
        wheel = write_tool_wheel(Path(folder))
        closure = resolve(
            WheelRequest(
                requirements=("airbundle",),
                target=Target(python="3.10", glibc="2.35"),
                find_links=(wheel.parent,),
            )
        )
    names = {wheel.name for wheel in closure}
    assert {"airbundle", "uv", "cryptography", "pydantic-core", "aiohttp", "xxhash"} <= names
    # The connected half's clients do not cross.
    assert not {"huggingface-hub", "pip-tools", "requests"} & names
    natives = [w.filename for w in closure if "none-any" not in w.filename]
    assert all(any(tag in name for tag in ("cp310", "abi3", "py3-none")) for name in natives), (
        natives
    )


def test_markers_are_those_of_the_target_not_of_this_host() -> None:
    closure = resolve(WheelRequest(("pytest",), Target(python="3.10", glibc="2.28")))
    assert {"exceptiongroup", "tomli"} <= {wheel.name for wheel in closure}
    closure = resolve(WheelRequest(("jaraco.context",), Target(python="3.12", glibc="2.28")))
    assert "backports-tarfile" not in {wheel.name for wheel in closure}


@pytest.mark.parametrize(
    ("requirement", "target", "what"),
    [
        (
            "vllm==0.17.1",
            Target(python="3.14", glibc="2.31"),
            "the index has no wheel for linux x86_64",
        ),
        (
            "vllm==0.17.1",
            Target(python="3.12", glibc="2.28"),
            r"vllm==0\.17\.1: the index has no wheel",
        ),
        (
            "docopt==0.6.2",
            Target(python="3.12", glibc="2.31"),
            r"docopt==0\.6\.2: the index has no wheel",
        ),
        (
            "airbundle-no-such-package==1",
            Target(python="3.12", glibc="2.31"),
            "airbundle-no-such-package",
        ),
    ],
)
def test_an_index_without_a_wheel_for_the_target_is_one_line(
    requirement: str, target: Target, what: str
) -> None:
    with pytest.raises(ResolveError, match=what) as caught:
        resolve(WheelRequest((requirement,), target))
    assert "\n" not in str(caught.value)
    assert caught.value.hint
