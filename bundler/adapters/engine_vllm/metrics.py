"""vLLM's /metrics -> what the log left out.

`vllm:cache_config_info` is a gauge of 1 whose labels are the attributes of CacheConfig
(vllm/v1/metrics/loggers.py). They change with each release, so they are taken by name: `cache_dtype` in all,
`kv_cache_size_tokens` and `kv_cache_max_concurrency` from 0.25 on. Blocks times block size is not the number
of tokens of a hybrid model, and is not taken for it.
"""

from __future__ import annotations

import re
from typing import Any

from bundler.domain.running import Running

_INFO = re.compile(r"^vllm:cache_config_info\{(.*)\} 1(?:\.0)?\s*$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# Values that only say that something else decides.
_OPEN = ("", "auto", "None")


def complete(running: Running, metrics: str) -> Running:
    """The log's record with what only the metrics say; the log wins."""
    found = _INFO.search(metrics)
    if not found:
        return running
    labels = dict(_LABEL.findall(found[1]))
    update: dict[str, Any] = {}
    if not running.kv_dtype and labels.get("cache_dtype", "") not in _OPEN:
        update["kv_dtype"] = (labels["cache_dtype"],)
    if running.kv_tokens is None and labels.get("kv_cache_size_tokens", "").isdecimal():
        update["kv_tokens"] = int(labels["kv_cache_size_tokens"])
    told = dict.fromkeys(update, f"/metrics: {found[0][:200]}")
    return running.model_copy(update={**update, "evidence": {**running.evidence, **told}})
