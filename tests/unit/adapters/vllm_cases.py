"""Situations for the review of vLLM: facts as its wheels state them, models and targets."""

from collections.abc import Iterable

from bundler.adapters.engine_vllm.adapter import VllmEngine
from bundler.adapters.engine_vllm.case import release
from bundler.domain.engine_facts import AttentionBackend, EngineFacts
from bundler.domain.findings import Finding
from bundler.domain.model_facts import LayerGroup, ModelFacts
from bundler.domain.spec import Service, Settings
from bundler.domain.target import Gpu, Target
from bundler.ports import Advice, Situation

H200, H100, A100 = "NVIDIA H200", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"
L40S, B200, RTX_3090 = "NVIDIA L40S", "NVIDIA B200", "NVIDIA GeForce RTX 3090 Ti"
ALL_TOOLS = ("gcc", "g++", "nvcc", "ninja", "python-headers")
HOST_TOOLS = ("gcc", "python-headers")

_FULL = LayerGroup(kind="full", layers=10, kv_heads=2, head_dim=256, v_head_dim=256)
_NET = LayerGroup(kind="linear", layers=30, k_heads=16, v_heads=32, k_dim=128, v_dim=128, conv=4)
MOE = ModelFacts(
    name="qwen35-35b-a3b",
    format="safetensors",
    architectures=("Qwen3_5MoeForConditionalGeneration",),
    groups=(_FULL, _NET),
    attention_heads=16,
    experts=256,
    experts_per_token=8,
    moe_intermediate_size=512,
    quantization="fp8",
    quantization_block=(128, 128),
    has_config=True,
)
DENSE = ModelFacts(
    name="llama",
    format="safetensors",
    architectures=("LlamaForCausalLM",),
    groups=(LayerGroup(kind="full", layers=32, kv_heads=8, head_dim=128, v_head_dim=128),),
    attention_heads=32,
    has_config=True,
)


