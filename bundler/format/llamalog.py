"""llama-server's log -> what runs.

The forms are those of ggml-org/llama.cpp from 2025 on (src/llama-kv-cache.cpp, src/llama-context.cpp,
src/llama-model.cpp, tools/server/server-context.cpp); older ones say `kv_cache_unified`.

llama.cpp has no choice of MoE kernel: what decides its speed is how many layers lie on the GPU, whether
flash attention is on, and the types of the KV cache. On a CPU no line speaks of layers: that is unknown then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from bundler.domain.running import Running

_LONGEST = 2000
_SHOWN = 300
_OFFLOADED = re.compile(r"offloaded (\d+/\d+) layers to GPU")
# A build for GPUs says `offloaded` on a host without one, too: where the weights lie tells.
_BUFFER = re.compile(r"(\w+)\s+model buffer size =\s*([\d.]+) MiB")
# `auto` is a wish; the line that says what it was set to follows it.
_ATTENTION = re.compile(
    r"Flash Attention (?:was \w+, set to )?(enabled|disabled)|flash_attn\s*= (enabled|disabled|1|0)\b"
)
_KV = re.compile(
    r"kv_cache\w*: size = .*\( *(\d+) cells, .*?(?:/ *(\d+))? seqs\), K \((\w+)\): .*, V \((\w+)\): ",
    re.ASCII,
)
_SLOT_CONTEXT = re.compile(r"n_ctx_(?:seq|per_seq|slot)\s*= (\d+)")
_SLOTS = re.compile(r"(?:n_slots|n_parallel|n_seq_max)\s*= (\d+)")
_DELTA_NET = re.compile(r"fused Gated Delta Net \((\w+)\) (enabled|not supported|disabled)")


def read_log(lines: Iterable[str]) -> Running:
    """What the lines say; of several models or caches all of it."""
    reader = _Reader()
    for line in lines:
        reader.take(line[:_LONGEST])
    return reader.record()


class _Reader:
    def __init__(self) -> None:
        self._evidence: dict[str, str] = {}
        self._texts: dict[str, dict[str, None]] = {}
        self._numbers: dict[str, int] = {}
        self._buffers: dict[str, float] = {}
        self._offloaded = ""

    def take(self, line: str) -> None:
        if match := _OFFLOADED.search(line):
            self._offloaded = match[1]
            self._told("offloaded", line)
        if match := _BUFFER.search(line):
            self._buffers[match[1]] = self._buffers.get(match[1], 0) + float(match[2])
            self._told("offloaded", line)
        if match := _ATTENTION.search(line):
            on = (match[1] or match[2]) in ("enabled", "1")
            self._texts.pop("attention", None)
            self._text("attention", "flash" if on else "no flash", line)
        if match := _DELTA_NET.search(line):
            fused = "fused" if match[2] == "enabled" else "not fused"
            self._text("gdn", f"{fused} ({match[1]})", line)
        self._sizes(line)

    def _sizes(self, line: str) -> None:
        if match := _KV.search(line):
            # Cells of one stream; a cache that is not unified has a stream for each slot.
            cells = int(match[1]) * int(match[2] or 1)
            self._numbers["kv_tokens"] = max(cells, self._numbers.get("kv_tokens", 0))
            self._told("kv_tokens", line)
            for kind in match.group(3, 4):
                self._text("kv_dtype", kind, line)
        if match := _SLOTS.search(line):
            self._numbers["max_concurrency"] = int(match[1])
            self._told("max_concurrency", line)
        if match := _SLOT_CONTEXT.search(line):
            self._numbers["concurrency_tokens"] = int(match[1])

    def _text(self, field: str, value: str, line: str) -> None:
        self._texts.setdefault(field, {})[value] = None
        self._told(field, line)

    def _told(self, field: str, line: str) -> None:
        self._evidence[field] = line.strip()[:_SHOWN]

    def record(self) -> Running:
        texts: dict[str, Any] = {field: tuple(values) for field, values in self._texts.items()}
        numbers: dict[str, Any] = dict(self._numbers)
        offloaded = _layers(self._offloaded, self._buffers)
        return Running(offloaded=offloaded, evidence=self._evidence, **numbers, **texts)


def _layers(offloaded: str, buffers: dict[str, float]) -> str:
    """Layers on the GPU, and how much lies where."""
    if not buffers:
        return offloaded
    where = ", ".join(f"{name} {size:g} MiB" for name, size in buffers.items())
    on_gpu = any(not name.startswith(("CPU", "Host", "BLAS")) for name in buffers)
    return f"{offloaded or 'unknown'} ({where})" if on_gpu else f"none ({where})"
