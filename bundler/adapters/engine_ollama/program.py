"""What Ollama's program says of itself, read from its bytes without running it.

Go keeps its string constants one behind the other, without an end (cmd/link), so a variable's name stands in a run of
capitals that may go on with the next constant: a name is known when a run begins with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from zipfile import ZipFile

PREFIX = "OLLAMA_"
# The server's variables by envconfig/config.go of 0.33, to name the nearest one.
DOCUMENTED = (
    "OLLAMA_CONTEXT_LENGTH", "OLLAMA_DEBUG", "OLLAMA_FLASH_ATTENTION", "OLLAMA_GPU_OVERHEAD",
    "OLLAMA_HOST", "OLLAMA_KEEP_ALIVE", "OLLAMA_KV_CACHE_TYPE", "OLLAMA_LLM_LIBRARY",
    "OLLAMA_LOAD_TIMEOUT", "OLLAMA_MAX_LOADED_MODELS", "OLLAMA_MAX_QUEUE", "OLLAMA_MODELS",
    "OLLAMA_MULTIUSER_CACHE", "OLLAMA_NEW_ENGINE", "OLLAMA_NOHISTORY", "OLLAMA_NOPRUNE",
    "OLLAMA_NO_CLOUD", "OLLAMA_NUM_PARALLEL", "OLLAMA_ORIGINS", "OLLAMA_REMOTES",
    "OLLAMA_SCHED_SPREAD", "OLLAMA_VULKAN",
)  # fmt: skip
# Every release since 2024 reads these; without them it is another program, or its texts lie elsewhere.
_CERTAIN = ("OLLAMA_HOST", "OLLAMA_MODELS", "OLLAMA_KEEP_ALIVE", "OLLAMA_NUM_PARALLEL")
_RUN = re.compile(rb"OLLAMA_[A-Z0-9_]{1,250}?(?=OLLAMA_|[^A-Z0-9_]|$)")
_PROGRAM = re.compile(r"/data/bin/ollama$")
_RUNNER = re.compile(r"/data/lib/ollama/(?:[\w.-]+/)?(llama-server)$")
_PIECE, _OVERLAP = 1 << 24, 300
_LARGEST = 1 << 30


def read_program(wheel: ZipFile, version: str) -> tuple[tuple[str, ...], bool]:
    """The runs of capitals that begin with `OLLAMA_`, and whether the program names the version.

    No runs when the program is not one that is known. The version is set when it is linked
    (scripts/env.sh, `-X=.../version.Version`).
    """
    runs: set[bytes] = set()
    named = False
    for info in wheel.infolist():
        if not _PROGRAM.search(info.filename) or info.file_size > _LARGEST:
            continue
        with wheel.open(info) as program:
            rest = b""
            while piece := program.read(_PIECE):
                rest += piece
                runs.update(_RUN.findall(rest))
                named = named or version.encode() in rest
                rest = rest[-_OVERLAP:]
    found = tuple(sorted(run.decode() for run in runs))[:5000]
    return (found if all(knows(found, name) for name in _CERTAIN) else ()), named


def read_programs(wheel: ZipFile) -> tuple[str, ...]:
    """The runners that it starts: `llama-server` in the releases that have one."""
    matches = (_RUNNER.search(name) for name in wheel.namelist())
    return tuple(sorted({match[1] for match in matches if match}))


def knows(runs: Iterable[str], name: str) -> bool:
    """Whether the program reads a variable."""
    return any(run.startswith(name) for run in runs)
