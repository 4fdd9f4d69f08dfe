"""What llama-server's program says of its own options: read from its help text, without running it.

Since the end of 2025 the log has levels 0 to 5 with 3 (info) as default, and the lines of the library (layers on
the GPU, types of the KV cache, flash attention) are on level 4 (common/arg.cpp, common/log.h). Before, the
default showed them, and 4 was for debugging: requests and their prompts are logged there. So the level is set
only where the program itself explains it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from zipfile import ZipFile

from bundler.instruments import MetricNames

# tools/server/server-context.cpp. The ratio was there until 2025; a cache hit counts prompt tokens.
METRIC_NAMES = MetricNames(
    kv_usage=("llamacpp:kv_cache_usage_ratio",),
    running=("llamacpp:requests_processing",),
    waiting=("llamacpp:requests_deferred",),
    generation_tokens=("llamacpp:tokens_predicted_total",),
    prefix_hits=("llamacpp:prompt_tokens_cached_total",),
)
METRICS = "--metrics"
VERBOSITY = "--verbosity"
TRACE = "4"
# The options' help lies in a library of its own, or in the program.
_HOLDERS = re.compile(r"(?:^|/)(?:libllama-common\.(?:so|dylib)[\d.]*|llama-server[\w.-]*)$")
_LARGEST = 256 * 2**20
_LEVELS = re.compile(rb" - (\d): (?:generic output|error|warning|info|trace|debug)\b")
_FLAG = re.compile(rb"(?<![-\w])(--?[a-zA-Z][a-zA-Z0-9-]*)\0")
# Without these it is another program, or its texts lie elsewhere.
_CERTAIN = {"--ctx-size", "--cache-type-k", "--n-gpu-layers"}
_MORE = re.compile(rb" - 4: trace \(more info\)")


def read_flags(wheel: ZipFile) -> dict[str, tuple[str, ...]]:
    """Every flag that the program's texts name -> its choices; empty when they are not those of llama-server.

    A linker keeps a text that ends another one only once, so `-ngl` may be the end of `--spec-draft-ngl` alone:
    see `knows`.
    """
    for data in _texts(wheel):
        named = {flag.decode() for flag in _FLAG.findall(data)}
        if named >= _CERTAIN:
            explained = bool(_MORE.search(data))
            levels = {level.decode() for level in _LEVELS.findall(data)} if explained else set()
            return {**dict.fromkeys(sorted(named), ()), VERBOSITY: tuple(sorted(levels))}
    return {}


def knows(flags: Iterable[str], word: str) -> bool:
    """Whether the program takes a flag. `_` stands for `-` in long ones (common/arg.cpp)."""
    plain = "--" + word[2:].replace("_", "-") if word.startswith("--") else word
    return any(flag.endswith(plain) for flag in flags)


def _texts(wheel: ZipFile) -> Iterator[bytes]:
    """The files that may hold the options' help, each of the copies under several names once."""
    holders = [one for one in wheel.infolist() if _HOLDERS.search(one.filename)]
    seen: set[tuple[int, int]] = set()
    for info in sorted(holders, key=lambda one: one.filename):
        if info.file_size <= _LARGEST and (info.file_size, info.CRC) not in seen:
            seen.add((info.file_size, info.CRC))
            yield wheel.read(info)
