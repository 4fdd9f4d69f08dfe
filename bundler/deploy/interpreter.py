"""The Python that a release runs on: the carried one, else one of this host that really starts."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from bundler.deploy.diskuse import files_below
from bundler.deploy.root import Root
from bundler.domain.manifest import Entry, VerifiedManifest
from bundler.errors import HostError, InstallError, ToolError, disk_errors
from bundler.format.digests import sha256_file, sha256_stream
from bundler.ports import CommandRunner

_ASK = "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"
_ANSWER_WITHIN_S = 20


def find_python(
    root: Root, verified: VerifiedManifest, folder: Path, runner: CommandRunner, *, doubted: bool
) -> Path:
    """The interpreter for a release whose files lie in `folder`; `doubted`: look at each of its files.

    Version managers put programs on PATH that only say which versions there are; so each candidate is
    asked, and one that does not answer is passed over.

    Raises:
        HostError: the bundle carries none and this host has none of the wanted version.
        InstallError: the carried archive is no Python.
    """
    carried = _carried(root, verified, folder, doubted=doubted)
    if carried is not None:
        return carried
    wanted = verified.manifest.target.python
    for candidate in _candidates(wanted):
        try:
            done = runner.run([str(candidate), "-c", _ASK], timeout_s=_ANSWER_WITHIN_S)
        except ToolError:
            continue
        if done.returncode == 0 and done.stdout.split() == ["cpython", wanted]:
            return candidate
    raise HostError(
        f"no CPython {wanted} on this host for the engine (looked on PATH)",
        hint=f"Install CPython {wanted}, or have the bundle built with a python-runtime file.",
    )


def _candidates(wanted: str) -> Iterator[Path]:
    """This process's own interpreter first: it is known to work."""
    yield Path(getattr(sys, "_base_executable", None) or sys.executable)
    for place in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for name in (f"python{wanted}", "python3"):
            path = Path(place or ".", name)
            if path.is_file() and os.access(path, os.X_OK):
                yield path


def carried_runtime(verified: VerifiedManifest) -> Entry | None:
    """The archive of a Python that the bundle carries."""
    carried = next((f for f in verified.manifest.files if f.role == "python-runtime"), None)
    if carried is None:
        return None
    return next(e for e in verified.manifest.entries if e.path == carried.path)


def _carried(root: Root, verified: VerifiedManifest, folder: Path, *, doubted: bool) -> Path | None:
    """The carried Python runtime, unpacked; None when the bundle has none."""
    entry = carried_runtime(verified)
    if entry is None:
        return None
    home, archive = root.runtime(entry.sha256), folder / entry.path
    python = home / "python" / "bin" / "python3"
    if not python.exists() or (doubted and not _is_sound(home, archive)):
        _unpack(root, archive, home)
    return python


def _is_sound(home: Path, archive: Path) -> bool:
    """Whether an unpacked runtime holds what its archive holds, bytecode aside."""
    wanted = runtime_digests(archive)
    found = {node.path.relative_to(home).as_posix(): node.path for node in files_below(home)}
    strangers = {name for name in found if not name.endswith(".pyc")} - set(wanted)
    return not strangers and all(
        name in found and digest in (None, sha256_file(found[name]))
        for name, digest in wanted.items()
    )


def runtime_digests(archive: Path) -> dict[str, str | None]:
    """SHA-256 of each file of a carried Python runtime; None for a symbolic link.

    Raises:
        InstallError: the archive is none.
    """
    found: dict[str, str | None] = {}
    with disk_errors("reading", archive):
        try:
            with tarfile.open(archive) as tar:
                for member in tar:
                    name = os.path.normpath(member.name)
                    if member.islnk():
                        found[name] = found.get(os.path.normpath(member.linkname))
                    elif member.issym():
                        found[name] = None
                    elif data := tar.extractfile(member):
                        found[name] = sha256_stream(data)
        except (tarfile.TarError, EOFError) as cause:
            raise InstallError(f"{archive.name}: is no archive: {cause}") from cause
    return found


def _unpack(root: Root, archive: Path, home: Path) -> None:
    if not hasattr(tarfile, "data_filter"):
        raise HostError(
            f"Python {platform.python_version()} cannot unpack an archive safely (PEP 706)",
            hint="Run airbundle with Python 3.10.12, 3.11.4, 3.12 or newer.",
        )
    partial = home.with_name(home.name + ".partial")
    with disk_errors("unpacking to", partial):
        shutil.rmtree(partial, ignore_errors=True)
        root.make(partial)
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(partial, filter="data")
        except (tarfile.TarError, EOFError) as cause:
            raise InstallError(
                f"{archive.name}: cannot unpack the Python runtime: {cause}"
            ) from cause
        if not (partial / "python/bin/python3").exists():
            raise InstallError(f"{archive.name}: has no python/bin/python3 inside")
        # Another release may run on it: its path is empty for a moment only.
        old = home.with_name(home.name + ".old.partial")
        shutil.rmtree(old, ignore_errors=True)
        if home.exists():
            home.rename(old)
        partial.rename(home)
        shutil.rmtree(old, ignore_errors=True)
