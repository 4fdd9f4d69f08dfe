"""vLLM's log in the forms of its versions, and the live CPU engine's in tests/journey."""

from __future__ import annotations

import pytest

from bundler.adapters.engine_vllm.metrics import complete
from bundler.adapters.engine_vllm.runlog import read_log
from bundler.domain.running import Running, mismatches
from bundler.domain.spec import Settings

OLD = "(EngineCore_DP0 pid=812) INFO 10-02 09:11:12 "
NEW = "(EngineCore pid=812) INFO 12-01 09:11:12 "

LOGS = {
    "0.11.0": f"""{OLD}[core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='m', enforce_eager=False, compilation_config={{"level":3,"cudagraph_mode":[2,1]}}
{OLD}[cuda.py:366] Using Flash Attention backend on V1 engine.
{OLD}[fp8.py:476] Using DeepGemm kernels for Fp8MoEMethod.
{OLD}[default_loader.py:267] Loading weights took 12.51 seconds
{OLD}[gpu_model_runner.py:2653] Model loading took 33.7204 GiB and 15.123456 seconds
{OLD}[backends.py:559] torch.compile takes 31.02 s in total
{OLD}[kv_cache_utils.py:1087] GPU KV cache size: 1,823,456 tokens
{OLD}[kv_cache_utils.py:1091] Maximum concurrency for 131,072 tokens per request: 13.91x
{OLD}[gpu_model_runner.py:3480] Graph capturing finished in 11 secs, took 0.71 GiB
{OLD}[core.py:210] init engine (profile, create kv cache, warmup model) took 61.02 seconds
""",
    "0.13.0": f"""{OLD}[cuda.py:411] Using FLASH_ATTN attention backend out of potential backends: ('FLASH_ATTN', 'FLASHINFER')
{OLD}[fp8.py:208] Using Triton backend for FP8 MoE
""",
    "0.13.0 cutlass": f"{OLD}[fp8.py:190] Using Cutlass BlockScaled GroupedGemm backend for FP8 MoE\n",
    "0.14.1": f"{OLD}[fp8.py:105] Using FlashInfer TRTLLM backend for FP8 MoE\n"
    f"{OLD}[cuda.py:300] Using FLASHINFER backend.\n",
    "0.17.1": f"""{OLD}[cuda.py:405] Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'FLASHINFER', 'TRITON_ATTN'].
{OLD}[flash_attn.py:593] Using FlashAttention version 3
{OLD}[fp8.py:396] Using DEEPGEMM Fp8 MoE backend out of potential backends: ['AITER', 'FLASHINFER_TRTLLM', 'DEEPGEMM', 'TRITON'].
{OLD}[qwen3_next.py:156] Using FlashInfer GDN prefill kernel on CUDA compute capability 90
{OLD}[topk_topp_sampler.py:47] Using FlashInfer for top-p & top-k sampling.
{OLD}[cache.py:223] Using fp8 data type to store kv cache. It reduces the GPU memory footprint
{OLD}[fused_moe.py:1090] Using default MoE config. Performance might be sub-optimal! Config file not found at /x.json
{OLD}[kv_cache_utils.py:1314] GPU KV cache size: 2,411,008 tokens
{OLD}[kv_cache_utils.py:1319] Maximum concurrency for 131,072 tokens per request: 71.62x
""",
    "0.20.0": f"""{NEW}[cuda.py:420] Using TRITON_ATTN attention backend out of potential backends: ['TRITON_ATTN'].
{NEW}[__init__.py:310] Selected FlashInferFp8DeepGEMMDynamicBlockScaledKernel for Fp8LinearMethod
{NEW}[fp8.py:396] Using TRITON Fp8 MoE backend out of potential backends: ['TRITON'].
{NEW}[qwen_gdn_linear_attn.py:80] Using Triton/FLA GDN prefill kernel
{NEW}[fused_moe.py:1100] Using configuration from /x/E=256,N=512.json for MoE layer.
{NEW}[backends.py:600] torch.compile took 20.11 s in total
{NEW}[core.py:300] init engine (profile, create kv cache, warmup model) took 44.10 s (compilation: 20.11 s)
""",
    "0.28.0": f"{NEW}[kv_cache_utils.py:1500] GPU KV cache size: 2,411,008 tokens, Maximum concurrency for 131,072"
    " tokens per request: 18.39x\n",
    "0.33.0": f"""{NEW}[mxfp4.py:120] Using 'FLASHINFER_CUTLASS' Mxfp4 MoE backend.
{NEW}[qwen_gdn_linear_attn.py:90] Using flashinfer GDN prefill kernel (requested=auto, head_k_dim=128).
{NEW}[kv_cache_utils.py:1600] GPU + host KV cache size: 9,999 tokens, Maximum concurrency for 4,096 tokens per request: 2.44x
{NEW}[oracle.py:100] Using TRITON Unquantized MoE backend out of potential backends: ['TRITON'].
""",
    "cpu": "INFO 12-02 [x.py:1] Using CPU GDN prefill kernel (head_k_dim=128).\n"
    "INFO 12-02 [y.py:1] Using CPU Unquantized MoE backend out of potential backends: ['CPU'].\n",
}


def read(version: str) -> Running:
    return read_log(LOGS[version].splitlines())


