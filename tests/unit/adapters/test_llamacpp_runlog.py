"""llama-server's log in the forms of its builds; the live one is in tests/journey."""

from __future__ import annotations

import pytest

from bundler.domain.running import Running, mismatches
from bundler.domain.spec import Settings
from bundler.format.llamalog import read_log

LOGS = {
    "gpu": """\
load_tensors: offloading 48 repeating layers to GPU
load_tensors: offloaded 49/49 layers to GPU
load_tensors:        CUDA0 model buffer size =  9279.83 MiB
load_tensors:   CPU_Mapped model buffer size =   127.51 MiB
llama_context: n_ctx_per_seq = 131072
llama_context: flash_attn    = auto
llama_kv_cache: size = 6528.00 MiB (131072 cells,  48 layers,  1/1 seqs), K (q8_0): 3264.00 MiB, V (q8_0): 3264.00 MiB
llama_context: Flash Attention was auto, set to enabled
srv    load_model: initializing slots, n_slots = 1
""",
    "gpu build without a gpu": """\
0.00.013 I load_tensors: offloaded 3/3 layers to GPU
0.00.013 I load_tensors:   CPU_Mapped model buffer size =     0.54 MiB
0.00.013 I llama_kv_cache: size =    0.53 MiB (   512 cells,   2 layers,  8/8 seqs), K (q8_0):    0.27 MiB, V (f16):    0.27 MiB
0.00.014 I resolve_fused_ops: Flash Attention disabled
0.00.015 I resolve_fused_ops: fused Gated Delta Net (autoregressive) enabled
0.00.015 I srv    load_model: initializing, n_slots = 8, n_ctx_slot = 512, kv_unified = 'false'
""",
    "unified, sliding window": """\
llama_kv_cache_unified: size =  320.00 MiB (  8192 cells,  10 layers,  4 seqs), K (f16):  160.00 MiB, V (f16):  160.00 MiB
llama_kv_cache_unified: size =   80.00 MiB (  1024 cells,  40 layers,  4 seqs), K (f16):   40.00 MiB, V (f16):   40.00 MiB
llama_context: flash_attn    = 1
""",
    "info level": "0.0 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 512\n",
}  # fmt: skip


def read(name: str) -> Running:
    return read_log(LOGS[name].splitlines())


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("gpu", "offloaded", "49/49 (CUDA0 9279.83 MiB, CPU_Mapped 127.51 MiB)"),
        ("gpu", "attention", ("flash",)),
        ("gpu", "kv_dtype", ("q8_0",)),
        ("gpu", "kv_tokens", 131072),
        ("gpu", "max_concurrency", 1.0),
        ("gpu", "concurrency_tokens", 131072),
        ("gpu build without a gpu", "offloaded", "none (CPU_Mapped 0.54 MiB)"),
        ("gpu build without a gpu", "attention", ("no flash",)),
        ("gpu build without a gpu", "kv_dtype", ("q8_0", "f16")),
        ("gpu build without a gpu", "kv_tokens", 4096),
        ("gpu build without a gpu", "gdn", ("fused (autoregressive)",)),
        ("unified, sliding window", "kv_tokens", 8192),
        ("unified, sliding window", "attention", ("flash",)),
        ("info level", "kv_dtype", ()),
        ("info level", "kv_tokens", None),
        ("info level", "offloaded", ""),
        ("info level", "max_concurrency", 2.0),
    ],
)
def test_what_the_log_says(name: str, field: str, value: object) -> None:
    assert getattr(read(name), field) == value


def test_one_half_of_the_cache_in_another_type_is_a_mismatch() -> None:
    running = read("gpu build without a gpu")
    [found] = mismatches(Settings(kv_cache_dtype="q8_0"), running)
    assert found.runs == "f16"
    assert not list(mismatches(Settings(kv_cache_dtype="q8_0"), read("info level")))
