"""llama-server's log -> what runs.

The forms are those of ggml-org/llama.cpp from 2025 on (src/llama-kv-cache.cpp, src/llama-context.cpp,
src/llama-model.cpp, tools/server/server-context.cpp); older ones say `kv_cache_unified`.

llama.cpp has no choice of MoE kernel: what decides its speed is how many layers lie on the GPU, whether
flash attention is on, and the types of the KV cache. On a CPU no line speaks of layers: that is unknown then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bundler.domain.running import Running

_LONGEST = 2000
_SHOWN = 300
_OFFLOADED = re.compile(r"offloaded (\d+/\d+) layers to GPU")
# `auto` is a wish; the line that says what it was set to follows it.
_ATTENTION = re.compile(
    r"Flash Attention was \w+, set to (enabled|disabled)|flash_attn\s*= (enabled|disabled|1|0)\b"
)
_KV = re.compile(
    r"kv_cache\w*: size = .*\( *(\d+) cells, .*\), K \((\w+)\): .*, V \((\w+)\): ", re.ASCII
)
_SLOT_CONTEXT = re.compile(r"n_ctx_(?:seq|per_seq)\s*= (\d+)")
_SLOTS = re.compile(r"(?:n_slots|n_parallel|n_seq_max)\s*= (\d+)")
_DELTA_NET = re.compile(r"fused Gated Delta Net \((\w+)\) (enabled|not supported|disabled)")


def read_log(lines: Iterable[str]) -> Running:
    """What the lines say; of several models or caches all of it."""
    evidence: dict[str, str] = {}
    texts: dict[str, dict[str, None]] = {}
    cells = slots = context = 0
    offloaded = ""

    def note(field: str, value: str, line: str) -> None:
        texts.setdefault(field, {})[value] = None
        evidence[field] = line.strip()[:_SHOWN]

    for full in lines:
        line = full[:_LONGEST]
        if match := _OFFLOADED.search(line):
            offloaded, evidence["offloaded"] = match[1], line.strip()[:_SHOWN]
        if match := _ATTENTION.search(line):
            on = (match[1] or match[2]) in ("enabled", "1")
            texts.pop("attention", None)
            note("attention", "flash" if on else "no flash", line)
        if match := _KV.search(line):
            cells = max(cells, int(match[1]))
            evidence["kv_tokens"] = line.strip()[:_SHOWN]
            for kind in match.group(2, 3):
                note("kv_dtype", kind, line)
        if match := _DELTA_NET.search(line):
            note("gdn", f"{'fused' if match[2] == 'enabled' else 'not fused'} ({match[1]})", line)
        if match := _SLOTS.search(line):
            slots = int(match[1])
            evidence["max_concurrency"] = line.strip()[:_SHOWN]
        if match := _SLOT_CONTEXT.search(line):
            context = int(match[1])
    return Running(
        offloaded=offloaded,
        kv_tokens=cells or None,
        max_concurrency=float(slots) if slots else None,
        concurrency_tokens=context or None,
        evidence=evidence,
        **{field: tuple(values) for field, values in texts.items()},
    )