@pytest.mark.parametrize(
    ("version", "field", "value"),
    [
        ("0.11.0", "attention", ("FLASH_ATTN",)),
        ("0.11.0", "moe", ("deepgemm",)),
        ("0.11.0", "kv_tokens", 1_823_456),
        ("0.11.0", "max_concurrency", 13.91),
        ("0.11.0", "concurrency_tokens", 131_072),
        ("0.11.0", "gdn", ()),
        ("0.11.0", "kv_dtype", ()),
        ("0.13.0", "attention", ("FLASH_ATTN",)),
        ("0.13.0", "moe", ("triton",)),
        ("0.13.0 cutlass", "moe", ("cutlass",)),
        ("0.14.1", "moe", ("flashinfer_trtllm",)),
        ("0.14.1", "attention", ("FLASHINFER",)),
        ("0.17.1", "moe", ("deepgemm",)),
        ("0.17.1", "attention", ("FLASH_ATTN",)),
        ("0.17.1", "gdn", ("FlashInfer",)),
        ("0.17.1", "sampler", ("FlashInfer",)),
        ("0.17.1", "kv_dtype", ("fp8",)),
        ("0.17.1", "moe_tuned", False),
        ("0.17.1", "max_concurrency", 71.62),
        ("0.20.0", "moe", ("triton",)),
        ("0.20.0", "moe_tuned", True),
        ("0.20.0", "linear", ("FlashInferFp8DeepGEMMDynamicBlockScaledKernel",)),
        ("0.20.0", "gdn", ("Triton/FLA",)),
        ("0.28.0", "kv_tokens", 2_411_008),
        ("0.28.0", "max_concurrency", 18.39),
        ("0.33.0", "moe", ("flashinfer_cutlass", "triton")),
        ("0.33.0", "gdn", ("flashinfer",)),
        ("0.33.0", "kv_tokens", 9_999),
        ("cpu", "moe", ("cpu",)),
        ("cpu", "gdn", ("CPU",)),
        ("cpu", "attention", ()),
        ("cpu", "kv_tokens", None),
    ],
)
def test_each_version_says_it_in_its_own_way(version: str, field: str, value: object) -> None:
    assert getattr(read(version), field) == value


def test_phases_have_their_times() -> None:
    assert read("0.11.0").phases == {
        "loading weights": 12.51,
        "loading": 15.123456,
        "compiling": 31.02,
        "capturing graphs": 11.0,
        "starting the engine": 61.02,
    }
    assert read("0.20.0").phases == {"compiling": 20.11, "starting the engine": 44.1}


def test_eager_mode_has_no_graphs() -> None:
    line = f"{NEW}[core.py:77] Initializing a V1 LLM engine with config: enforce_eager=True, cudagraph_mode"
    assert read_log([line]).graphs == ("none",)
    mode = f"{NEW}[core.py:77] compilation_config={{'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>}}"
    assert read_log([mode]).graphs == ("full_and_piecewise",)


def test_silence_is_unknown_and_odd_lines_are_harmless() -> None:
    assert read_log([]) == Running()
    assert read_log([]).words() == "the log says nothing"
    noise = [
        "Using",
        "Using  backend for FP8 MoE",
        "x" * 100_000,
        "\0\ud800",
        "Using Marlin backend",
    ]
    assert read_log(noise).moe == ()


def test_what_was_asked_for_is_compared_with_what_runs() -> None:
    found = list(mismatches(Settings(kernel="triton", kv_cache_dtype="fp8"), read("0.17.1")))
    assert [one.words() for one in found] == ["MoE kernel: asked triton, runs deepgemm"]
    assert "DEEPGEMM Fp8 MoE backend" in found[0].line
    assert not list(
        mismatches(Settings(kernel="deepgemm", kv_cache_dtype="fp8_e4m3"), read("0.17.1"))
    )
    assert not list(mismatches(Settings(), read("0.17.1")))
    # Silence is no mismatch.
    assert not list(mismatches(Settings(kernel="cutlass", kv_cache_dtype="fp8"), Running()))
    assert not list(mismatches(Settings(kernel="flashinfer"), read("0.14.1")))
    other = list(mismatches(Settings(kv_cache_dtype="fp8_e5m2"), read("0.17.1")))
    assert [one.words() for one in other] == ["KV-cache type: asked fp8_e5m2, runs fp8"]
    # One layer of another kind is enough.
    mixed = list(mismatches(Settings(kernel="triton"), read("0.33.0")))
    assert [one.runs for one in mixed] == ["flashinfer_cutlass"]


METRICS = """# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{{block_size="16",cache_dtype="{dtype}",enable_prefix_caching="True",engine="0"{more}}} 1.0
vllm:num_requests_running{{engine="0"}} 0.0
"""


@pytest.mark.parametrize(
    ("log", "dtype", "more", "kv_dtype", "tokens"),
    [
        ("", "fp8", ',num_gpu_blocks="100"', ("fp8",), None),
        ("", "fp8_e5m2", ',kv_cache_size_tokens="4096"', ("fp8_e5m2",), 4096),
        ("", "auto", ',kv_cache_size_tokens="None"', (), None),
        # The log wins: it speaks of what was made, the labels of what was configured.
        ("0.17.1", "fp8_e5m2", ',kv_cache_size_tokens="1"', ("fp8",), 2_411_008),
    ],
)
def test_the_metrics_say_what_the_log_left_out(
    log: str, dtype: str, more: str, kv_dtype: tuple[str, ...], tokens: int | None
) -> None:
    running = complete(read(log) if log else Running(), METRICS.format(dtype=dtype, more=more))
    assert (running.kv_dtype, running.kv_tokens) == (kv_dtype, tokens)
    if not log and kv_dtype:
        assert running.evidence["kv_dtype"].startswith("/metrics: vllm:cache_config_info")


@pytest.mark.parametrize(
    "text", ["", "no metrics", "vllm:cache_config_info{ 1", 'x{cache_dtype="fp8"} 1']
)
def test_other_metrics_say_nothing(text: str) -> None:
    assert complete(Running(), text) == Running()
