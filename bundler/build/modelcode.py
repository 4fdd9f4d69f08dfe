"""What of a model is code: pickles, Python files, and what its configuration would have run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from bundler.build.modelfiles import ModelFiles
from bundler.build.weightsafety import HEAD_BYTES, can_hold_code, is_program
from bundler.format.untrusted import shown

# Every file that transformers reads `auto_map` from.
_MAPPED = (
    "config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json",
    "generation_config.json", "video_preprocessor_config.json",
)  # fmt: skip
_MAX_NAMES = 1000


def code_of(files: ModelFiles) -> dict[str, Any]:
    """The fields of ModelFacts that tell of code."""
    named = _auto_map(files)
    others = (path for path in files.by_path if path.endswith(".py") and path not in named)
    return {
        "pickles": tuple(_pickles(files)),
        "code_files": tuple(path for path in files.by_path if can_hold_code(path)),
        "remote_code": named,
        "absent_code": tuple(
            path for path in named if "--" not in path and path not in files.by_path
        ),
        "python_files": tuple(others)[:_MAX_NAMES],
    }


def _pickles(files: ModelFiles) -> Iterator[str]:
    for path, file in files.by_path.items():
        if is_program(path, file.size, partial(files.read, file, 0, min(file.size, HEAD_BYTES))):
            yield path


def _auto_map(files: ModelFiles) -> tuple[str, ...]:
    """What `auto_map` names: files of the model, or `repo--module.Class` of another repository."""
    found = set()
    for path in _MAPPED:
        mapped = files.json(path).get("auto_map")
        values = list(mapped.values()) if isinstance(mapped, dict) else [mapped]
        for value in values:
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str) and "." in text:
                    found.add(_module(text))
    return tuple(sorted(found))[:_MAX_NAMES]


def _module(text: str) -> str:
    repository, _, rest = text.rpartition("--")
    module = rest.rpartition(".")[0].replace(".", "/")
    return shown(f"{repository}--{module}.py" if repository else f"{module}.py")
