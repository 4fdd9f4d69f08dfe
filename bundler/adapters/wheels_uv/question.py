"""One question to uv: the files that it reads and the command line.

A requirement is bound to an index through `[tool.uv.sources]` of a pyproject.toml, which uv honours for
direct requirements alone (measured with 0.13, https://docs.astral.sh/uv/concepts/indexes/): a pinned
package that only another one needs must be written down as well, `forced`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Literal

from packaging.utils import canonicalize_name

from bundler.domain.hostindex import HostIndex
from bundler.domain.target import Target
from bundler.errors import ResolveError
from bundler.ports import WheelRequest

# `uv pip compile --help`, uv 0.13.
KNOWN_FLOORS = (40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 28, 17)
PROJECT = "airbundle-closure"
Mode = Literal["closure", "origins", "any-platform", "source"]


@dataclass(frozen=True)
class Question:
    """What is asked of uv, besides the request itself.

    `closure`: every wheel; `origins`: the index and the parents of each package; `any-platform`: has
    a package wheels for anything at all; `source`: a package's sdist, without building it.
    """

    request: WheelRequest
    mode: Mode = "closure"
    forced: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    built: tuple[Path, ...] = ()

    def about(self, requirement: str, mode: Mode) -> Question:
        """The same for one requirement alone, without its dependencies."""
        alone = replace(self.request, requirements=(requirement,), exclude=())
        return replace(self, request=alone, mode=mode, forced=(), without=())

    def write(self, folder: Path, *, uv: str, python: str, index: HostIndex) -> list[str]:
        """Write uv's input files and give the command; the answer goes to `folder`/ANSWER."""
        request = self.request
        argv = [
            uv, "pip", "compile", str(self._requirements(folder)),
            "--output-file", str(folder / ANSWER), "--project", str(folder),
            "--python", python, "--no-python-downloads", "--python-version", request.target.python,
            "--no-header", "--no-progress", "--color", "never", "--quiet",
        ]  # fmt: skip
        argv += _MODES[self.mode]
        if self.mode != "any-platform":
            argv += ["--python-platform", _platform(request.target)]
        for flag, lines in (
            ("--excludes", (*request.exclude, *self.without)),
            ("--constraints", request.constraints),
        ):
            if lines:
                argv += [flag, str(_lines(folder / f"{flag[2:]}.txt", lines))]
        if request.exclude_newer and not request.only_links:
            argv += ["--exclude-newer", _instant(request.exclude_newer)]
        return [*argv, *self._places(index)]

    def _requirements(self, folder: Path) -> Path:
        pins = pinned(self.request)
        if not pins:
            return _lines(folder / "requirements.in", self.request.requirements)
        path = folder / "pyproject.toml"
        path.write_text(_project(self.request, (*self.request.requirements, *self.forced), pins),
                        encoding="utf-8")  # fmt: skip
        return path

    def _places(self, index: HostIndex) -> Iterator[str]:
        request = self.request
        if request.only_links:
            yield from ("--no-index", "--no-config", "--offline")
            yield from _each("--find-links", map(str, request.find_links))
            return
        if index.no_index:
            yield "--no-index"
        else:
            if index.default_index:
                yield from ("--default-index", index.default_index)
            shared = [place.url for place in request.indexes if not place.packages]
            extras = [
                *([request.index] if request.index else []), *shared, *index.extra_indexes,
            ]  # fmt: skip
            yield from _each("--index", extras)
            if extras:
                # pip looks at all its indexes and takes the best version; so does this.
                yield from ("--index-strategy", "unsafe-best-match")
        links = (*index.find_links, *map(str, request.find_links), *map(str, self.built))
        yield from _each("--find-links", links)
        yield from _each("--allow-insecure-host", index.trusted_hosts)

    def env(self, index: HostIndex) -> Mapping[str, str | None]:
        """Certificates as pip has them: a named file, else the operating system's store."""
        changes: dict[str, str | None] = {}
        if self.request.only_links:
            # Nothing that this host is configured with may help the closure along.
            changes |= {name: None for name in os.environ if name.startswith("UV_")}
            kept = {"UV_CACHE_DIR", "UV_NO_CACHE"}
            changes = {name: value for name, value in changes.items() if name not in kept}
        if index.cert:
            return changes | {"SSL_CERT_FILE": str(index.cert)}
        # The newer and the older name of the same switch.
        return changes | {"UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true"}


ANSWER = "pylock.closure.toml"
_MODES: dict[Mode, tuple[str, ...]] = {
    "closure": ("--format", "pylock.toml", "--no-annotate", "--no-build"),
    "origins": ("--format", "requirements.txt", "--emit-index-annotation", "--no-build",
                "--annotation-style", "line"),
    "any-platform": ("--format", "pylock.toml", "--no-annotate", "--no-build", "--no-deps",
                     "--universal"),
    # With --no-deps uv needs no metadata, so it runs no build code.
    "source": ("--format", "pylock.toml", "--no-annotate", "--no-deps"),
}  # fmt: skip


def pinned(request: WheelRequest) -> dict[str, str]:
    """Normalized package -> the index that it must come from.

    Raises:
        ResolveError: a package is pinned to two indexes.
    """
    pins: dict[str, str] = {}
    for index in () if request.only_links else request.indexes:
        for package in index.packages:
            name = canonicalize_name(package)
            if pins.setdefault(name, index.url) != index.url:
                raise ResolveError(
                    f"engine.indexes: {name} is pinned to two indexes",
                    hint="Keep it in the `packages` of one index.",
                )
    return pins


def _project(request: WheelRequest, requirements: tuple[str, ...], pins: Mapping[str, str]) -> str:
    # JSON strings are TOML strings as long as no surrogate pairs are written.
    def quoted(value: object) -> str:
        return json.dumps(value, ensure_ascii=False)

    labels = {url: f"pinned-{number}" for number, url in enumerate(dict.fromkeys(pins.values()))}
    lines = [
        "[project]",
        f"name = {quoted(PROJECT)}",
        'version = "0"',
        f'requires-python = "=={request.target.python}.*"',
        f"dependencies = {quoted(list(requirements))}",
        "[tool.uv.sources]",
        *(f"{quoted(name)} = {{ index = {quoted(labels[url])} }}" for name, url in pins.items()),
    ]
    for url, label in labels.items():
        lines += ["[[tool.uv.index]]", f"name = {quoted(label)}", f"url = {quoted(url)}",
                  "explicit = true"]  # fmt: skip
    return "\n".join(lines) + "\n"


def _lines(path: Path, lines: tuple[str, ...]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _each(
    flag: str, values: Iterator[str] | tuple[str, ...] | list[str] | map[str]
) -> Iterator[str]:
    for value in values:
        yield from (flag, value)


def _instant(stated: str) -> str:
    """A bare date means its end in UTC; uv would take this host's time zone."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", stated):
        return stated
    try:
        following = date.fromisoformat(stated) + timedelta(days=1)
    except (ValueError, OverflowError) as cause:
        raise ResolveError(f"engine.exclude_newer: {stated}: {cause}") from cause
    return f"{following.isoformat()}T00:00:00Z"


def _platform(target: Target) -> str:
    minor = int(target.glibc.split(".")[1])
    floor = next((level for level in KNOWN_FLOORS if level <= minor), None)
    if floor is None:
        raise ResolveError(
            f"target.glibc {target.glibc} is older than 2.17, the oldest that wheels are resolved for"
        )
    return f"{target.arch}-manylinux_2_{floor}"
