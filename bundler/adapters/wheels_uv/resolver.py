"""WheelResolver: uv, which resolves for a foreign target and states hash and size of each wheel.

`uv pip compile --format pylock.toml` gives, for each package, every wheel that could fit; the choice
among them is ours (build/tags.py does it through the `choose` function, by tag rank). uv knows a
closed list of glibc floors; the highest one that is not above the target's is used to resolve, the
target's own to choose.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import tomli

from bundler.adapters.wheels_uv.pins import Origin, check_pins, needed, read_origins
from bundler.adapters.wheels_uv.question import ANSWER, KNOWN_FLOORS, Question, pinned
from bundler.adapters.wheels_uv.refusal import (
    Refusal,
    describe,
    missing_wheels,
    package_of,
    read_refusal,
)
from bundler.adapters.wheels_uv.sdists import SdistBuilder, Source
from bundler.domain.hostindex import HostIndex
from bundler.domain.lock import LockedWheel
from bundler.domain.target import Target
from bundler.errors import ResolveError, ToolError, as_error
from bundler.ports import CommandRunner, WheelRequest

Choose = Callable[[Iterable[tuple[str, Any]], Target], Any]
# A closure with more packages without wheels than this is another kind of problem.
_MAX_ROUNDS = 20
_PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


class UvResolver:
    """Resolves with the uv of this environment, configured as pip and uv are on this host.

    Args:
        runner: starts uv, and pip for builds.
        uv: uv's path.
        python: the interpreter that uv asks and that builds.
        index: this host's indexes.
        choose: picks the target's wheel among file names.
        host: this host as a target, None when it could be none.
    """

    # Older than 2.28 only when the spec says so: hardly anything but pure Python admits it any more.
    floors = tuple(f"2.{minor}" for minor in sorted(KNOWN_FLOORS) if minor >= 28)

    def __init__(
        self,
        *,
        runner: CommandRunner,
        uv: str,
        python: str,
        index: HostIndex,
        choose: Choose,
        host: Target | None = None,
    ) -> None:
        self._runner = runner
        self._uv = uv
        self._python = python
        self._index = index
        self._choose = choose
        self._builder = SdistBuilder(runner=runner, python=python, choose=choose, host=host)

    def resolve(self, request: WheelRequest) -> tuple[LockedWheel, ...]:
        """The closure, one wheel for each package, sorted by name."""
        question = Question(request)
        for _ in range(_MAX_ROUNDS):
            answer = self._closure(question)
            if not isinstance(answer, Refusal):
                return self._wheels(answer, question)
            question = self._with_built(question, answer)
        raise ResolveError(
            f"more than {_MAX_ROUNDS} packages have no wheel: {', '.join(request.requirements)}"
        )

    def _closure(self, question: Question) -> list[dict[str, Any]] | Refusal:
        """Uv's packages, every pin proved."""
        pins = pinned(question.request)
        if not pins:
            return self._packages(question)
        settled = self._origins(question, tuple(pins))
        if isinstance(settled, Refusal):
            return settled
        forced, origins = settled
        check_pins(origins, pins, shared=self._shared(question.request))
        packages = self._packages(replace(question, forced=forced))
        if isinstance(packages, Refusal):
            return packages
        for package in packages:
            origin = origins.get(str(package["name"]))
            if origin is None or origin.version not in ("", str(package.get("version", ""))):
                raise ResolveError(
                    f"{package['name']}: the index changed while it was asked", hint="Run it again."
                )
        return packages

    def _origins(
        self, question: Question, pins: tuple[str, ...]
    ) -> tuple[tuple[str, ...], dict[str, Origin]] | Refusal:
        """The pinned packages that the closure needs, and where uv says that each package is from."""
        forced = pins
        while True:
            answer = self._ask(replace(question, forced=forced, mode="origins"))
            if isinstance(answer, Refusal):
                # A pin may name what its index does not have, as long as nothing needs it.
                fewer = tuple(name for name in forced if name not in answer.unknown)
                if fewer == forced:
                    return answer
            else:
                origins = read_origins(answer)
                fewer = needed(origins, forced, question.request.requirements)
                if fewer == forced:
                    return forced, origins
            forced = fewer

    def _shared(self, request: WheelRequest) -> list[str]:
        host = self._index
        places = [host.default_index, request.index, *host.extra_indexes, *host.uv_indexes]
        places += [place.url for place in request.indexes if not place.packages]
        return [place for place in places if place]

    def _packages(self, question: Question) -> list[dict[str, Any]] | Refusal:
        text = self._ask(question)
        return text if isinstance(text, Refusal) else list(tomli.loads(text).get("packages", []))

    def _ask(self, question: Question) -> str | Refusal:
        with tempfile.TemporaryDirectory(prefix="airbundle-resolve-") as name:
            folder = Path(name)
            argv = question.write(folder, uv=self._uv, python=self._python, index=self._index)
            try:
                done = self._runner.run(argv, env=question.env(self._index))
            except ToolError as cause:
                raise ResolveError(f"uv: {cause}") from cause
            if done.returncode != 0:
                return read_refusal(done.stderr)
            return (folder / ANSWER).read_text(encoding="utf-8")

    def _with_built(self, question: Question, refusal: Refusal) -> Question:
        """The question to ask next, with wheels built for what has none.

        Raises:
            ResolveError: it is not about wheels, or nothing may be built, or not that.
        """
        request = question.request
        missing = refusal.without_wheel
        if not missing:
            raise refusal.error(request.requirements)
        if not request.build_sdists:
            raise self._all_missing(question, missing)
        source_only, for_others = self._sorted_out(question, missing)
        if not source_only:
            raise missing_wheels((), for_others, request.target)
        built = tuple(self._build(question, requirement) for requirement in source_only)
        if set(built) <= set(question.built):
            raise missing_wheels(source_only, for_others, request.target)
        return replace(question, built=(*question.built, *built))

    def _build(self, question: Question, requirement: str) -> Path:
        answer = self._packages(question.about(requirement, "source"))
        if isinstance(answer, Refusal):
            raise answer.error([requirement])
        found = next((item for item in answer if item.get("sdist")), None)
        if found is None:
            raise ResolveError(f"{requirement}: the index has no source of it either")
        sdist = found["sdist"]
        source = Source(
            name=str(found["name"]),
            version=str(found.get("version", "")),
            url=_url(sdist),
            sha256=str(sdist["hashes"]["sha256"]),
        )
        return self._builder.build(source, question.request)

    def _all_missing(self, question: Question, missing: Mapping[str, bool]) -> ResolveError:
        """Uv stops at the first package without a wheel; leave it out and ask for the next."""
        found = dict(missing)
        for _ in range(_MAX_ROUNDS):
            without = tuple({package_of(requirement) for requirement in found})
            answer = self._closure(replace(question, without=without))
            more = answer.without_wheel if isinstance(answer, Refusal) else {}
            if not set(more) - set(found):
                break
            found |= more
        source_only, for_others = self._sorted_out(question, found)
        return missing_wheels(source_only, for_others, question.request.target)

    def _sorted_out(
        self, question: Question, missing: Mapping[str, bool]
    ) -> tuple[list[str], list[str]]:
        """Those that exist as source alone, and those whose wheels are for other targets."""
        source_only: list[str] = []
        for_others: list[str] = []
        for requirement, has_others in sorted(missing.items()):
            has_others = has_others or self._has_any_wheel(question, requirement)
            (for_others if has_others else source_only).append(requirement)
        return source_only, for_others

    def _has_any_wheel(self, question: Question, requirement: str) -> bool:
        """Whether the index has a wheel of it for any platform and any Python that we know."""
        target = question.request.target
        for python in dict.fromkeys((target.python, *_PYTHONS)):
            other = target.model_copy(update={"python": python})
            asked = replace(question, request=replace(question.request, target=other))
            answer = self._packages(asked.about(requirement, "any-platform"))
            if not isinstance(answer, Refusal):
                return True
        return False

    def _wheels(
        self, packages: Iterable[Mapping[str, Any]], question: Question
    ) -> tuple[LockedWheel, ...]:
        wheels = (self._wheel(package, question) for package in packages)
        return tuple(sorted(wheels, key=lambda wheel: wheel.name))

    def _wheel(self, package: Mapping[str, Any], question: Question) -> LockedWheel:
        name, version = str(package["name"]), str(package.get("version", ""))
        target = question.request.target
        wheels = list(package.get("wheels", []))
        if "archive" in package:
            # A requirement with an address of its own: `name @ https://...whl`.
            wheels.append(package["archive"])
        chosen = self._choose([(_filename(wheel), wheel) for wheel in wheels], target)
        if chosen is None:
            raise ResolveError(
                f"{name} {version}: no wheel for {describe(target)}"
                f" ({len(wheels)} wheels for other targets)",
                without_wheel=(name,),
            )
        if "sha256" not in chosen.get("hashes", {}):
            raise ResolveError(f"{name} {version}: the index states no SHA-256 of {_url(chosen)}")
        uploaded = chosen.get("upload-time")
        url = _url(chosen)
        with as_error(ResolveError, f"{name} {version}: what the index states"):
            return LockedWheel(
                name=name,
                version=version,
                filename=_filename(chosen),
                url=url,
                size=chosen.get("size"),
                sha256=chosen["hashes"]["sha256"],
                uploaded=uploaded.strftime("%Y-%m-%dT%H:%M:%SZ") if uploaded else None,
                built=any(url.startswith(folder.as_uri() + "/") for folder in question.built),
            )


def _url(file: Mapping[str, Any]) -> str:
    return str(file.get("url") or Path(file["path"]).resolve().as_uri())


def _filename(wheel: Mapping[str, Any]) -> str:
    place = wheel.get("name") or urlsplit(str(wheel.get("url", ""))).path or wheel.get("path", "")
    return unquote(str(place)).rsplit("/", 1)[-1]
