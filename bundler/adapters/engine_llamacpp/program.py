"""What llama-server's program says of its own options: read from its help text, without running it.

Since the end of 2025 the log has levels 0 to 5 with 3 (info) as default, and the lines of the library (layers on
the GPU, types of the KV cache, flash attention) are on level 4 (common/arg.cpp, common/log.h). Before, the
default showed them, and 4 was for debugging: requests and their prompts are logged there. So the level is set
only where the program itself explains it.
"""

from __future__ import annotations

import re
from zipfile import ZipFile

VERBOSITY = "--verbosity"
TRACE = "4"
# The options' help lies in a library of its own, or in the program.
_HOLDERS = re.compile(r"(?:^|/)(?:libllama-common\.(?:so|dylib)[\d.]*|llama-server[\w.-]*)$")
_LARGEST = 256 * 2**20
_LEVELS = re.compile(rb" - (\d): (?:generic output|error|warning|info|trace|debug)\b")
_MORE = re.compile(rb" - 4: trace \(more info\)")


def log_levels(wheel: ZipFile) -> tuple[str, ...]:
    """The levels of `--verbosity`; empty when the program does not explain them as since the end of 2025."""
    holders = [one for one in wheel.infolist() if _HOLDERS.search(one.filename)]
    sizes: set[tuple[int, int]] = set()
    for info in sorted(holders, key=lambda one: one.filename):
        if info.file_size > _LARGEST or (info.file_size, info.CRC) in sizes:
            continue
        sizes.add((info.file_size, info.CRC))
        data = wheel.read(info)
        if _MORE.search(data):
            return tuple(sorted({level.decode() for level in _LEVELS.findall(data)}))
    return ()
