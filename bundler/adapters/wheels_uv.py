"""WheelResolver: uv, which resolves for a foreign target and states hash and size of each wheel.

`uv pip compile --format pylock.toml` gives, for each package, every wheel that could fit; the choice
among them is ours (build/tags.py does it through the `choose` function, by tag rank). uv knows a
closed list of glibc floors; the highest one that is not above the target's is used to resolve, the
target's own to choose.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import tomli

from bundler.domain.lock import LockedWheel
from bundler.domain.target import Target
from bundler.errors import ResolveError, ToolError
from bundler.ports import CommandRunner, HostIndex, WheelRequest

# `uv pip compile --help`, uv 0.13.
_UV_FLOORS = (40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 28, 17)
Choose = Callable[[Iterable[tuple[str, Any]], Target], Any]


class UvResolver:
    """Resolves with the uv of this environment, configured as pip and uv are on this host."""

    def __init__(
        self, *, runner: CommandRunner, uv: str, python: str, index: HostIndex, choose: Choose
    ) -> None:
        self._runner = runner
        self._uv = uv
        self._python = python
        self._index = index
        self._choose = choose

    def resolve(self, request: WheelRequest) -> tuple[LockedWheel, ...]:
        """The closure, one wheel for each package, sorted by name."""
        with tempfile.TemporaryDirectory(prefix="airbundle-resolve-") as folder:
            lock = Path(folder, "pylock.closure.toml")
            requirements = Path(folder, "requirements.in")
            requirements.write_text("\n".join(request.requirements) + "\n", encoding="utf-8")
            argv = self._argv(request, requirements, lock)
            try:
                done = self._runner.run(argv, env=self._env())
            except ToolError as cause:
                raise ResolveError(f"uv: {cause}") from cause
            if done.returncode != 0:
                raise _resolve_error(done.stderr, request)
            packages = tomli.loads(lock.read_text(encoding="utf-8")).get("packages", [])
        return tuple(
            sorted(
                (self._wheel(package, request.target) for package in packages),
                key=lambda wheel: wheel.name,
            )
        )

    def _argv(self, request: WheelRequest, requirements: Path, lock: Path) -> list[str]:
        target = request.target
        argv = [
            self._uv, "pip", "compile", str(requirements),
            "--format", "pylock.toml", "--output-file", str(lock),
            "--python", self._python, "--no-python-downloads",
            "--python-version", target.python, "--python-platform", _platform(target),
            "--no-build", "--no-header", "--no-annotate", "--no-progress", "--color", "never",
            "--quiet",
        ]  # fmt: skip
        if request.exclude:
            excludes = requirements.with_name("excludes.txt")
            excludes.write_text("\n".join(request.exclude) + "\n", encoding="utf-8")
            argv += ["--excludes", str(excludes)]
        return [*argv, *self._index_flags(request)]

    def _index_flags(self, request: WheelRequest) -> Iterator[str]:
        index = self._index
        if index.no_index:
            yield "--no-index"
        else:
            if index.default_index:
                yield from ("--default-index", index.default_index)
            extras = [*([request.index] if request.index else []), *index.extra_indexes]
            for address in extras:
                yield from ("--index", address)
            if extras:
                # pip looks at all its indexes and takes the best version; so does this.
                yield from ("--index-strategy", "unsafe-best-match")
        for place in (*index.find_links, *(str(path) for path in request.find_links)):
            yield from ("--find-links", place)
        for host in index.trusted_hosts:
            yield from ("--allow-insecure-host", host)

    def _env(self) -> Mapping[str, str | None]:
        """Certificates as pip has them: a named file, else the operating system's store."""
        if self._index.cert:
            return {"SSL_CERT_FILE": str(self._index.cert)}
        # The newer and the older name of the same switch.
        return {"UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true"}

    def _wheel(self, package: Mapping[str, Any], target: Target) -> LockedWheel:
        name, version = str(package["name"]), str(package.get("version", ""))
        wheels = list(package.get("wheels", []))
        chosen = self._choose([(_filename(wheel), wheel) for wheel in wheels], target)
        if chosen is None:
            raise ResolveError(
                f"{name} {version}: no wheel for {_describe(target)}"
                f" ({len(wheels)} wheels for other targets)"
            )
        uploaded = chosen.get("upload-time")
        return LockedWheel(
            name=name,
            version=version,
            filename=_filename(chosen),
            url=str(chosen.get("url") or Path(chosen["path"]).resolve().as_uri()),
            size=chosen.get("size"),
            sha256=chosen["hashes"]["sha256"],
            uploaded=uploaded.strftime("%Y-%m-%dT%H:%M:%SZ") if uploaded else None,
        )


def _platform(target: Target) -> str:
    minor = int(target.glibc.split(".")[1])
    floor = next((level for level in _UV_FLOORS if level <= minor), None)
    if floor is None:
        raise ResolveError(
            f"target.glibc {target.glibc} is older than 2.17, the oldest that wheels are resolved for"
        )
    return f"{target.arch}-manylinux_2_{floor}"


def _describe(target: Target) -> str:
    return f"{target.os} {target.arch}, CPython {target.python}, glibc {target.glibc}"


def _filename(wheel: Mapping[str, Any]) -> str:
    place = wheel.get("name") or urlsplit(str(wheel.get("url", ""))).path or wheel.get("path", "")
    return unquote(str(place)).rsplit("/", 1)[-1]


def _resolve_error(stderr: str, request: WheelRequest) -> ResolveError:
    text = " ".join(re.sub(r"^(error|cause|hint|warning):", " ", stderr, flags=re.M).split())
    reason = text.split("we can conclude")[0].rstrip(" ,") if "we can conclude" in text else text
    missing = re.search(r"(?:of )?(\S+) ha(?:s|ve) no (?:usable )?wheels", text)
    if missing:
        return ResolveError(
            f"{missing.group(1)}: the index has no wheel for {_describe(request.target)}",
            hint="Choose another version, raise target.glibc or target.python to what the target"
            " really has, or add a wheel of your own to engine.wheels.",
        )
    return ResolveError(f"cannot resolve {', '.join(request.requirements)}: {reason[:600]}")
