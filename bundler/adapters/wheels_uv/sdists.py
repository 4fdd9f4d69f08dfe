"""Wheels of packages that exist as source alone, built on this host when the spec allows it.

The source is named by the index with its SHA-256, and pip builds exactly that. A wheel that is not pure
Python holds machine code for this host, so it is kept only when the target is a machine like it. What
was built stays in the cache under its source's digest: the same source is not built twice, and a lock
that names the wheel stays valid.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bundler.domain.target import Target
from bundler.errors import ResolveError, ToolError, disk_errors
from bundler.ports import CommandRunner, WheelRequest

_TIMEOUT_S = 3600
# ZIP knows no earlier date; setuptools, hatchling and flit take it instead of the clock.
_EPOCH = "315532800"


@dataclass(frozen=True)
class Source:
    """A source distribution on an index."""

    name: str
    version: str
    url: str
    sha256: str


@dataclass(frozen=True)
class SdistBuilder:
    """Builds with `pip wheel`, in pip's isolated build environment."""

    runner: CommandRunner
    python: str
    choose: Callable[[Iterable[tuple[str, Any]], Target], Any]
    host: Target | None

    def build(self, source: Source, request: WheelRequest) -> Path:
        """The folder that holds the built wheel and nothing else.

        Raises:
            ResolveError: it cannot be built, or not for that target.
        """
        if request.built_into is None:
            raise ResolveError(f"{source.name} {source.version}: no place to keep a built wheel")
        interpreter = self.host.python if self.host else "0"
        place = request.built_into.resolve() / f"{source.sha256[:32]}-cp{interpreter}"
        if not list(place.glob("*.whl")):
            self._build(source, place)
        wheel = next(iter(sorted(place.glob("*.whl"))))
        self._check(source, wheel.name, request.target)
        return place

    def _build(self, source: Source, place: Path) -> None:
        with disk_errors("writing", place):
            place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=place.parent, prefix="building-") as name:
                folder = Path(name, "wheel")
                folder.mkdir()
                self._pip_wheel(source, folder)
                folder.rename(place)

    def _pip_wheel(self, source: Source, folder: Path) -> None:
        argv = [
            self.python, "-m", "pip", "wheel", "--no-deps", "--use-pep517",
            # A wheel in pip's own cache may have been built under other conditions.
            "--no-cache-dir", "--disable-pip-version-check", "--wheel-dir", str(folder),
            f"{source.name} @ {source.url}#sha256={source.sha256}",
        ]  # fmt: skip
        what = f"{source.name} {source.version}: building its wheel"
        try:
            done = self.runner.run(argv, env={"SOURCE_DATE_EPOCH": _EPOCH}, timeout_s=_TIMEOUT_S)
        except ToolError as cause:
            raise ResolveError(f"{what}: {cause}") from cause
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no reason given"]
        if done.returncode != 0 or not list(folder.glob("*.whl")):
            raise ResolveError(
                f"{what} failed: {lines[-1]}",
                hint="Build it yourself where it can be built and add the wheel to engine.wheels.",
                details=lines[-20:],
            )

    def _check(self, source: Source, filename: str, target: Target) -> None:
        fits = self.choose([(filename, filename)], target) is not None
        if fits and (filename.endswith("-any.whl") or self._is_like(target)):
            return
        host = self.host
        here = (
            f"{host.arch}, CPython {host.python}, glibc {host.glibc}" if host else "another system"
        )
        raise ResolveError(
            f"{source.name} {source.version}: {filename}, built on this host ({here}), does not fit"
            f" {target.os} {target.arch}, CPython {target.python}, glibc {target.glibc}",
            hint="Build it on a machine like the target and add the wheel to engine.wheels.",
            without_wheel=(source.name,),
        )

    def _is_like(self, target: Target) -> bool:
        """Whether machine code of this host runs there: its glibc must not be older than here."""
        host = self.host
        return (
            host is not None
            and (host.arch, host.python) == (target.arch, target.python)
            and int(host.glibc.split(".")[1]) <= int(target.glibc.split(".")[1])
        )
