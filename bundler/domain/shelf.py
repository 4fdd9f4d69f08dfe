"""What a root gives to other hosts: wheels by project, models by repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ShelfFile:
    """One file: where it lies, its size in bytes, and its SHA-256."""

    path: Path
    size: int
    sha256: str


@dataclass(frozen=True)
class ShelfModel:
    """One model at one revision: the commit, and file name -> file."""

    commit: str
    files: Mapping[str, ShelfFile]


@dataclass(frozen=True)
class Shelf:
    """Everything to be had.

    `wheels`: normalized project name -> file name -> file. `models`: repository -> its revisions, newest first.
    """

    wheels: Mapping[str, Mapping[str, ShelfFile]]
    models: Mapping[str, tuple[ShelfModel, ...]]


def project_of(wheel: str) -> str:
    """The normalized name of a wheel's project (PEP 427, PEP 503)."""
    return re.sub(r"[-_.]+", "-", wheel.partition("-")[0]).lower()
