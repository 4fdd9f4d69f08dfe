"""Carried wheels -> an engine's environment, offline and with every hash required: by uv, or by pip where uv cannot run.

uv comes with airbundle. It is missing where no wheel of it fits the host, and cannot run where the tool lies on a mount
without execution. Then the pip of the engine's own Python does it, by far slower; Python's `venv` needs no
`python3-venv`, as pip stays outside the environment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from bundler.deploy.installedcheck import digests_below
from bundler.errors import BundlerError, HostError, InstallError, SpaceError, ToolError
from bundler.ports import CommandRunner, Completed, Progress

PYTHON = Path("venv/bin/python")
# How uv (0.4 to 0.13) and pip name a requirement that no carried wheel meets.
_GAPS = (
    r"all requirements must be pinned.*but found: `([^`]+)`",
    r"no trusted hash was provided for: `([^`]+)`",
    r"Because ([\w.-]+)\S* was not found in the provided package locations",
    r"Because there are no versions of ([\w.-]+)",
    r"Because only ([\w.-]+)(?:[\[{].*?[\]}])?<\S+ is available",
    r"No matching distribution found for ([\w.-]+)",
    r"must have their versions pinned with ==. These do not:\s+([\w.-]+)",
)
# The wheel that `ensurepip` brings runs by itself; an installed pip installs for others from 22.3 on (`--python`).
_ASK_FOR_PIP = """
import glob, json, os
wheels, version = [], ""
try:
    import ensurepip
    for folder in (getattr(ensurepip, "_WHEEL_PKG_DIR", None), os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")):
        wheels += sorted(glob.glob(os.path.join(folder, "pip-*.whl"))) if folder else []
except ImportError:
    pass
try:
    import pip
    version = pip.__version__
except ImportError:
    pass
print(json.dumps({"wheels": wheels, "version": version}))
"""
_PIP_FOR_OTHERS = (22, 3)
_ANSWER_WITHIN_S = 60


@dataclass(frozen=True)
class Wanted:
    """An environment to make in `folder`/venv from the wheels in `folder`/wheels.

    `movable`: its scripts find their interpreter after the folder got another name.
    """

    bundle_id: str
    folder: Path
    python: Path
    requirements: Path
    exclude: tuple[str, ...]
    movable: bool


def make_environment(
    wanted: Wanted, uv: str | None, runner: CommandRunner, progress: Progress
) -> dict[str, str]:
    """Make it; gives the SHA-256 of each file that is there before any wheel.

    Raises:
        InstallError: the wheels are not complete, or are not what the hashes say.
        HostError: neither uv nor pip can be used.
        SpaceError: the disk is full.
    """
    if uv is not None and _runs(uv, runner):
        return _by_uv(wanted, uv, runner)
    progress.note("uv cannot be run here; pip installs, which takes some minutes")
    return _by_pip(wanted, runner)


def _runs(program: str, runner: CommandRunner) -> bool:
    try:
        return runner.run([program, "--version"], timeout_s=_ANSWER_WITHIN_S).returncode == 0
    except ToolError:
        return False


def _by_uv(wanted: Wanted, uv: str, runner: CommandRunner) -> dict[str, str]:
    folder = wanted.folder
    cache = folder / ".uv-cache"
    common = ["--offline", "--no-config", "--no-progress", "--cache-dir", str(cache)]
    created = runner.run(
        [uv, "venv", *common, "--no-python-downloads", "--python", str(wanted.python),
         *(["--relocatable"] if wanted.movable else []), str(folder / "venv")],
        env=_clean(),
    )  # fmt: skip
    if created.returncode != 0:
        raise _error(f"{wanted.python}: uv makes no environment with it", folder, created)
    written = digests_below(folder / "venv")
    left_out = folder / ".uv-excludes"
    excludes: list[str] = []
    if wanted.exclude:
        left_out.write_text("\n".join((*wanted.exclude, "")))
        excludes = ["--excludes", str(left_out)]
    # With their dependencies, although all are pinned: a gap in the closure shows here, on this
    # very Python and platform, and not at the engine's first import.
    done = runner.run(
        [
            uv, "pip", "install", *common, "--python", str(folder / PYTHON), "--no-index",
            "--no-build", "--require-hashes", "--compile-bytecode", *excludes,
            "--find-links", str(folder / "wheels"), "-r", str(wanted.requirements),
        ],
        env=_clean(),
    )  # fmt: skip
    left_out.unlink(missing_ok=True)
    shutil.rmtree(cache, ignore_errors=True)
    if done.returncode != 0:
        raise _error(wanted.bundle_id, folder, done)
    return written


def _by_pip(wanted: Wanted, runner: CommandRunner) -> dict[str, str]:
    folder, python = wanted.folder, str(wanted.python)
    if wanted.movable:
        raise InstallError(
            f"{wanted.bundle_id}: without uv a release cannot be made anew beside itself",
            hint=f"Make room for it: airbundle uninstall {wanted.bundle_id} --force, then airbundle install.",
        )
    pip = _find_pip(python, folder, runner)
    created = runner.run(
        [python, "-m", "venv", "--without-pip", str(folder / "venv")], env=_clean()
    )
    if created.returncode != 0:
        raise _error(f"{python}: makes no environment (python -m venv)", folder, created)
    written = digests_below(folder / "venv")
    # pip cannot leave out a dependency by name; then all of them are the lock's word.
    only_listed = ["--no-deps"] if wanted.exclude else []
    done = runner.run(
        [
            *pip, "install", "--isolated", "--no-input", "--disable-pip-version-check",
            "--no-cache-dir", "--no-index", "--only-binary", ":all:", "--require-hashes",
            "--no-warn-script-location", *only_listed,
            "--find-links", str(folder / "wheels"), "-r", str(wanted.requirements),
        ],
        env=_clean(),
    )  # fmt: skip
    if done.returncode != 0:
        raise _error(wanted.bundle_id, folder, done)
    return written


def _find_pip(python: str, folder: Path, runner: CommandRunner) -> list[str]:
    """How to call a pip that installs into the environment."""
    asked = runner.run([python, "-c", _ASK_FOR_PIP], env=_clean(), timeout_s=_ANSWER_WITHIN_S)
    try:
        found = json.loads(asked.stdout)
    except ValueError:
        found = {"wheels": [], "version": ""}
    if found["wheels"]:
        return [str(folder / PYTHON), f"{found['wheels'][-1]}/pip"]
    numbers = tuple(int(number) for number in re.findall(r"\d+", found["version"])[:2])
    if numbers >= _PIP_FOR_OTHERS:
        return [python, "-m", "pip", "--python", str(folder / PYTHON)]
    raise HostError(
        f"{python}: uv cannot be run on this host, and that Python has no pip of version 22.3 or newer",
        hint="Put the root on a mount that permits execution, or install python3-pip or python3-venv.",
    )


def _clean() -> dict[str, str | None]:
    """No configuration of this host's uv, pip or Python may reach into an offline install."""
    prefixes = ("UV_", "PIP_", "PYTHON", "VIRTUAL_ENV")
    return {
        name: None
        for name in os.environ
        if name.startswith(prefixes) or name.lower().endswith("_proxy")
    }


def _error(what: str, folder: Path, done: Completed) -> BundlerError:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    text = " ".join(lines) or f"{Path(done.argv[0]).name} ended with {done.returncode}"
    if any(sign in done.stderr for sign in ("No space left", "os error 28", "Disk quota")):
        return SpaceError(f"{folder}: no space left while installing ({text[:200]})")
    gap = _gap(text)
    if gap:
        return InstallError(
            f"{what}: the carried wheels are not complete on this host: {gap}",
            hint="Have the bundle built again for this host's Python and platform.",
            details=lines[-20:],
        )
    return InstallError(f"{what}: {text[:400]}", details=lines[-20:])


def _gap(text: str) -> str | None:
    """What is missed, from the installer's words; None when it fails for another reason."""
    for pattern in _GAPS:
        match = re.search(pattern, text)
        if match:
            return f"{match[1]} is missing"
    _, unsolved, reason = text.partition("No solution found when resolving dependencies")
    return reason.removeprefix(" cause:").strip()[:400] if unsolved else None
