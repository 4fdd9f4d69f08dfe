"""Real shared objects, made with gcc here: what they need is read from their own tables."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundler.build.elf import read_wheel
from bundler.build.native import Native, judge_native, read_native
from bundler.build.recall import Recall
from bundler.cli.console import SilentProgress
from bundler.domain.findings import Finding, Level
from bundler.domain.lock import LockedWheel
from bundler.domain.native import WheelNeeds
from bundler.domain.needs import HostNeeds
from bundler.domain.target import Target
from bundler.errors import IntegrityError
from bundler.format.digests import sha256_hex
from tests.fakes.wheels import make_wheel

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")


def compile_object(folder: Path, name: str, source: str, *flags: str) -> bytes:
    path = folder / name
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", path, "-xc", "-", "-xnone", *flags],
        input=source, text=True, check=True,
    )  # fmt: skip
    return path.read_bytes()


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A plain one, one that needs a made-up new glibc-like version, one that another brings."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here")
    folder = tmp_path_factory.mktemp("objects")
    script = folder / "new.map"
    script.write_text("GLIBC_2.99 { global: future; };\nCXXABI_1.3.77 { global: later; };\n")
    (folder / "libfuture.so.7").write_bytes(
        compile_object(
            folder, "libfuture.so.7", "int future(void){return 1;} int later(void){return 2;}",
            "-Wl,-soname,libfuture.so.7", f"-Wl,--version-script={script}",
        )
    )  # fmt: skip
    return {
        "plain.so": compile_object(folder, "plain.so", "#include <stdlib.h>\nint f(void){return abs(rand());}"),
        "needy.so": compile_object(
            folder, "needy.so",
            "int future(void); int later(void); int g(void){return future()+later();}",
            str(folder / "libfuture.so.7"),
        ),
        "libfuture.so.7": (folder / "libfuture.so.7").read_bytes(),
    }  # fmt: skip


def wheel(folder: Path, name: str, files: dict[str, bytes]) -> Path:
    return make_wheel(folder, name, "1.0", {f"{name}/{key}": data for key, data in files.items()})


def locked(path: Path, name: str = "") -> LockedWheel:
    return LockedWheel(
        name=name or path.name.split("-")[0], version="12.8.90", filename=path.name,
        url=path.as_uri(), sha256=sha256_hex(path.read_bytes()),
    )  # fmt: skip


def read(paths: list[Path], folder: Path, *, absent: int = 0) -> Native:
    wheels = {locked(path): path for path in paths}
    here = dict(list(wheels.items())[: len(wheels) - absent])
    return read_native(list(wheels), "x86_64", here.get, Recall(folder / "facts"), SilentProgress())


def test_what_an_object_needs_is_read_from_it(tmp_path: Path, objects: dict[str, bytes]) -> None:
    path = wheel(tmp_path, "needy", {"needy.so": objects["needy.so"], "note.so": b"no object"})
    found = read_wheel(path, "x86_64", tmp_path)
    assert found.objects == 1
    assert found.newest["GLIBC"].version == "2.99"
    assert found.newest["GLIBC"].object == "needy/needy.so"
    assert found.newest["CXXABI"].version == "1.3.77"
    assert found.needed["libfuture.so.7"] == "needy/needy.so"
    assert not found.unreadable


def test_what_another_wheel_brings_is_not_asked_of_the_host(
    tmp_path: Path, objects: dict[str, bytes]
) -> None:
    needy = wheel(tmp_path, "needy", {"needy.so": objects["needy.so"]})
    future = wheel(tmp_path, "future", {"lib/libfuture.so.7": objects["libfuture.so.7"]})
    alone = read([needy], tmp_path)
    assert alone.strangers == {"libfuture.so.7": f"{needy.name}: needy/needy.so"}
    # No system has it: likely a plugin's, and no requirement on the host.
    assert alone.needs.libraries == ()
    assert not read([needy, future], tmp_path).strangers
    both = read([needy, future], tmp_path).needs
    assert both.libraries == ()
    assert both.checked
    assert both.because["glibc"] == f"{needy.name}: needy/needy.so"


def findings(native: Native, **target: object) -> dict[str, Finding]:
    host = Target.model_validate({"python": "3.12", "glibc": "2.31", **target})
    return {item.code: item for item in judge_native(native, host)}


def test_a_glibc_that_is_too_old_is_named_with_the_object(
    tmp_path: Path, objects: dict[str, bytes]
) -> None:
    found = findings(read([wheel(tmp_path, "needy", {"n.so": objects["needy.so"]})], tmp_path))
    assert found["glibc-too-old"].what.endswith("needs glibc 2.99, the target has 2.31")
    assert "needy-1.0" in found["glibc-too-old"].what
    assert found["library-missing"].subject == "libfuture.so.7"


def test_a_system_s_library_is_a_requirement_with_its_package(
    tmp_path: Path, objects: dict[str, bytes]
) -> None:
    data = objects["needy.so"].replace(b"libfuture.so.7", b"libnuma.so.1\0\0")
    native = read([wheel(tmp_path, "numa", {"n.so": data})], tmp_path)
    assert native.needs.libraries == ("libnuma.so.1",)
    assert (
        "libnuma1 (Debian, Ubuntu) or numactl-libs (RHEL)"
        in findings(native)["library-missing"].fix
    )


def test_a_plain_object_is_fine_on_an_old_host(tmp_path: Path, objects: dict[str, bytes]) -> None:
    assert not findings(read([wheel(tmp_path, "p", {"p.so": objects["plain.so"]})], tmp_path))


def test_an_object_for_another_processor(tmp_path: Path, objects: dict[str, bytes]) -> None:
    data = bytearray(objects["plain.so"])
    data[18:20] = (183).to_bytes(2, "little")  # e_machine: EM_AARCH64
    found = findings(read([wheel(tmp_path, "arm", {"p.so": bytes(data)})], tmp_path))
    assert "is for aarch64, the target is x86_64" in found["object-foreign"].what


def test_stubs_for_other_processors_beside_the_target_s_own_are_fine(
    tmp_path: Path, objects: dict[str, bytes]
) -> None:
    # As in nvidia-cutlass-dsl-libs, which carries stubs to link against for other systems.
    data = bytearray(objects["plain.so"])
    data[18:20] = (183).to_bytes(2, "little")
    both = {"own.so": objects["plain.so"], "stubs/arm.so": bytes(data)}
    found = findings(read([wheel(tmp_path, "mixed", both)], tmp_path))
    # Said, since one of them might be meant to be loaded, but no obstacle.
    assert [(item.code, item.level) for item in found.values()] == [("object-foreign", Level.NOTE)]
    assert "1 of its 2 objects" in found["object-foreign"].what
    assert "mixed/stubs/arm.so, for aarch64" in found["object-foreign"].what


def test_a_foreign_stub_brings_no_library(tmp_path: Path, objects: dict[str, bytes]) -> None:
    stub = bytearray(objects["libfuture.so.7"])
    stub[18:20] = (183).to_bytes(2, "little")
    both = {"n.so": objects["needy.so"], "arm/libfuture.so.7": bytes(stub)}
    assert set(read([wheel(tmp_path, "stub", both)], tmp_path).strangers) == {"libfuture.so.7"}


@pytest.mark.parametrize("machine", [190, 224, 247])
def test_code_for_gpus_and_the_kernel_is_no_foreign_object(
    tmp_path: Path, objects: dict[str, bytes], machine: int
) -> None:
    data = bytearray(objects["plain.so"])
    data[18:20] = machine.to_bytes(2, "little")
    native = read([wheel(tmp_path, "kernels", {"k.bin": bytes(data)})], tmp_path)
    assert not findings(native)
    assert native.needs.objects == 0


def test_an_object_of_32_bit_is_foreign(tmp_path: Path) -> None:
    # A header is enough: nothing else of a foreign object is read.
    header = (
        b"\x7fELF\x01\x01\x01" + bytes(9) + (3).to_bytes(2, "little") + (62).to_bytes(2, "little")
    )
    path = wheel(tmp_path, "x32", {"a.so": header + bytes(200)})
    assert "is for x86_64, 32 bit" in findings(read([path], tmp_path))["object-foreign"].what


def test_an_object_that_cannot_be_read(tmp_path: Path, objects: dict[str, bytes]) -> None:
    path = wheel(tmp_path, "cut", {"p.so": objects["plain.so"][:200]})
    assert set(findings(read([path], tmp_path))) == {"object-unreadable"}


def test_what_is_not_here_is_not_judged(tmp_path: Path, objects: dict[str, bytes]) -> None:
    needy = wheel(tmp_path, "needy", {"needy.so": objects["needy.so"]})
    other = wheel(tmp_path, "other", {"p.so": objects["plain.so"]})
    native = read([needy, other], tmp_path, absent=1)
    assert not native.needs.checked
    # The absent wheel may bring the library, but never an older glibc.
    assert set(findings(native)) == {"glibc-too-old", "native-unread"}


def test_a_wheel_is_read_once(
    tmp_path: Path, objects: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = wheel(tmp_path, "needy", {"needy.so": objects["needy.so"]})
    first = read([path], tmp_path).needs
    monkeypatch.setattr("bundler.build.native.read_wheel", lambda *_: pytest.fail("read again"))
    assert read([path], tmp_path).needs == first


def test_a_broken_wheel_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x-1.0-py3-none-any.whl"
    path.write_bytes(b"no zip")
    with pytest.raises(IntegrityError, match="is no wheel"):
        read_wheel(path, "x86_64", tmp_path)


def driver(target: dict[str, object], runtime: str = "13.0") -> dict[str, Finding]:
    needs = HostNeeds(
        checked=True, cuda_runtime=runtime, driver="580.65.06" if runtime > "13" else "525.60.13"
    )
    return findings(Native(needs, {}, {}, 0), **target)  # fmt: skip


def test_drivers() -> None:
    assert driver({"cuda": "12.8"})["cuda-too-old"].level is Level.ERROR
    assert "which runs CUDA 12.8" in driver({"driver": "570.124.06"})["cuda-too-old"].what
    assert set(driver({})) == {"driver-needed"}
    assert driver({"driver": "580.65.06"}) == {}
    assert driver({"driver": "610.43.02"}, runtime="13.3") == {}


@pytest.mark.parametrize("stated", [{"cuda": "12.2"}, {"driver": "535.183.01"}])
def test_a_driver_of_the_same_major_release_runs_every_minor_one(stated: dict[str, object]) -> None:
    found = driver(stated, runtime="12.8")
    assert {code: item.level for code, item in found.items()} == {"cuda-minor": Level.NOTE}
    assert found["cuda-minor"].what == "CUDA runtime 12.8 on a driver for CUDA 12.2"
    assert driver({"cuda": "12.8"}, runtime="12.8") == {}


def test_cuda_compat_bridges_a_major_release_on_data_center_gpus_only() -> None:
    old = {"cuda": "12.8", "tools": ["cuda-compat"]}
    assert driver(old)["cuda-too-old"].level is Level.WARNING
    assert driver(old | {"gpus": [{"model": "NVIDIA H200"}]})["cuda-too-old"].level is Level.WARNING
    found = driver(old | {"gpus": [{"model": "RTX 4090"}]})["cuda-too-old"]
    assert found.level is Level.ERROR
    assert "cuda-compat does not work on NVIDIA GeForce RTX 4090" in found.what


@pytest.mark.parametrize("stated", [{"cuda": "12.4"}, {"driver": "550.54.15"}])
def test_a_driver_that_is_older_than_the_gpu(stated: dict[str, object]) -> None:
    blackwell = {"gpus": [{"model": "NVIDIA B200"}], "tools": ["cuda-compat"]}
    found = driver(stated | blackwell, runtime="12.8")
    assert found["cuda-too-old"].level is Level.ERROR
    assert "NVIDIA B200 needs an NVIDIA driver 570 or newer" in found["cuda-too-old"].what
    hopper = {"gpus": [{"model": "NVIDIA H200"}]}
    assert set(driver(stated | hopper, runtime="12.8")) == {"cuda-minor"}
    assert driver({"driver": "570.86.10"} | blackwell, runtime="12.8") == {}


def test_an_object_that_links_the_driver_needs_one(
    tmp_path: Path, objects: dict[str, bytes]
) -> None:
    data = objects["needy.so"].replace(b"libfuture.so.7", b"libcuda.so.1\0\0")
    native = read([wheel(tmp_path, "cu", {"n.so": data})], tmp_path)
    assert native.needs.libraries == ()
    found = findings(native, glibc="2.99")
    assert set(found) == {"driver-needed"}
    assert "cu/n.so needs libcuda.so.1" in found["driver-needed"].what
    assert not findings(native, glibc="2.99", driver="550.54.15")


def test_what_the_wheel_s_tag_promised_is_said(tmp_path: Path, objects: dict[str, bytes]) -> None:
    path = make_wheel(
        tmp_path,
        "low",
        "1.0",
        {"n.so": objects["needy.so"]},
        tag="cp312-cp312-manylinux_2_17_x86_64",
    )
    what = findings(read([path], tmp_path))["glibc-too-old"].what
    assert what.endswith("the target has 2.31; the wheel's file name promises 2.17")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(at=st.integers(0, 16_000), noise=st.binary(min_size=1, max_size=40), cut=st.booleans())
def test_no_object_ends_in_anything_but_a_record(
    tmp_path: Path, objects: dict[str, bytes], at: int, noise: bytes, cut: bool
) -> None:
    good = objects["needy.so"]
    data = good[:4] + (good[4:at] + noise + (b"" if cut else good[at + len(noise) :]))
    path = wheel(tmp_path / "fuzz", "fuzz", {"p.so": data})
    assert isinstance(read_wheel(path, "x86_64", tmp_path), WheelNeeds)
