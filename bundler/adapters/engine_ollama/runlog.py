"""Ollama's log -> what runs.

It starts a runner for the model, whose log is in its own. Since 2026 that is llama.cpp's llama-server, on log level
4 and without prefixes (llm/llama_server.go): its lines are those of `bundler/format/llamalog.py`. Before, and for
models of its own engine, it logs (runner/ollamarunner/runner.go, ml/backend/ggml/ggml.go):

    msg=load request="{Operation:commit ... Parallel:1 ... FlashAttention:Enabled KvSize:8192 KvCacheType:q8_0 ..."
    msg="offloaded 20/49 layers to GPU"

Operations `fit` and `alloc` are tries; `commit` is what runs. An empty KvCacheType is the documented default, f16: so a
type that the model or the GPU does not take (`unsupported OLLAMA_KV_CACHE_TYPE`) is seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from bundler.domain.running import Running
from bundler.format.llamalog import read_log as read_llama

_LONGEST = 2000
_SHOWN = 300
_LOAD = re.compile(r'msg=load request="\{Operation:commit ([^"]*)')
_FIELD = re.compile(r"(Parallel|FlashAttention|KvSize|KvCacheType):(\S*)")
_ATTENTION = {"Enabled": "flash", "true": "flash", "Disabled": "no flash", "false": "no flash"}
_STARTED = re.compile(r"(?:llama runner|llama-server) started in ([\d.]{1,12}) seconds")
_DROPPED = re.compile(
    r"unsupported OLLAMA_KV_CACHE_TYPE|must be enabled to use a quantized OLLAMA_KV_CACHE_TYPE"
)
_DIGITS = re.compile(r"[0-9]{1,12}", re.ASCII)


def read_log(lines: Iterable[str]) -> Running:
    """What the lines say; of a model that was loaded again, the last time."""
    found: dict[str, Any] = {}
    evidence: dict[str, str] = {}
    kept = [line[:_LONGEST] for line in lines]
    for line in kept:
        for name, value in _told(line):
            found[name] = value
            evidence[name] = line.strip()[:_SHOWN]
    runner = read_llama(kept)
    stated = {name: value for name, value in runner if value not in ((), None, "", {})}
    return Running.model_validate({**found, **stated, "evidence": {**evidence, **runner.evidence}})


def _told(line: str) -> Iterator[tuple[str, Any]]:
    if match := _STARTED.search(line):
        yield "phases", {"loading": float(match[1].rstrip(".") or 0)}
    if _DROPPED.search(line):
        yield "kv_dtype", ("f16",)
    if not (match := _LOAD.search(line)):
        return
    fields = dict(_FIELD.findall(match[1]))
    if attention := _ATTENTION.get(fields.get("FlashAttention", "")):
        yield "attention", (attention,)
    if "KvCacheType" in fields:
        yield "kv_dtype", (fields["KvCacheType"] or "f16",)
    slots, cells = _whole(fields.get("Parallel")), _whole(fields.get("KvSize"))
    if slots:
        yield "max_concurrency", slots
    if cells:
        yield "kv_tokens", cells
    if slots and cells:
        yield "concurrency_tokens", cells // slots


def _whole(text: str | None) -> int:
    return int(text) if text and _DIGITS.fullmatch(text) else 0
