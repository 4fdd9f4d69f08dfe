"""Objects that lie, and objects as linkers and strippers leave them: real ones from gcc, then bent."""

from __future__ import annotations

import contextlib
import io
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundler.build import elf
from bundler.build.elf import read_wheel
from bundler.build.elfobject import read_object
from bundler.build.native import judge_native, read_native
from bundler.build.recall import Recall
from bundler.cli.console import SilentProgress
from bundler.domain.lock import LockedWheel
from bundler.domain.native import WheelNeeds
from bundler.domain.target import Target
from bundler.errors import IntegrityError, SpaceError
from bundler.format.digests import sha256_hex

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")
PROGRAM_HEADER = 56  # bytes, of a 64-bit object


class Compiled(bytes):
    """An object, which a report of hypothesis need not print."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"


def compiled(folder: Path, name: str, source: str, *flags: str) -> bytes:
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", folder / name, "-xc", "-", "-xnone", *flags],
        input=source, text=True, check=True,
    )  # fmt: skip
    return Compiled((folder / name).read_bytes())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("elf")


@pytest.fixture(scope="module")
def needy(folder: Path) -> bytes:
    """Needs GLIBC_2.77 and GLIBCXX_3.4.77 of a made-up library, and has a name of its own."""
    script = folder / "v.map"
    script.write_text("GLIBC_2.77 { global: a; };\nGLIBCXX_3.4.77 { global: b; };\n")
    compiled(
        folder, "libmade.so.1", "int a(void){return 1;} int b(void){return 2;}",
        "-Wl,-soname,libmade.so.1", f"-Wl,--version-script={script}",
    )  # fmt: skip
    return compiled(
        folder, "needy.so", "int a(void); int b(void); int c(void){return a()+b();}",
        "-Wl,-soname,libneedy.so.3", str(folder / "libmade.so.1"),
    )  # fmt: skip


def packed(folder: Path, files: dict[str, bytes], name: str = "x-1.0-py3-none-any.whl") -> Path:
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, data in files.items():
            archive.writestr(key, data)
    return folder / name


def read(folder: Path, data: bytes, name: str = "a.so") -> WheelNeeds:
    return read_wheel(packed(folder, {name: data}), "x86_64", folder)


def program_headers(data: bytes) -> dict[int, int]:
    """Segment type -> offset of its header."""
    start, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    places = [start + PROGRAM_HEADER * number for number in range(count)]
    return {struct.unpack_from("<I", data, at)[0]: at for at in places}


def test_needs_are_those_of_the_loader(tmp_path: Path, needy: bytes) -> None:
    found = read(tmp_path, needy)
    assert found.newest["GLIBC"].version == "2.77"
    assert found.newest["GLIBCXX"].version == "3.4.77"
    assert set(found.provided) == {"a.so", "libneedy.so.3"}
    assert "libmade.so.1" in found.needed


def test_an_object_without_sections_is_read_as_well(tmp_path: Path, needy: bytes) -> None:
    data = bytearray(needy)
    struct.pack_into("<Q", data, 40, 0)
    struct.pack_into("<HHH", data, 58, 0, 0, 0)
    assert read(tmp_path, bytes(data)) == read(tmp_path, needy)


def test_this_python_is_read_as_readelf_reads_it() -> None:
    data = Path(sys.executable).read_bytes()
    shown = subprocess.run(
        ["readelf", "-dW", sys.executable], capture_output=True, text=True, check=True
    ).stdout
    read = read_object(io.BytesIO(data), "x86_64" if data[18] == 62 else "aarch64", lambda: None)
    assert read is not None
    wanted = [line.split("[")[1].rstrip("]") for line in shown.splitlines() if "(NEEDED)" in line]
    assert list(read.libraries) == wanted


def test_a_version_that_only_weak_symbols_want_is_no_need(tmp_path: Path, needy: bytes) -> None:
    data = bytearray(needy)
    # vna_hash, vna_flags: the hash is ELF's own of the name.
    at = data.index(struct.pack("<I", elf_hash("GLIBC_2.77")))
    struct.pack_into("<H", data, at + 4, 2)
    found = read(tmp_path, bytes(data))
    assert "GLIBC" not in found.newest or found.newest["GLIBC"].version != "2.77"
    assert found.newest["GLIBCXX"].version == "3.4.77"


def elf_hash(name: str) -> int:
    value = 0
    for letter in name.encode():
        value = (value << 4) + letter
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high
    return value


def test_packed_relocations_need_glibc_2_36(tmp_path: Path, folder: Path) -> None:
    data = compiled(
        folder, "relr.so", "int abs(int); int x; int *p[] = {&x,&x,&x}; int (*q)(int) = abs;",
        "-Wl,-z,pack-relative-relocs",
    )  # fmt: skip
    if b"GLIBC_ABI_DT_RELR" not in data:
        pytest.skip("this linker does not know -z pack-relative-relocs")
    assert read(tmp_path, data).newest["GLIBC"].version == "2.36"


def test_a_renamed_libstdcxx_is_the_wheel_s_own(tmp_path: Path, folder: Path, needy: bytes) -> None:
    script = folder / "v.map"
    compiled(
        folder, "libstdc++-1b2c3d4e.so.6", "int a(void){return 1;} int b(void){return 2;}",
        "-Wl,-soname,libstdc++-1b2c3d4e.so.6", f"-Wl,--version-script={script}",
    )  # fmt: skip
    data = compiled(
        folder, "own.so", "int b(void); int c(void){return b();}",
        str(folder / "libstdc++-1b2c3d4e.so.6"),
    )  # fmt: skip
    assert "GLIBCXX" not in read(tmp_path, data).newest


def endless_dynamic(data: bytearray) -> None:
    at = program_headers(data)[2]
    data.extend(bytes(-len(data) % 8))
    count = 800_000
    struct.pack_into("<Q", data, at + 8, len(data))
    struct.pack_into("<Q", data, at + 32, 16 * count)
    data.extend(struct.pack("<QQ", 0x6FFFFEF0, 1) * count)


def many_segments(data: bytearray) -> None:
    struct.pack_into("<Q", data, 32, program_headers(data)[2])
    struct.pack_into("<HH", data, 54, 0, 60_000)


def one_segment_over_and_over(data: bytearray) -> None:
    struct.pack_into("<Q", data, 32, program_headers(data)[2])
    struct.pack_into("<HH", data, 54, 0, 500)


def table_behind_the_end(data: bytearray) -> None:
    struct.pack_into("<Q", data, program_headers(data)[2] + 8, 2**62)


def nowhere_loaded(data: bytearray) -> None:
    start, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    for number in range(count):
        if struct.unpack_from("<I", data, start + PROGRAM_HEADER * number)[0] == 1:
            struct.pack_into("<Q", data, start + PROGRAM_HEADER * number + 16, 2**40)


@pytest.mark.parametrize(
    ("bend", "words"),
    [
        (endless_dynamic, "over 2000 entries"),
        (many_segments, "60000 segments"),
        (one_segment_over_and_over, "segment headers of 0 bytes"),
        (table_behind_the_end, "its tables"),
        (nowhere_loaded, "outside of what is loaded"),
    ],
)
def test_a_table_that_lies_is_named_and_soon_left(
    tmp_path: Path,
    needy: bytes,
    monkeypatch: pytest.MonkeyPatch,
    bend: Callable[[bytearray], None],
    words: str,
) -> None:
    monkeypatch.setattr(elf, "_MAX_ENTRIES", 2000)
    data = bytearray(needy)
    bend(data)
    assert words in read(tmp_path, bytes(data)).unreadable["a.so"]


def test_an_object_that_would_fill_the_disk_is_not_unpacked(
    tmp_path: Path, needy: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elf, "_MAX_BYTES", len(needy) + 10)
    found = read_wheel(packed(tmp_path, {"a.so": needy, "b.so": needy}), "x86_64", tmp_path)
    assert list(found.unreadable) == ["b.so"]
    assert "of a wheel are read" in found.unreadable["b.so"]


def test_a_full_disk_is_said_so(
    tmp_path: Path, needy: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    full = Path("/dev/full").open("r+b", buffering=0)  # noqa: SIM115 - closed by what is tested
    monkeypatch.setattr("tempfile.SpooledTemporaryFile", lambda **_: full)
    with pytest.raises(SpaceError, match="writing below"):
        read(tmp_path, needy)


@pytest.mark.parametrize("name", ["a\x1b[2J\n.so", "a" * 3000 + ".so", "\u202eos.a"])
def test_names_from_strangers_cross_the_gap_harmlessly(
    tmp_path: Path, needy: bytes, name: str
) -> None:
    path = packed(tmp_path, {name: needy})
    wheel = LockedWheel(
        name="x", version="1", filename=path.name, url=path.as_uri(),
        sha256=sha256_hex(path.read_bytes()),
    )  # fmt: skip
    native = read_native(
        [wheel], "x86_64", lambda _: path, Recall(tmp_path / "facts"), SilentProgress()
    )
    who = native.needs.because["glibc"]
    assert who.isprintable()
    assert len(who) < 400
    assert [item.code for item in judge_native(native, Target(python="3.12", glibc="2.31"))] == [
        "glibc-too-old",
        "library-missing",
    ]


@pytest.mark.parametrize(
    "version", ["GLIBC_1.2.3.4.5.6.7", "GLIBC_\u0663.\u0664", "GLIBC_999999.1"]
)
def test_a_version_that_is_none_is_left_out(tmp_path: Path, folder: Path, version: str) -> None:
    real = "GLIBC_" + "7" * (len(version.encode()) - 6)
    script = folder / "odd.map"
    script.write_text(real + " { global: odd; };\n")
    compiled(
        folder, "libodd.so", "int odd(void){return 1;}", "-Wl,-soname,libodd.so",
        f"-Wl,--version-script={script}",
    )  # fmt: skip
    source = "int odd(void); int f(void){return odd();}"
    data = compiled(folder, "odd.so", source, str(folder / "libodd.so"))
    assert real.encode() in data
    found = read(tmp_path, data.replace(real.encode(), version.encode()))
    assert not found.unreadable
    # What is left, if anything, is the C library's own.
    assert "GLIBC" not in found.newest or found.newest["GLIBC"].version.startswith("2.")


@pytest.mark.parametrize("cut", [4, 16, 63, 64, 100, 500, 2000])
def test_a_truncated_object_is_unreadable_or_empty(tmp_path: Path, needy: bytes, cut: int) -> None:
    found = read(tmp_path, needy[:cut])
    assert found.unreadable
    assert not found.newest


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    changes=st.lists(
        st.tuples(st.integers(4, 20_000), st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF])),
        min_size=1,
        max_size=12,
    ),
    in_tables=st.booleans(),
)
def test_bent_objects_end_in_a_record_soon(
    tmp_path: Path, needy: bytes, changes: list[tuple[int, int]], in_tables: bool
) -> None:
    data = bytearray(needy)
    # Most of a small object is padding; its headers and dynamic tables are where lies matter.
    reach = 1400 if in_tables else len(data)
    for at, value in changes:
        data[4 + at % (reach - 4)] = value
    assert isinstance(read(tmp_path, bytes(data)), WheelNeeds)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=6))
def test_bent_archives_end_in_a_record_or_a_named_error(
    tmp_path: Path, needy: bytes, changes: list[tuple[int, int]]
) -> None:
    path = packed(tmp_path, {"a.so": needy[:600], "b": b"text", "c.so": needy[:100]})
    data = bytearray(path.read_bytes())
    for at, value in changes:
        data[at % len(data)] = value
    path.write_bytes(data)
    # Anything but this error, or a warning, fails the test.
    with contextlib.suppress(IntegrityError):
        assert isinstance(read_wheel(path, "x86_64", tmp_path), WheelNeeds)
