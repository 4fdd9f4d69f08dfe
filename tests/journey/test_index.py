"""Resolving against the real package index, as it is configured on this host."""

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import pytest

from bundler import connecting
from bundler.build.floor import at_lowest_floor
from bundler.build.toolwheel import write_tool_wheel
from bundler.cli.console import SilentProgress
from bundler.domain.lock import LockedWheel
from bundler.domain.sources import EngineRef, IndexRef
from bundler.domain.target import Target, WantedTarget
from bundler.errors import ResolveError
from bundler.ports import WheelRequest, WheelResolver
from tests.fakes.simple_index import serving
from tests.fakes.wheels import make_wheel

Arch = Literal["x86_64", "aarch64"]
pytestmark = pytest.mark.index
MANIFESTS = Path(__file__).parents[2] / "manifests"


def resolve(request: WheelRequest) -> tuple[LockedWheel, ...]:
    return a_resolver().resolve(request)


def a_resolver(kind: Literal["uv", "pip-tools"] = "uv") -> WheelResolver:
    engine = EngineRef(name="vllm", version="0.17.1", resolver=kind)
    with tempfile.TemporaryDirectory() as folder:
        return connecting.build_tools(engine, SilentProgress(), Path(folder)).resolver


def test_the_cuda_closure_of_vllm_0_17_1_for_a_foreign_target() -> None:
    spec = MANIFESTS / "qwen35-35b-a3b-h200.yaml"
    done = subprocess.run(
        [sys.executable, "-m", "bundler", "plan", spec, "--engine-only", "--json"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    target = Target.model_validate(plan["target"])
    assert (target.arch, target.python, target.glibc) == ("x86_64", "3.12", "2.31")
    engine = plan["engine"]
    # Loose dependencies drift: 184 wheels and 4.8 GiB on 2026-12-01.
    assert 165 <= engine["count"] <= 205
    assert 4.4 <= engine["bytes"] / 2**30 <= 5.3
    assert engine["unknown_sizes"] == 0
    wheels = {wheel["name"]: wheel["filename"] for wheel in engine["wheels"]}
    assert all(name.endswith(".whl") for name in wheels.values())
    assert wheels["vllm"].startswith("vllm-0.17.1-")
    assert "cp312" in wheels["torch"]


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_the_newest_vllm_resolves_at_the_lowest_glibc_that_admits_it(arch: Arch) -> None:
    ask = a_resolver()
    newest = Target(python="3.12", glibc="2.40", arch=arch)
    version = next(
        w.version for w in ask.resolve(WheelRequest(("vllm",), newest)) if w.name == "vllm"
    )
    target, closure = at_lowest_floor(
        lambda target: ask.resolve(WheelRequest((f"vllm=={version}",), target)),
        WantedTarget(python="3.12", arch=arch),
        ask.floors,
    )
    size = sum(map(size_of, closure)) / 2**30
    print(f"vllm {version} {arch} glibc {target.glibc}: {len(closure)} wheels, {size:.2f} GiB")
    assert target.glibc in ask.floors
    assert 120 <= len(closure) <= 260
    assert 0.5 <= size <= 12
    assert all(arch in w.filename or "-any.whl" in w.filename for w in closure)


def size_of(wheel: LockedWheel) -> int:
    """find-links and file: indexes state none."""
    if wheel.size is None:
        return Path(unquote(urlsplit(wheel.url).path)).stat().st_size
    return wheel.size


def test_a_cuda_129_index_serves_what_is_pinned_to_it_alone(tmp_path: Path) -> None:
    """The attack: the pinned package's name with a higher version on the host's own index."""
    make_wheel(tmp_path / "second", "iniconfig", "0.0.1+cu129", {})
    make_wheel(tmp_path / "second", "packaging", "999", {})
    with serving(tmp_path / "second") as second:
        pinned = IndexRef(url=second.url, packages=("iniconfig",))
        target = Target(python="3.12", glibc="2.28")
        with pytest.raises(ResolveError, match="pytest"):
            # It wants iniconfig>=1: better none than the other index's.
            resolve(WheelRequest(("pytest==8.4.1",), target, indexes=(pinned,)))
        make_wheel(tmp_path / "second", "iniconfig", "1.5+cu129", {})
        closure = resolve(WheelRequest(("pytest==8.4.1",), target, indexes=(pinned,)))
    versions = {wheel.name: wheel.version for wheel in closure}
    assert versions["iniconfig"] == "1.5+cu129"
    assert versions["packaging"] != "999"


def test_docopt_is_built_when_that_is_allowed_and_is_the_same_when_kept(tmp_path: Path) -> None:
    request = WheelRequest(
        ("docopt==0.6.2",), Target(python="3.13", glibc="2.28", arch="aarch64"),
        build_sdists=True, built_into=tmp_path / "built",
    )  # fmt: skip
    (first,) = resolve(request)
    assert first.built
    assert first.filename == "docopt-0.6.2-py2.py3-none-any.whl"
    (again,) = resolve(request)
    assert again == first
    # Another cache, another build: the same bytes, as its build tool honours SOURCE_DATE_EPOCH.
    (elsewhere,) = resolve(replace(request, built_into=tmp_path / "other"))
    assert elsewhere.sha256 == first.sha256


def test_several_packages_that_exist_as_source_alone_are_all_named() -> None:
    wanted = ("docopt==0.6.2", "wget==3.2", "iniconfig")
    with pytest.raises(ResolveError, match=r"docopt==0\.6\.2, wget==3\.2: the index has no wheel"):
        resolve(WheelRequest(wanted, Target(python="3.12", glibc="2.28")))


def test_nothing_newer_than_a_date() -> None:
    target = Target(python="3.12", glibc="2.28")
    closure = resolve(WheelRequest(("packaging",), target, exclude_newer="2025-01-01"))
    assert all((wheel.uploaded or "") < "2025-01-02" for wheel in closure)


def test_pip_tools_gives_the_versions_that_uv_gives() -> None:
    host = connecting._this_host()
    assert host is not None
    request = WheelRequest(("pytest", "rich"), host)
    other = a_resolver("pip-tools")
    assert [(w.name, w.version) for w in other.resolve(request)] == [
        (w.name, w.version) for w in resolve(request)
    ]


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
            "numba==.* the index has no wheel for linux x86_64",
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
