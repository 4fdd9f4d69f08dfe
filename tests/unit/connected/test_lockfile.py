"""The lock on disk, and the requirements file that pip, pip-sync and uv install."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bundler import wiring
from bundler.build.lockfile import last_lock, read_lock, requirements_file, write_lock
from bundler.domain.lock import LockedWheel
from bundler.errors import FileAccessError
from bundler.format.atomic import write_atomically
from bundler.format.digests import sha256_hex
from bundler.format.requirements import addressed_requirements_text
from tests.fakes.simple_index import serving
from tests.fakes.small_bundle import SmallBundle
from tests.fakes.wheels import make_wheel


def locked(path: Path, url: str | None = None) -> LockedWheel:
    name, version = path.name.split("-")[:2]
    return LockedWheel(
        name=name, version=version, filename=path.name, url=url or path.as_uri(),
        sha256=sha256_hex(path.read_bytes()),
    )  # fmt: skip


def test_both_files_are_written_and_read_back(tmp_path: Path) -> None:
    small = SmallBundle(tmp_path)
    small.prepare()
    lock = small.lock()
    path = tmp_path / "my.lock.json"
    write_lock(path, lock)
    assert requirements_file(path) == tmp_path / "my.lock.requirements.txt"
    assert read_lock(path, small.spec()) == last_lock(path) == lock
    text = requirements_file(path).read_text()
    assert text.startswith("toy-dependency @ file://")
    assert not list(tmp_path.glob("*.new"))
    changed = small.spec().model_copy(update={"description": "another"})
    assert read_lock(path, changed) is None
    assert last_lock(path) == lock
    assert last_lock(tmp_path / "none") is None


@pytest.mark.parametrize("taken", ["my.lock.json", "my.lock.requirements.txt"])
def test_a_folder_in_either_files_place_leaves_nothing_half_written(
    tmp_path: Path, taken: str
) -> None:
    small = SmallBundle(tmp_path)
    small.prepare()
    lock = small.lock()
    (tmp_path / taken).mkdir()
    with pytest.raises(FileAccessError, match="is a folder"):
        write_lock(tmp_path / "my.lock.json", lock)
    assert [path.name for path in tmp_path.glob("my.lock*")] == [taken]


def test_a_small_file_is_written_whole_or_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "record.json"
    write_atomically(path, b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["pip", "pip-sync", "uv"])
def test_every_installer_takes_the_file_and_refuses_other_bytes(tmp_path: Path, tool: str) -> None:
    ordinary = make_wheel(tmp_path / "index", "lib", "1", {"lib.py": b"X = 1\n"})
    own = make_wheel(tmp_path / "own", "app", "1", {"app.py": b"X = 1\n"}, requires=("lib", "cu"))
    special = make_wheel(tmp_path / "second", "cu", "2+cu129", {"cu.py": b"X = 1\n"})
    with serving(tmp_path / "index") as index, serving(tmp_path / "second") as second:
        files = f"{second.url.removesuffix('/simple')}/files/"
        wheels = [
            locked(own),
            locked(ordinary, f"{index.url}/x"),
            locked(special, files + special.name),
        ]
        requirements = tmp_path / "r.txt"
        requirements.write_bytes(addressed_requirements_text(wheels))
        assert b"lib==1 --hash" in requirements.read_bytes()
        done = install(tool, tmp_path, requirements, index.url)
        assert done.returncode == 0, done.stdout + done.stderr
        found = {path.name for path in (tmp_path / "env").rglob("*.py")}
        assert {"app.py", "lib.py", "cu.py"} <= found
        make_wheel(tmp_path / "index", "lib", "1", {"lib.py": b"X = 2\n"})
        done = install(tool, tmp_path / "again", requirements, index.url)
        assert done.returncode != 0
        assert "hash" in (done.stdout + done.stderr).lower()


def install(
    tool: str, work: Path, requirements: Path, index: str
) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
    env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", "UV_NO_CONFIG": "1",
            "UV_NO_CACHE": "1", "PIP_INDEX_URL": index, "UV_DEFAULT_INDEX": index,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1"}  # fmt: skip
    work.mkdir(exist_ok=True)
    place = work / "env"
    if tool == "uv":
        argv = [wiring.uv_program(), "pip", "install", "--require-hashes", "--target", place,
                "--python", sys.executable, "-r", requirements]  # fmt: skip
    elif tool == "pip":
        argv = [sys.executable, "-m", "pip", "install", "--require-hashes", "--target", place,
                "-r", requirements]  # fmt: skip
    else:
        # pip-sync removes what is not named, so it needs an environment of its own.
        subprocess.run([sys.executable, "-m", "venv", place], check=True, env=env)
        argv = [sys.executable, "-m", "piptools", "sync", "--python-executable",
                place / "bin" / "python", requirements]  # fmt: skip
    return subprocess.run(list(map(str, argv)), capture_output=True, text=True, env=env)
