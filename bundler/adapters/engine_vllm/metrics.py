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
from bundler.instruments import MetricNames

# vllm/v1/metrics/loggers.py; the client library appends `_total` to counters. `gpu_` names: up to 0.11.
METRIC_NAMES = MetricNames(
    kv_usage=("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    running=("vllm:num_requests_running",),
    waiting=("vllm:num_requests_waiting",),
    preemptions=("vllm:num_preemptions_total",),
    generation_tokens=("vllm:generation_tokens_total",),
    prefix_hits=("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
    prefix_queries=("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
)

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
