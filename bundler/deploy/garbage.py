"""What lies in a root and is of no use to anyone: found first, removed only on request.

Nothing is garbage that a rerun of a command would continue: files on their way in of an imported bundle,
and releases that were made anew and not yet put in their place, stay.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bundler.deploy.diskuse import Freed
from bundler.deploy.launch import Launcher
from bundler.deploy.releases import Release, read_release, releases
from bundler.deploy.removing import remove_tree
from bundler.deploy.root import VARIANT_FILE, Root
from bundler.deploy.switching import waits_for_its_place
from bundler.deploy.trustroot import Gate, open_record
from bundler.errors import disk_errors
from bundler.format import layout
from bundler.format.atomic import left_behind
from bundler.format.blocks import content_id
from bundler.format.rehearsal import instead, rehearsing

Kind = Literal["release", "object", "partial", "tool", "runtime", "temporary"]
# Of a bundle's SHA-256, in its id and in the name of its tool.
_DIGITS = 12
# The launcher is five lines of text; more is somebody's own.
_LAUNCHER_BYTES = 64 * 1024


@dataclass(frozen=True)
class Garbage:
    """A path that nobody needs, why, and the bytes that its removal gives back."""

    path: Path
    kind: Kind
    why: str
    size: int


@dataclass(frozen=True)
class Collector:
    """Finds and removes garbage. Hold the root meanwhile."""

    root: Root
    launcher: Launcher
    gate: Gate

    def find(self) -> list[Garbage]:
        """Everything that would go, with what it gives back when all of it goes in this order.

        Raises:
            TrustError: a bundle's records were changed, so that what it needs is not known.
        """
        freed = Freed()
        return [Garbage(path, kind, why, freed.by(path)) for path, kind, why in self._candidates()]

    def remove(self, found: Iterable[Garbage]) -> None:
        """Remove what was found."""
        for one in found:
            if not instead("remove", one.path, one.size, one.why):
                remove_tree(one.path)
        if rehearsing():
            return
        for folder in (*self.root.store.glob("*"), self.root.gone, self.root.again("")):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def _candidates(self) -> Iterator[tuple[Path, Kind, str]]:
        yield from self._releases()
        yield from self._stored()
        tools = dict(self._tools())
        yield from ((folder, "tool", why) for folder, why in tools.items())
        yield from self._runtimes(tools)
        for path in self._temporary():
            yield path, "temporary", "left behind by a command that was killed"

    def _releases(self) -> Iterator[tuple[Path, Kind, str]]:
        running = {state.release_id for state in self.launcher.living()}
        for one in releases(self.root):
            if (
                one.record is None
                and one.name not in running
                and not _waits_for_its_base(self.root, one)
            ):
                yield one.folder, "release", "half installed"
        for folder in sorted(self.root.again("").glob("*")):
            if not waits_for_its_place(self.root, folder.name):
                yield folder, "release", "half made anew"
        for folder in sorted(self.root.gone.glob("*")):
            yield folder, "release", "half removed"

    def _stored(self) -> Iterator[tuple[Path, Kind, str]]:
        named = {
            content_id(entry)
            for folder in self.root.bundles()
            for entry in open_record(self.root, folder.name, self.gate).manifest.payload
        }
        for path in sorted(self.root.store.glob("[0-9a-f][0-9a-f]/*")):
            if path.name not in named:
                yield path, "object", "no imported bundle names it"
        for path in sorted(self.root.partial("").glob("*")):
            if path.name.removesuffix(".blocks") not in named:
                yield path, "partial", "on its way in for no imported bundle"

    def _tools(self) -> Iterator[tuple[Path, str]]:
        """What the bootstrap installed from bundles that are gone. It names the folders by their digests.

        The one that runs this stays, and the one that `bin/airbundle` starts, whatever name the root had then. A
        half installed one stays as well: the bootstrap goes on from it.
        """
        launcher = self.root.path / "bin" / "airbundle"
        started = os.path.realpath(launcher) + os.sep
        with disk_errors("reading", launcher):
            if launcher.exists():
                with launcher.open("rb") as file:
                    started += os.fsdecode(file.read(_LAUNCHER_BYTES))
        names = [folder.name for folder in self.root.bundles()]
        names += [one.bundle_id for one in releases(self.root)]
        kept = {name[-_DIGITS:] for name in names}
        for folder in sorted(self.root.path.glob("tool/*/")):
            half = folder.with_name(f"{folder.name}.partial")
            used = Path(os.path.realpath(sys.prefix)).is_relative_to(os.path.realpath(folder))
            used = used or f"tool/{folder.name}/" in started
            if folder.suffix == ".partial":
                if folder.with_suffix("").joinpath("complete").exists():
                    yield folder, "half installed"
            elif folder.name not in kept and not used and not half.exists():
                yield folder, "came with a bundle that is no longer here"

    def _runtimes(self, tools: Collection[Path]) -> Iterator[tuple[Path, Kind, str]]:
        """Unpacked Pythons on which neither a release nor a tool runs that stays."""
        places = [*self.root.releases.glob("*"), *self.root.again("").glob("*")]
        pythons = [place / "venv/bin/python" for place in places]
        pythons += [
            folder / "venv/bin/python"
            for folder in self.root.path.glob("tool/*")
            if folder not in tools
        ]
        used = {Path(os.path.realpath(python)) for python in pythons}
        used.add(Path(os.path.realpath(sys.executable)))
        for folder in sorted(self.root.runtime("").glob("*")):
            real = Path(os.path.realpath(folder))
            if not any(python.is_relative_to(real) for python in used):
                half = folder.name.endswith(".partial")
                yield folder, "runtime", "half unpacked" if half else "no release runs on it"

    def _temporary(self) -> Iterator[Path]:
        root = self.root
        places = [root.path, root.trust, *root.trust.glob("*/"), *root.trust.glob("*/*/")]
        places += [root.path / "run", root.acceptance, *root.acceptance.glob("*/")]
        places += root.path.glob("bundles/**/")
        places += [one.folder for one in releases(root) if read_release(one.folder)]
        for place in dict.fromkeys(places):
            yield from left_behind(place)
        for link in (root.current, root.previous):
            temporary = link.with_name(f"{link.name}.new")
            if temporary.is_symlink():
                yield temporary


def _waits_for_its_base(root: Root, one: Release) -> bool:
    """Whether it is whole but for the release whose files it uses, which an `install` makes again."""
    imported = (root.bundle(one.bundle_id) / layout.MANIFEST).is_file()
    return imported and (one.folder / VARIANT_FILE).is_file()