def facts(version: str, **changes: object) -> EngineFacts:
    """What the wheel of a version states, as far as the tests ask."""
    at = release(version)
    since = {
        "VLLM_USE_DEEP_GEMM": (0, 11, 0),
        "VLLM_CPU_KVCACHE_SPACE": (0, 11, 0),
        "VLLM_USE_FLASHINFER_SAMPLER": (0, 11, 0),
        "VLLM_MOE_USE_DEEP_GEMM": (0, 11, 1),
        "VLLM_BLOCKSCALE_FP8_GEMM_FLASHINFER": (0, 14, 1),
        "VLLM_ALLREDUCE_USE_FLASHINFER": (0, 17, 1),
    }
    until = {
        "VLLM_ATTENTION_BACKEND": (0, 14, 1),
        "VLLM_USE_FLASHINFER_MOE_FP8": (0, 23, 0),
        "VLLM_SLEEP_WHEN_IDLE": (0, 17, 1),
    }
    flags: dict[str, tuple[str, ...]] = {
        "--port": (),
        "--host": (),
        "--max-model-len": (),
        "--max-num-batched-tokens": (),
        "--enforce-eager": (),
        "--language-model-only": (),
        "--enable-prefix-caching": (),
        "--tensor-parallel-size": (),
        "--pipeline-parallel-size": (),
        "--enable-expert-parallel": (),
        "--compilation-config": (),
        "--quantization": (),
        "--distributed-executor-backend": ("ray", "mp", "uni"),
    }
    if at >= (0, 11, 1):
        meet = ("--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless")
        flags |= dict.fromkeys(meet, ())
    if at >= (0, 13, 0):
        flags |= {"--attention-backend": (), "--attention-config": ()}
    if at >= (0, 17, 0):
        backends = "auto triton deep_gemm cutlass flashinfer_trtllm flashinfer_cutlass marlin aiter"
        flags["--moe-backend"] = tuple(backends.split())
    if at >= (0, 18, 0):
        flags["--gdn-prefill-backend"] = ("flashinfer", "triton")
    architectures = {
        "LlamaForCausalLM": "llama:LlamaForCausalLM",
        "GptOssForCausalLM": "gpt_oss:GptOssForCausalLM",
        "DeepseekV32ForCausalLM": "deepseek_v2:DeepseekV3ForCausalLM",
        "SmolLM3ForCausalLM": "transformers:TransformersForCausalLM",
        "TransformersForCausalLM": "transformers:TransformersForCausalLM",
    }
    if at >= (0, 17, 0):
        name = "Qwen3_5MoeForConditionalGeneration"
        architectures[name] = f"qwen3_5:{name}"
    kv = "auto bfloat16 fp8 fp8_e4m3 fp8_e5m2 fp8_inc fp8_ds_mla"
    fp8 = ("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2")
    values: dict[str, object] = {
        "architectures": architectures,
        "removed": {"Phi3SmallForCausalLM": "0.9.2"},
        "env": {
            **{name: "1" for name, first in since.items() if at >= first},
            **{name: None for name, last in until.items() if at <= last},
        },
        "flags": flags,
        "kv_cache_dtypes": tuple(kv.split()) + (("nvfp4",) if at >= (0, 20, 0) else ()),
        "attention_backends": {
            "FLASH_ATTN": AttentionBackend(),
            "FLASHINFER": AttentionBackend(kv_cache_dtypes=fp8),
            "TRITON_ATTN": AttentionBackend(kv_cache_dtypes=fp8),
            "FLEX_ATTENTION": AttentionBackend(kv_cache_dtypes=("auto", "bfloat16")),
            "CUTLASS_MLA": AttentionBackend(),
        },
        "deep_gemm": () if at < (0, 20, 0) else ("cp312",) if at < (0, 22, 0) else ("abi3",),
        "moe_configs": ("E=256,N=256,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json",),
    }  # fmt: skip
    return EngineFacts.model_validate({"engine": "vllm", "version": version, **values, **changes})


def packages(version: str) -> dict[str, str]:
    """The part of PyPI's closure that matters here."""
    at = release(version)
    found = {"vllm": version, "torch": "2.10.0"}
    if at >= (0, 11, 1):
        found["flashinfer-python"] = "0.6.6"
    if (0, 19, 1) <= at < (0, 26, 0):
        found["flashinfer-cubin"] = "0.6.6"
    return found


def situation(
    version: str = "0.18.1",
    *,
    gpu: str | None = H200,
    count: int = 1,
    tools: Iterable[str] = HOST_TOOLS,
    python: str = "3.12",
    model: ModelFacts | None = MOE,
    engine: EngineFacts | None = None,
    carried: dict[str, str] | None = None,
    gpus: tuple[int, ...] = (),
    nodes: int = 1,
    **settings: object,
) -> Situation:
    """A service of `model` on a target with `count` GPUs of one kind."""
    label = model.name if model else "m"
    return Situation(
        service=Service(
            name="svc",
            model=label,
            gpus=gpus,
            nodes=nodes,
            settings=Settings.model_validate(settings),
        ),
        version=version,
        target=Target(
            python=python,
            glibc="2.35",
            tools=tuple(tools),
            gpus=(Gpu(model=gpu, count=count),) if gpu else (),
        ),
        packages=packages(version) if carried is None else carried,
        engine=engine or facts(version),
        model=model,
    )


def review(version: str = "0.18.1", **given: object) -> Advice:
    """The advice on `situation(version, ...)`."""
    return VllmEngine().review(situation(version, **given))  # type: ignore[arg-type]


def found(advice: Advice, code: str) -> Finding | None:
    """The first finding with that code."""
    return next((item for item in advice.findings if item.code == code), None)


def codes(advice: Advice) -> set[str]:
    """All codes but the note that is always there."""
    return {item.code for item in advice.findings} - {"offline-lookups"}
