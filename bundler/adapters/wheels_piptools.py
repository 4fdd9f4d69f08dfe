"""WheelResolver: pip-tools, for a target that is like this host.

pip evaluates markers and tags for the interpreter that runs it, so no other target can be resolved
(https://pip.pypa.io/en/stable/cli/pip_download/, pip issue 4304). pip-compile finds the versions, with
this host's pip configuration; `pip install --dry-run --report` names each one's file and SHA-256.
`pip-compile --generate-hashes` is not used: it hashes every platform's file of every package. Sizes and
upload dates, which pip does not tell, are taken from another resolver where it names the same bytes.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from bundler.domain.lock import LockedWheel
from bundler.domain.target import Target
from bundler.errors import ResolveError, ToolError, as_error
from bundler.ports import CommandRunner, Completed, WheelRequest, WheelResolver

_TIMEOUT_S = 3600
_NOT_FOUND = re.compile(r"No matching distribution found for ([^\s(]+)")


class PipToolsResolver:
    """Resolves with the pip-tools and pip of this environment.

    Args:
        runner: starts them.
        python: the interpreter that has them.
        host: this host as a target, None when it could be none.
        other: a resolver that tells sizes and dates of pinned wheels.
    """

    def __init__(
        self,
        *,
        runner: CommandRunner,
        python: str,
        host: Target | None,
        other: WheelResolver | None = None,
    ) -> None:
        self._runner = runner
        self._python = python
        self._host = host
        self._other = other
        self.floors: tuple[str, ...] = (host.glibc if host else "2.17",)

    def resolve(self, request: WheelRequest) -> tuple[LockedWheel, ...]:
        """The closure for this host, one wheel for each package, sorted by name."""
        self._refuse_foreign(request.target)
        _refuse_unknown(request)
        with tempfile.TemporaryDirectory(prefix="airbundle-resolve-") as name:
            folder = Path(name)
            pins = folder / "pins.txt"
            self._compile(request, folder, pins)
            report = folder / "report.json"
            self._run(request, [
                "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet",
                "--only-binary", ":all:", "--report", str(report), "--requirement", str(pins),
                *self._places(request),
            ])  # fmt: skip
            with as_error(ResolveError, "pip's report"):
                wheels = [_wheel(item) for item in json.loads(report.read_bytes())["install"]]
        measured = self._measured(wheels, request)
        return tuple(sorted(measured, key=lambda wheel: wheel.name))

    def _measured(
        self, wheels: Sequence[LockedWheel], request: WheelRequest
    ) -> Iterator[LockedWheel]:
        pins = tuple(f"{wheel.name}=={wheel.version}" for wheel in wheels)
        known: dict[str, LockedWheel] = {}
        if self._other is not None and not request.only_links:
            # Without them the closure is as good: the sizes are known after the fetch.
            with suppress(ResolveError):
                same = self._other.resolve(replace(request, requirements=pins, constraints=()))
                known = {wheel.sha256: wheel for wheel in same}
        for wheel in wheels:
            other = known.get(wheel.sha256, wheel)
            size = other.size if wheel.size is None else wheel.size
            yield wheel.model_copy(update={"size": size, "uploaded": other.uploaded})

    def _refuse_foreign(self, target: Target) -> None:
        host = self._host
        if host is None:
            raise ResolveError(
                "pip-tools resolves for this host alone, and this host is no possible target",
                hint="Set engine.resolver to uv.",
            )
        same = (host.os, host.arch, host.python) == (target.os, target.arch, target.python)
        if not same or _minor(target.glibc) < _minor(host.glibc):
            raise ResolveError(
                f"pip-tools resolves for this host alone ({_describe(host)}), the target is"
                f" {_describe(target)}",
                hint="Set engine.resolver to uv, which resolves for any target; with pip-tools the"
                " target's glibc must not be older than this host's.",
            )

    def _compile(self, request: WheelRequest, folder: Path, pins: Path) -> None:
        wanted = folder / "requirements.in"
        wanted.write_text("\n".join(request.requirements) + "\n", encoding="utf-8")
        argv = [
            "-m", "piptools", "compile", str(wanted), "--output-file", str(pins), "--no-config",
            "--no-header", "--no-annotate", "--strip-extras", "--allow-unsafe", "--quiet",
            "--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host",
            "--resolver", "backtracking", "--pip-args", "--only-binary :all:",
        ]  # fmt: skip
        if request.constraints:
            limits = folder / "constraints.txt"
            limits.write_text("\n".join(request.constraints) + "\n", encoding="utf-8")
            argv += ["--constraint", str(limits)]
        self._run(request, [*argv, *self._places(request)])

    def _places(self, request: WheelRequest) -> Iterator[str]:
        """What the spec adds; pip knows this host's own indexes by itself."""
        if request.only_links:
            yield "--no-index"
        else:
            shared = [request.index, *(index.url for index in request.indexes)]
            for address in filter(None, shared):
                yield from ("--extra-index-url", address)
        for folder in request.find_links:
            yield from ("--find-links", str(folder))

    def _run(self, request: WheelRequest, argv: Sequence[str]) -> Completed:
        env: dict[str, str | None] = {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        if request.only_links:
            env |= {name: None for name in os.environ if name.startswith("PIP_")}
            env["PIP_CONFIG_FILE"] = os.devnull
        try:
            done = self._runner.run([self._python, *argv], env=env, timeout_s=_TIMEOUT_S)
        except ToolError as cause:
            raise ResolveError(f"pip-tools: {cause}") from cause
        if done.returncode != 0:
            raise _refusal(done, request)
        return done


def _refuse_unknown(request: WheelRequest) -> None:
    pinning = any(index.packages for index in request.indexes)
    for key, present in (
        ("exclude", request.exclude),
        ("exclude_newer", request.exclude_newer),
        ("build_sdists", request.build_sdists),
        ("indexes[].packages", pinning),
    ):
        if present:
            raise ResolveError(
                f"engine.{key}: pip-tools cannot do this", hint="Set engine.resolver to uv."
            )


def _wheel(item: Mapping[str, Any]) -> LockedWheel:
    info = item["download_info"]
    url = str(info["url"])
    filename = unquote(urlsplit(url).path).rsplit("/", 1)[-1]
    name, version = canonicalize_name(item["metadata"]["name"]), str(item["metadata"]["version"])
    sha256 = info.get("archive_info", {}).get("hashes", {}).get("sha256")
    if not filename.endswith(".whl") or not sha256:
        raise ResolveError(f"{name} {version}: pip states no wheel with a SHA-256 ({filename})")
    size = Path(unquote(urlsplit(url).path)).stat().st_size if url.startswith("file:") else None
    return LockedWheel(
        name=name, version=version, filename=filename, url=url, size=size, sha256=sha256
    )


def _refusal(done: Completed, request: WheelRequest) -> ResolveError:
    text = done.stderr.strip() or done.stdout.strip()
    lines = text.splitlines() or ["no reason given"]
    missing = _NOT_FOUND.search(text)
    if missing:
        return ResolveError(
            f"{missing.group(1)}: the index has no wheel of it for this host",
            hint="Choose another version, or add a wheel of your own to engine.wheels.",
            details=lines[-10:],
            without_wheel=(missing.group(1),),
        )
    return ResolveError(
        f"pip-tools: cannot resolve {', '.join(request.requirements)}: {lines[-1][:600]}",
        details=lines[-20:],
    )


def _describe(target: Target) -> str:
    return f"{target.os} {target.arch}, CPython {target.python}, glibc {target.glibc}"


def _minor(glibc: str) -> int:
    return int(glibc.split(".")[1])
