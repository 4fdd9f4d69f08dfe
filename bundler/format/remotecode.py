"""Which Python files a model's configuration would have run: transformers' `auto_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bundler.format.untrusted import shown

# Every file that transformers reads `auto_map` from.
_MAPPED = (
    "config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json",
    "generation_config.json", "video_preprocessor_config.json",
)  # fmt: skip
MAX_NAMES = 1000


def mapped_modules(json: Callable[[str], dict[str, Any]]) -> tuple[str, ...]:
    """What `auto_map` names: files of the model, or `repo--module.py` of another repository.

    Args:
        json: gives a file of the model as a JSON object, an empty one when it is none.
    """
    found = set()
    for path in _MAPPED:
        mapped = json(path).get("auto_map")
        values = list(mapped.values()) if isinstance(mapped, dict) else [mapped]
        for value in values:
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str) and "." in text:
                    found.add(_module(text))
    return tuple(sorted(found))[:MAX_NAMES]


def _module(text: str) -> str:
    repository, _, rest = text.rpartition("--")
    module = rest.rpartition(".")[0].replace(".", "/")
    return shown(f"{repository}--{module}.py" if repository else f"{module}.py")
