"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bundler.errors import HostError

if TYPE_CHECKING:
    from bundler.format.sealing import VolumeKey

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Show what would be done, and change nothing."),
]
SpecArgument = Annotated[
    Path, typer.Argument(help="Spec file (YAML).", show_default=False, readable=False)
]
BundleArgument = Annotated[
    Path, typer.Argument(help="Folder with the bundle.", show_default=False, readable=False)
]
KeysOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--key", help="Trusted public key (PEM); may be given several times.", readable=False
    ),
]
PolicyOption = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        envvar="AIRBUNDLE_POLICY",
        help="The site's policy (YAML); the root's when left out.",
        show_default=False,
        readable=False,
    ),
]
UnsignedOption = Annotated[
    bool,
    typer.Option("--unsigned", help="Accept a bundle without a signature. Every report says so."),
]
VolumeKeyOption = Annotated[
    Path | None,
    typer.Option(
        "--volume-key",
        envvar="AIRBUNDLE_VOLUME_KEY",
        help="Key of sealed volumes; it travels by another way than the bundle.",
        show_default=False,
        readable=False,
    ),
]
RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        envvar="AIRBUNDLE_ROOT",
        help="Installation root.",
        show_default="~/airbundle",
        readable=False,
    ),
]
CacheOption = Annotated[
    Path | None,
    typer.Option(
        "--cache", envvar="AIRBUNDLE_CACHE", help="Store of downloaded files.", readable=False
    ),
]


def volume_key(path: Path | None) -> VolumeKey | None:
    """The key in a file, None when none was given."""
    from bundler.format.sealing import VolumeKey

    return VolumeKey.read(path) if path else None


def root_folder(given: Path | None) -> Path:
    """Where a service is installed: as given, else in the user's home."""
    return given if given is not None else _home() / "airbundle"


def cache_folder(given: Path | None) -> Path:
    """The download store: as given, else in the user's cache folder (XDG base directories)."""
    if given is not None:
        return given
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else _home() / ".cache") / "airbundle"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as cause:
        raise HostError(
            "this user has no home folder", hint="Set HOME, or give --root or --cache."
        ) from cause
