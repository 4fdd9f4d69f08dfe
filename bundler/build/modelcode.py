"""What of a model is code: pickles, Python files, and what its configuration would have run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from bundler.build.modelfiles import ModelFiles
from bundler.format.remotecode import MAX_NAMES, mapped_modules
from bundler.format.weightsafety import HEAD_BYTES, can_hold_code, is_program


def code_of(files: ModelFiles) -> dict[str, Any]:
    """The fields of ModelFacts that tell of code."""
    named = mapped_modules(files.json)
    others = (path for path in files.by_path if path.endswith(".py") and path not in named)
    return {
        "pickles": tuple(_pickles(files)),
        "code_files": tuple(path for path in files.by_path if can_hold_code(path)),
        "remote_code": named,
        "absent_code": tuple(
            path for path in named if "--" not in path and path not in files.by_path
        ),
        "python_files": tuple(others)[:MAX_NAMES],
    }


def _pickles(files: ModelFiles) -> Iterator[str]:
    for path, file in files.by_path.items():
        if is_program(path, file.size, partial(files.read, file, 0, min(file.size, HEAD_BYTES))):
            yield path
