"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
SpecArgument = Annotated[Path, typer.Argument(help="Spec file (YAML).", show_default=False)]
BundleArgument = Annotated[Path, typer.Argument(help="Folder with the bundle.", show_default=False)]
KeysOption = Annotated[
    list[Path] | None,
    typer.Option("--key", help="Trusted public key (PEM); may be given several times."),
]
UnsignedOption = Annotated[
    bool,
    typer.Option("--unsigned", help="Accept a bundle without a signature. Every report says so."),
]
RootOption = Annotated[
    Path,
    typer.Option(
        "--root", envvar="AIRBUNDLE_ROOT", help="Installation root.", show_default="~/airbundle"
    ),
]
CacheOption = Annotated[
    Path | None,
    typer.Option("--cache", envvar="AIRBUNDLE_CACHE", help="Store of downloaded files."),
]


def default_root() -> Path:
    """Where a service is installed when nothing is said."""
    return Path.home() / "airbundle"


def cache_folder(given: Path | None) -> Path:
    """The download store: as given, else in the user's cache folder (XDG base directories)."""
    if given is not None:
        return given
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airbundle"
