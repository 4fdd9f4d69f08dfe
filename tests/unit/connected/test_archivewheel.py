"""Ollama's archive becomes a wheel: always the same, installable, nothing but Ollama in it."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bundler import wiring
from bundler.adapters.fetch_http.download import HttpDownloader
from bundler.build.archivewheel import Source, canonical, write_archive_wheel
from bundler.build.elf import read_wheel
from bundler.build.enginearchive import ArchiveWheels
from bundler.build.pipeline import make_lock
from bundler.build.store import ContentStore
from bundler.build.unpacking import unpack
from bundler.cli.console import SilentProgress
from bundler.domain.hostindex import HostIndex
from bundler.domain.sources import ArchiveRef
from bundler.errors import IntegrityError, SourceError, SpecError
from bundler.format.digests import sha256_hex
from bundler.format.requirements import addressed_requirements_text
from tests.fakes.ollama_release import OllamaBundle, release
from tests.fakes.simple_index import serving

DATA = "ollama_runtime-0.33.0.data/data"


def wheel_of(folder: Path, data: bytes, arch: str = "x86_64") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "ollama.tgz"
    archive.write_bytes(data)
    (folder / "files").mkdir(exist_ok=True)
    unpacked = unpack(archive, folder / "files")
    source = Source("0.33.0", arch, sha256_hex(data))
    return write_archive_wheel(unpacked, source, folder, lambda _: None)


def maker(tmp_path: Path, cache: str = "cache") -> ArchiveWheels:
    store = ContentStore(tmp_path / cache)
    return ArchiveWheels(store, HttpDownloader(HostIndex()), SilentProgress(), tmp_path)


def test_the_same_archive_gives_the_same_bytes_and_uv_installs_them(tmp_path: Path) -> None:
    one, other = (wheel_of(tmp_path / name, release("tgz")) for name in "ab")
    assert one.name == other.name == "ollama_runtime-0.33.0-py3-none-manylinux_2_17_x86_64.whl"
    assert one.read_bytes() == other.read_bytes()
    uv, venv = wiring.uv_program(), tmp_path / "venv"
    for words in (
        ["venv", "--offline", "--no-config", "--python", sys.executable, str(venv)],
        [
            "pip",
            "install",
            "--offline",
            "--no-config",
            "--no-index",
            "--python",
            str(venv),
            str(one),
        ],
    ):
        subprocess.run(
            [uv, *words, "--cache-dir", str(tmp_path / "uv")], check=True, capture_output=True
        )
    program = venv / "bin" / "ollama"
    assert program.stat().st_mode & stat.S_IXUSR
    assert (venv / "lib/ollama/llama-server").stat().st_mode & stat.S_IXUSR
    assert not (venv / "lib/ollama/cuda_v12/text.txt").stat().st_mode & stat.S_IXUSR
    # A link that no loader asks for by a SONAME is a copy.
    assert (venv / "lib/ollama/copy.txt").read_bytes() == b"text\n"


def test_what_became_of_links_and_where_it_is_from_stands_in_the_wheel(tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel_of(tmp_path, release("tgz"))) as wheel:
        links = wheel.read("ollama_runtime-0.33.0.dist-info/LINKS").decode()
        metadata = wheel.read("ollama_runtime-0.33.0.dist-info/METADATA").decode()
    assert "lib/ollama/copy.txt: holds the bytes of lib/ollama/cuda_v12/text.txt\n" in links
    assert sha256_hex(release("tgz")) in metadata
    assert "NVIDIA" in metadata


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")
def test_an_object_is_stored_once_under_the_name_that_the_loader_asks_for(tmp_path: Path) -> None:
    built = tmp_path / "libcu.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", built, "-xc", "-", "-Wl,-soname,libcu.so.12"],
        input="int a(void){return 1;}", text=True, check=True,
    )  # fmt: skip
    changes = {
        "./lib/ollama/cuda_v12/libcu.so.12.8.4": (built.read_bytes(), 0o755),
        "./lib/ollama/cuda_v12/libcu.so.12": (b"->libcu.so.12.8.4", 0o777),
        "./lib/ollama/cuda_v12/libcu.so": (b"->libcu.so.12", 0o777),
        "./lib/ollama/mlx/libcu.so.12": (b"->../cuda_v12/libcu.so.12", 0o777),
    }
    wheel = wheel_of(tmp_path / "w", release("tgz", dict(changes)))
    with zipfile.ZipFile(wheel) as opened:
        names = [n.removeprefix(f"{DATA}/lib/ollama/") for n in opened.namelist() if "libcu" in n]
        links = opened.read("ollama_runtime-0.33.0.dist-info/LINKS").decode()
    # Another folder has its own: the loader looks there, too.
    assert names == ["cuda_v12/libcu.so.12", "mlx/libcu.so.12"]
    assert "cuda_v12/libcu.so.12.8.4: is lib/ollama/cuda_v12/libcu.so.12" in links
    needs = read_wheel(wheel, "x86_64", tmp_path)
    assert "libcu.so.12" in needs.provided
    # The tag promises what the objects ask for.
    assert (
        f"_2_{max(17, int(needs.newest['GLIBC'].version.split('.')[1]) if needs.newest else 17)}_"
        in wheel.name
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"./bin/ollama": None}, "holds no bin/ollama"),
        ({"./bin/python": (b"x", 0o755)}, "bin/python"),
        ({"./lib/python3.11/site-packages/x.pth": (b"x", 0o644)}, "x.pth"),
        ({"./pyvenv.cfg": (b"x", 0o644)}, "pyvenv.cfg"),
        ({"./lib/ollama/a": (b"->../../../x", 0o777)}, "out of the archive"),
    ],
)
def test_nothing_but_ollama_gets_into_the_environment(
    tmp_path: Path, changes: dict[str, tuple[bytes, int] | None], words: str
) -> None:
    with pytest.raises(SourceError, match=words):
        wheel_of(tmp_path, release("tgz", changes))


def test_licences_of_the_archive_travel_with_the_wheel(tmp_path: Path) -> None:
    with zipfile.ZipFile(
        wheel_of(tmp_path, release("tgz", {"./LICENSE": (b"MIT", 0o644)}))
    ) as wheel:
        assert wheel.read("ollama_runtime-0.33.0.dist-info/licenses/LICENSE") == b"MIT"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")
def test_a_program_for_another_processor_is_refused(tmp_path: Path) -> None:
    built = tmp_path / "program"
    subprocess.run(
        ["gcc", "-o", built, "-xc", "-"], input="int main(void){return 0;}", text=True, check=True
    )
    changes = {"./bin/ollama": (built.read_bytes(), 0o755)}
    with pytest.raises(SourceError, match="the target is aarch64"):
        wheel_of(tmp_path / "w", release("tgz", dict(changes)), arch="aarch64")


def test_versions_are_written_as_wheels_write_them() -> None:
    assert canonical("0.33.0-rc2") == "0.33.0rc2"
    with pytest.raises(SpecError, match="no version"):
        canonical("0.33.x")


def test_an_archive_with_another_digest_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "o.tgz").write_bytes(b"anything")
    with pytest.raises(IntegrityError, match=r"engine\.archive"):
        maker(tmp_path).make(ArchiveRef(path="o.tgz", sha256="0" * 64), "0.33.0", "x86_64")
    with pytest.raises(SourceError, match="no such file"):
        maker(tmp_path).make(ArchiveRef(path="gone.tgz", sha256="0" * 64), "0.33.0", "x86_64")
    assert not list((tmp_path / "cache" / "partial").glob("archive-*"))


def test_it_is_made_once_and_another_store_makes_the_same(tmp_path: Path) -> None:
    data = release("tar.zst")
    (tmp_path / "o.tar.zst").write_bytes(data)
    ref = ArchiveRef(path="o.tar.zst", sha256=sha256_hex(data))
    first, archive = maker(tmp_path).make(ref, "0.33.0", "x86_64")
    assert (archive.origin, archive.size, archive.sha256) == ("o.tar.zst", len(data), ref.sha256)
    other, _ = maker(tmp_path, "other").make(ref, "0.33.0", "x86_64")
    assert other == first
    # Made before, so the archive is not needed any more.
    (tmp_path / "o.tar.zst").unlink()
    assert maker(tmp_path).make(ref, "0.33.0", "x86_64")[0] == first
    assert not list((tmp_path / "cache" / "partial").glob("archive-*"))


def test_an_archive_on_a_server_is_brought_once_and_resumed(tmp_path: Path) -> None:
    data = release("tgz")
    name = "ollama-linux-amd64.tgz"
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / name).write_bytes(data)
    made = maker(tmp_path)
    # A build that was killed left the beginning of the archive, and its work.
    made.store.partial(sha256_hex(data)).write_bytes(data[:1000])
    left = tmp_path / "cache" / "partial" / "archive-killed"
    left.mkdir()
    (left / "0").write_bytes(b"x")
    with serving(tmp_path / "served") as index:
        url = f"{index.url.removesuffix('/simple')}/files/{name}"
        ref = ArchiveRef(url=url, sha256=sha256_hex(data))
        wheel, archive = made.make(ref, "0.33.0", "x86_64")
        with pytest.raises(IntegrityError, match="downloaded bytes are wrong"):
            made.make(ArchiveRef(url=url, sha256="1" * 64), "0.33.0", "x86_64")
    assert (archive.filename, archive.origin) == (name, url)
    # Its server is gone; another version of the wheel is made from what is kept.
    assert made.make(ref, "0.33.1", "x86_64")[0].version == "0.33.1"
    assert not left.exists()
    assert wheel.sha256


def test_the_lock_names_the_archive_and_is_the_same_again(tmp_path: Path) -> None:
    small = OllamaBundle(tmp_path)
    small.prepare()
    lock = small.lock()
    assert lock.engine_archive is not None
    assert lock.engine_archive.sha256 == sha256_hex(small.archive.read_bytes())
    [wheel] = lock.engine_wheels
    assert (wheel.name, wheel.version, wheel.url) == ("ollama-runtime", "0.33.0", "archive")
    shutil.rmtree(tmp_path / "cache")
    assert small.lock() == lock
    # An index that has a package of that name has someone else's.
    assert addressed_requirements_text(lock.engine_wheels) == (
        b"# ollama-runtime==0.33.0 is made from the engine's archive\n"
    )


def test_a_lost_wheel_is_made_again_at_the_build_and_must_be_the_same(tmp_path: Path) -> None:
    small = OllamaBundle(tmp_path)
    small.prepare()
    lock = small.lock()
    shutil.rmtree(tmp_path / "cache")
    tools = small.tools()
    with (
        pytest.raises(SourceError, match="not in the store"),
        tools.wheels.open(lock.engine_wheels[0]),
    ):
        pass
    built = small.build_only(lock=lock)
    [entry] = [e for e in built.manifest.entries if "ollama_runtime" in e.path]
    assert entry.origin == f"{small.archive.name} (sha256 {lock.engine_archive.sha256})"  # type: ignore[union-attr]
    shutil.rmtree(tmp_path / "cache")
    [wheel] = lock.engine_wheels
    changed = lock.model_copy(
        update={"engine_wheels": (wheel.model_copy(update={"sha256": "1" * 64}),)}
    )
    with pytest.raises(IntegrityError, match="made anew"):
        small.build_only(lock=changed, out=tmp_path / "other")


def test_the_glibc_of_an_open_target_is_what_the_wheel_admits(tmp_path: Path) -> None:
    small = OllamaBundle(tmp_path)
    small.prepare()
    raw = json.loads(small.spec().model_dump_json())
    raw["target"].pop("glibc")
    spec = type(small.spec()).model_validate(raw)
    lock = make_lock(spec, tmp_path, small.tool_wheel(), small.tools())
    assert lock.target.glibc == "2.28"
