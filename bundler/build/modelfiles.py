"""A model's files as facts are read from them: by path, a few small JSON files whole, others in part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bundler.domain.lock import LockedFile, LockedModel
from bundler.format.untrusted import NotAnObject, parse_object

Read = Callable[[LockedFile, int, int], bytes]
# The largest index of a real model has some 15 MB and 300 000 values; a tokenizer is never read.
_MAX_JSON = 64 * 2**20
_MAX_VALUES = 1_000_000


@dataclass(frozen=True)
class ModelFiles:
    """Files of one model; `faults` collects what is wrong with the JSON among them."""

    model: LockedModel
    read: Read
    faults: list[str] = field(default_factory=list)
    _parsed: dict[str, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def by_path(self) -> dict[str, LockedFile]:
        """Every file, sorted by path."""
        return {file.path: file for file in sorted(self.model.files, key=lambda file: file.path)}

    def top(self, suffix: str) -> list[LockedFile]:
        """Files of the model's own folder, none below it, with that ending."""
        return [
            file for path, file in self.by_path.items() if path.endswith(suffix) and "/" not in path
        ]

    def part(self, file: LockedFile) -> Callable[[int, int], bytes]:
        """What reads bytes of one file."""
        return lambda at, length: self.read(file, at, length)

    def json(self, path: str) -> dict[str, Any]:
        """A JSON object; empty when it is absent or broken, which is then a fault."""
        if path not in self._parsed:
            self._parsed[path] = self._parse(path)
        return self._parsed[path]

    def _parse(self, path: str) -> dict[str, Any]:
        file = self.by_path.get(path)
        if file is None:
            return {}
        if file.size > _MAX_JSON:
            self.faults.append(f"{path}: {file.size} bytes are too many to be read")
            return {}
        try:
            return parse_object(self.read(file, 0, file.size), values=_MAX_VALUES)
        except NotAnObject as fault:
            self.faults.append(f"{path}: {fault}")
            return {}
