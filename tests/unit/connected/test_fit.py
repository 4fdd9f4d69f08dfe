"""Does it fit, and what is said about it; against starts of real engines where they are published."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.build.fit import fit, together
from bundler.domain.findings import Finding, Level
from bundler.domain.fit import Fit
from bundler.domain.model_facts import ModelFacts
from bundler.domain.spec import Acceptance, Service, Settings
from bundler.domain.target import Gpu, Target
from tests.unit.connected.known_models import (
    ALL,
    DEEPSEEK_V3,
    GPT_OSS_120B,
    QWEN3_30B,
    QWEN_27B,
    QWEN_27B_FP8,
    QWEN_35B,
    QWEN_35B_FP8,
    QWEN_122B_FP8,
)

GIB = 2**30
ONE = Acceptance(concurrency=(1,))
GGUF_35B = QWEN_35B.model_copy(
    update={"format": "gguf", "weight_bytes": 22_000_000_000, "expert_bytes": 19_500_000_000}
)


def target(*gpus: tuple[str, int]) -> Target:
    kinds = tuple(Gpu(model=model, count=count) for model, count in gpus)
    return Target(python="3.12", glibc="2.35", gpus=kinds)


def tried(
    model: ModelFacts,
    gpu: str,
    count: int = 1,
    *,
    engine: str = "vllm",
    version: str = "0.33.0",
    acceptance: Acceptance = ONE,
    gpus: tuple[int, ...] = (),
    **wanted: object,
) -> tuple[Fit | None, tuple[Finding, ...]]:
    wanted.setdefault("tensor_parallel", count if engine == "vllm" else 1)
    service = Service(name="chat", model="m", gpus=gpus, settings=Settings(**wanted))
    return fit(service, model, target((gpu, count)), engine, version, acceptance)


def codes(findings: tuple[Finding, ...]) -> dict[str, Level]:
    return {item.code: item.level for item in findings}


def test_the_terms_sum_up_to_what_may_be_taken() -> None:
    result, _ = tried(QWEN_122B_FP8, "NVIDIA H100 80GB HBM3", 2)
    assert result is not None
    assert sum(term.bytes for term in result.terms) + result.kv_bytes == result.usable_bytes
    # CUDA sees 79.19 GiB of an H100's 79.65; 0.92 of them.
    assert result.usable_bytes / GIB == pytest.approx(0.92 * 79.15, abs=0.1)
    assert result.terms[0].bytes == 63_550_000_000
    assert all(term.how for term in (*result.terms, result.per_token, result.per_request))


def test_layers_that_are_not_calculated_are_said() -> None:
    partly = QWEN_27B.model_copy(update={"unknown_layers": "4 mamba layers state no sizes"})
    result, _ = tried(partly, "NVIDIA H200")
    assert result is not None
    assert "layers that are not calculated: 4 mamba layers state no sizes" in result.unknown


def test_a_measured_start_is_met() -> None:
    """27B BF16 on an RTX PRO 6000, vLLM 0.29.0: 85.47 GiB, 31.24 for the KV cache, 652 blocks, 38.35x.

    With the default of 1024 sequences it refused to start: 635 blocks.
    """
    common = {"gpu_memory_utilization": 0.9, "max_model_len": 8192, "version": "0.29.0"}
    result, _ = tried(QWEN_27B, "RTX PRO 6000", max_num_seqs=256, **common)
    assert result is not None
    assert result.usable_bytes / GIB == pytest.approx(85.47, abs=0.1)
    assert result.kv_bytes / GIB == pytest.approx(31.24, abs=0.5)
    assert result.requests == 38
    _, findings = tried(QWEN_27B, "RTX PRO 6000", **common)
    assert codes(findings) == {"fit-states": Level.ERROR}


def test_a_measured_start_on_two_small_gpus_is_met() -> None:
    """https://github.com/mitchross/talos-argocd-proxmox/pull/1995: 4.99 GiB left on each, 2.31x."""
    result, findings = tried(
        QWEN_27B_FP8, "RTX 3090", 2, version="0.28.0", gpu_memory_utilization=0.92,
        kv_cache_dtype="fp8", max_model_len=131072, max_num_seqs=2,
        args=("--max-num-batched-tokens", "8192"),
    )  # fmt: skip
    assert result is not None
    assert result.kv_bytes / GIB == pytest.approx(4.99, abs=0.5)
    assert result.requests == 2
    assert not findings


def test_published_refusal_of_the_27b_on_an_h100() -> None:
    """https://github.com/vllm-project/recipes/pull/551: 1024 sequences, 856 blocks at 0.95."""
    result, findings = tried(
        QWEN_27B_FP8, "H100", version="0.22.0", gpu_memory_utilization=0.95, max_model_len=32768
    )
    assert result is not None
    assert codes(findings) == {"fit-states": Level.ERROR}
    assert result.kv_bytes // (49 * 2**20) == pytest.approx(856, rel=0.05)


def test_122b_at_fp8_on_two_h100_says_no_and_why() -> None:
    """59 of 73 GiB are weights: 352 states fit, and vLLM's own default of 1024 sequences stops it."""
    result, findings = tried(QWEN_122B_FP8, "H100", 2)
    assert result is not None
    assert codes(findings) == {"fit-states": Level.ERROR}
    (no,) = findings
    assert "max_num_seqs is 1024, more than the about 352 blocks" in no.what
    assert "59.2 GiB weights" in no.what
    assert "for the KV cache" in no.what
    assert "Set max_num_seqs to 176 or less" in no.fix


def test_122b_at_fp8_on_two_h100_with_few_sequences_serves_few() -> None:
    """What fits is said as it is: three requests of full length, eighteen of 32K, no hundred."""
    wanted = Acceptance(concurrency=(1, 25, 100), input_tokens=32000, output_tokens=700)
    result, findings = tried(QWEN_122B_FP8, "H100", 2, max_num_seqs=128, acceptance=wanted)
    assert result is not None
    assert result.fits
    assert result.requests < 4
    assert result.at[32768] < 20
    assert codes(findings) == {"fit-users": Level.WARNING}
    assert "acceptance sends 100 requests of 32700 tokens at once" in findings[0].what


@pytest.mark.parametrize(
    ("model", "gpu", "count"),
    [
        (QWEN_35B_FP8, "NVIDIA H200", 1),
        (QWEN_35B, "NVIDIA H200", 1),
        (QWEN_35B_FP8, "NVIDIA H100 80GB HBM3", 1),
        (QWEN_35B_FP8, "NVIDIA H100 80GB HBM3", 2),
        (QWEN_35B, "NVIDIA H100 80GB HBM3", 2),
        (QWEN_122B_FP8, "NVIDIA H200", 2),
    ],
)
def test_these_say_yes(model: ModelFacts, gpu: str, count: int) -> None:
    result, findings = tried(model, gpu, count)
    assert result is not None
    assert result.fits
    assert result.requests >= 2
    assert not findings


def test_35b_in_bf16_on_one_h100_names_the_context_that_fits() -> None:
    result, findings = tried(QWEN_35B, "H100", max_num_seqs=8)
    assert result is not None
    assert not result.fits
    assert codes(findings) == {"fit-context": Level.ERROR}
    assert str(result.max_context) in findings[0].fix
    again, findings = tried(QWEN_35B, "H100", max_num_seqs=8, max_model_len=result.max_context)
    assert again is not None
    assert again.fits
    assert codes(findings) == {"fit-tight": Level.WARNING}


def test_deepseek_on_two_gpus_does_not_fit() -> None:
    result, findings = tried(DEEPSEEK_V3, "H100", 2)
    assert result is not None
    assert result.kv_bytes < 0
    assert (result.max_context, result.requests) == (0, 0)
    assert codes(findings) == {"fit-no": Level.ERROR}
    assert "each of 2x NVIDIA H100 80GB HBM3" in findings[0].what
    assert set(result.at.values()) == {0}


def test_gpt_oss_on_one_h100_is_tight() -> None:
    _, findings = tried(GPT_OSS_120B, "H100")
    assert codes(findings) == {"fit-tight": Level.WARNING}


@pytest.mark.parametrize(("version", "share"), [("0.17.1", 0.9), ("0.19.1", 0.9), ("0.20.0", 0.92)])
def test_vllm_s_default_share_follows_its_version(version: str, share: float) -> None:
    result, _ = tried(QWEN3_30B, "H200", version=version)
    stated, _ = tried(QWEN3_30B, "H200", version=version, gpu_memory_utilization=share)
    assert result is not None
    assert stated is not None
    assert result.usable_bytes == stated.usable_bytes


@pytest.mark.parametrize("version", ["0.11.0", "0.16.0", "0.17.1"])
def test_before_0_18_graphs_of_delta_nets_need_a_state_for_each_sequence(version: str) -> None:
    """https://github.com/vllm-project/vllm/issues/34094: `assert num_cache_lines >= batch`."""
    result, (no,) = tried(QWEN_122B_FP8, "H100", 2, version=version)
    assert result is not None
    assert (no.code, no.level) == ("fit-states", Level.ERROR)
    assert f"vLLM {version} captures CUDA graphs for up to 512 sequences at once" in no.what
    assert "59.2 GiB weights" in no.what
    safe = int(re.findall(r"max_num_seqs to (\d+)", no.fix)[0])
    assert not codes(tried(QWEN_122B_FP8, "H100", 2, version=version, max_num_seqs=safe)[1])
    mamba = QWEN_122B_FP8.model_copy(update={"model_type": "granitemoehybrid"})
    assert not codes(tried(mamba, "H100", 2, version=version)[1])


@pytest.mark.parametrize(
    "args",
    [
        ("--enforce-eager",),
        ("--max-cudagraph-capture-size", "128"),
        ("--cudagraph-capture-sizes", "1", "2", "4"),
        ("--compilation-config", '{"cudagraph_mode": "PIECEWISE"}'),
        ("-cc.cudagraph_mode=PIECEWISE",),
        ("-O0",),
    ],
)
def test_fewer_or_unknown_graphs_are_not_refused_before_0_18(args: tuple[str, ...]) -> None:
    assert not codes(tried(QWEN_122B_FP8, "H100", 2, version="0.17.1", args=args)[1])


def test_0_18_and_0_19_capture_fewer_graphs_instead() -> None:
    for version in ("0.18.0", "0.19.1"):
        assert not codes(tried(QWEN_122B_FP8, "H100", 2, version=version)[1])


def test_without_graphs_states_are_not_counted() -> None:
    assert not codes(tried(QWEN_122B_FP8, "H100", 2, args=("--enforce-eager",))[1])


@pytest.mark.parametrize(
    ("model", "gpu", "count"),
    [
        (QWEN_35B_FP8, "NVIDIA H200", 1),
        (QWEN_35B_FP8, "NVIDIA H100 80GB HBM3", 1),
        (QWEN_35B_FP8, "NVIDIA H100 80GB HBM3", 2),
        (QWEN_35B, "NVIDIA H100 80GB HBM3", 2),
        (QWEN_122B_FP8, "NVIDIA H200", 2),
    ],
)
def test_these_say_yes_on_0_17_1_as_well(model: ModelFacts, gpu: str, count: int) -> None:
    assert not codes(tried(model, gpu, count, version="0.17.1")[1])


def test_arguments_beat_the_spec_s_own_keys() -> None:
    plain, _ = tried(QWEN3_30B, "H200", max_model_len=40960)
    changed, _ = tried(
        QWEN3_30B, "H200", max_model_len=40960,
        args=("--max-model-len=8K", "--kv-cache-dtype", "fp8", "--gpu-memory-utilization", "0.5"),
    )  # fmt: skip
    assert plain is not None
    assert changed is not None
    assert (changed.context, changed.kv_dtype) == (8192, "fp8")
    assert changed.per_token.bytes * 2 == plain.per_token.bytes
    assert changed.usable_bytes < plain.usable_bytes


def test_a_stated_kv_cache_size_is_taken() -> None:
    result, _ = tried(QWEN3_30B, "H200", args=("--kv-cache-memory-bytes", str(10 * GIB)))
    assert result is not None
    assert result.kv_bytes == 10 * GIB
    # 96 KiB for each token of 40960.
    assert result.requests == 10 * GIB // (96 * 1024 * 40960)


def test_context_over_the_model_s_own() -> None:
    _, findings = tried(QWEN3_30B, "H200", max_model_len=131072)
    assert codes(findings) == {"context-over-model": Level.ERROR}
    stretched = ("--rope-scaling", '{"rope_type":"yarn","factor":4.0}')
    assert not tried(QWEN3_30B, "H200", max_model_len=131072, args=stretched)[1]
    llama = tried(QWEN3_30B, "H200", engine="llamacpp", max_model_len=131072)[1]
    assert codes(llama) == {"context-over-model": Level.WARNING}


def test_acceptance_that_the_engine_would_refuse() -> None:
    plan = Acceptance(concurrency=(1,), input_tokens=40000, output_tokens=1000)
    _, findings = tried(QWEN_35B_FP8, "H200", max_model_len=32768, acceptance=plan)
    assert codes(findings) == {"acceptance-too-long": Level.WARNING}
    assert "40000 + 1000 = 41000" in findings[0].what


def test_users_are_bounded_by_max_num_seqs_too() -> None:
    plan = Acceptance(concurrency=(100,))
    _, findings = tried(QWEN_35B_FP8, "H200", max_num_seqs=25, acceptance=plan)
    assert codes(findings) == {"fit-users": Level.WARNING}
    assert "max_num_seqs is 25" in findings[0].what


@pytest.mark.parametrize(
    ("model", "gpu", "wanted", "why"),
    [
        (QWEN_35B, "Radeon Pro W7900", {}, "Radeon Pro W7900 is not in the table"),
        (ModelFacts(name="x"), "H200", {}, "its files do not say"),
        (QWEN_35B, "H200", {"kv_cache_dtype": "turboquant_k8v4"}, "turboquant_k8v4 is not known"),
        (QWEN_35B, "H200", {"args": ("-pp", "2")}, "-pp in settings.args"),
        (QWEN_35B, "H200", {"tensor_parallel": 2}, "needs as many GPUs, 1 are there"),
        (QWEN_35B, "H200", {"gpus": (5,)}, "no GPU 5"),
        (QWEN_35B.model_copy(update={"max_context": None}), "H200", {}, "neither max_model_len"),
    ],
)
def test_what_cannot_be_calculated_says_why(
    model: ModelFacts, gpu: str, wanted: dict[str, object], why: str
) -> None:
    result, findings = tried(model, gpu, **wanted)
    assert result is None
    assert codes(findings) == {"fit-unknown": Level.NOTE}
    assert why in findings[0].what


def test_without_a_gpu_nothing_is_calculated() -> None:
    service = Service(name="chat", model="m", settings=Settings())
    result, findings = fit(service, QWEN_35B, target(), "vllm", "0.33.0", ONE)
    assert result is None
    assert codes(findings) == {"fit-unknown": Level.NOTE}


def test_the_service_s_gpus_are_counted_over_all_kinds() -> None:
    service = Service(name="chat", model="m", gpus=(2,), settings=Settings())
    mixed = target(("L4", 2), ("NVIDIA H200", 1))
    result, _ = fit(service, QWEN_35B_FP8, mixed, "vllm", "0.33.0", ONE)
    assert result is not None
    assert result.gpu == "NVIDIA H200"


def test_one_gpu_of_several_is_taken_without_tensor_parallelism() -> None:
    result, _ = tried(QWEN_35B_FP8, "H200", 4, tensor_parallel=1)
    assert result is not None
    assert result.gpus == 1


def test_the_smallest_gpu_bounds_tensor_parallelism() -> None:
    pair = Service(name="chat", model="m", settings=Settings(tensor_parallel=2))
    result, _ = fit(pair, QWEN_35B_FP8, target(("H200", 1), ("H100", 1)), "vllm", "0.33.0", ONE)
    assert result is not None
    assert result.gpu_bytes == 81559 * 2**20
    assert any("GPUs differ" in item for item in result.unknown)


def test_blocks_on_blackwell_are_multiples_of_32() -> None:
    """https://github.com/vllm-project/vllm/pull/35289: 800 tokens where others have 784."""
    # A request of 262144 tokens takes 262144 / 800 = 327.7, so 328, and 3 blocks; six of them fit to the byte.
    six = str(6 * (328 + 3) * 800 * 4096 * 16)
    args = ("--kv-cache-memory-bytes", six)
    result, _ = tried(QWEN_27B, "B200", version="0.17.1", max_num_seqs=16, args=args)
    assert result is not None
    assert result.requests == 6
    other, _ = tried(QWEN_27B, "H200", version="0.17.1", max_num_seqs=16, args=args)
    assert other is not None
    assert other.requests < 6


def test_one_request_is_tight_even_with_certainty() -> None:
    _, findings = tried(QWEN_35B_FP8, "H100", max_num_seqs=8, gpu_memory_utilization=0.6)
    assert codes(findings) == {"fit-tight": Level.WARNING}
    assert "1 requests of 262144 tokens" in findings[0].what
    assert "none does" not in findings[0].what


LLAMA = {"engine": "llamacpp", "version": "b8000"}


def test_llama_cpp_experts_in_ram() -> None:
    everything, _ = tried(GGUF_35B, "RTX 2080 Super", max_model_len=65536, **LLAMA)
    assert everything is not None
    assert not everything.fits
    for args in (("-cmoe",), ("-ot", ".ffn_.*_exps.=CPU"), ("-ncmoe", "40"), ("-ot", "exps=CPU")):
        result, findings = tried(
            GGUF_35B,
            "RTX 2080 Super",
            max_model_len=65536,
            kv_cache_dtype="q8_0",
            args=args,
            **LLAMA,
        )
        assert result is not None
        assert result.fits
        assert result.host_terms[0].bytes == 19_500_000_000
        assert result.terms[0].bytes == 2_500_000_000
        assert not findings
    half, _ = tried(GGUF_35B, "RTX 3090", max_model_len=65536, args=("--n-cpu-moe", "20"), **LLAMA)
    assert half is not None
    assert half.host_terms[0].bytes == 9_750_000_000
    assert "50%" in half.host_terms[0].how


def test_ollamas_requests_have_the_context_each() -> None:
    wanted = {"max_model_len": 32768, "max_num_seqs": 4, "kv_cache_dtype": "q8_0"}
    llama, _ = tried(GGUF_35B, "H200", **LLAMA, **wanted)
    ollama, found = tried(GGUF_35B, "H200", engine="ollama", version="0.33.0", **wanted)
    assert llama is not None
    assert ollama is not None
    assert (ollama.kv_bytes, ollama.terms) == (llama.kv_bytes, llama.terms)
    assert ollama.requests == llama.requests
    # Its buffers grow with the tokens of all requests together.
    single, _ = tried(
        GGUF_35B, "H200", engine="ollama", version="0.33.0", **{**wanted, "max_num_seqs": 1}
    )
    assert single is not None
    assert single.kv_bytes > ollama.kv_bytes
    # It moves layers to RAM rather than stop.
    _, found = tried(GGUF_35B, "RTX 3090", engine="ollama", version="0.33.0", **wanted)
    assert Level.ERROR not in codes(found).values()


def test_ollamas_own_choice_of_a_context_is_not_calculated() -> None:
    calculated, found = tried(GGUF_35B, "H200", engine="ollama", version="0.33.0")
    assert calculated is None
    assert "max_model_len is not set" in found[0].what


def test_llama_cpp_layers_in_ram_take_their_cache_along() -> None:
    whole, _ = tried(GGUF_35B, "RTX 3090", max_model_len=65536, **LLAMA)
    half, _ = tried(GGUF_35B, "RTX 3090", max_model_len=65536, args=("-ngl", "20"), **LLAMA)
    none, _ = tried(GGUF_35B, "RTX 3090", max_model_len=65536, args=("-ngl", "0"), **LLAMA)
    assert whole is not None
    assert half is not None
    assert none is not None
    assert half.host_terms[0].bytes == 11_000_000_000
    # Half of each request's cache is on the GPU, so twice as many fit into the same memory.
    cost = 65536 * half.per_token.bytes + half.per_request.bytes
    assert half.requests == half.kv_bytes * 2 // cost
    assert none.terms[0].bytes == 0


def test_llama_cpp_allocates_every_slot_at_its_start() -> None:
    _, findings = tried(
        GGUF_35B, "RTX 3090", max_model_len=65536, max_num_seqs=4, args=("-fit", "off"), **LLAMA
    )
    assert codes(findings) == {"fit-context": Level.ERROR}
    assert "for each of 4 slots" in findings[0].what
    _, findings = tried(GGUF_35B, "RTX 3090", max_model_len=262144, args=("-ngl", "99"), **LLAMA)
    assert codes(findings) == {"fit-context": Level.ERROR}
    # Left to itself, llama-server moves layers to RAM instead of stopping.
    for args in ((), ("-ngl", "auto")):
        _, findings = tried(
            GGUF_35B, "RTX 3090", max_model_len=65536, max_num_seqs=4, args=args, **LLAMA
        )
        assert codes(findings) == {"fit-context": Level.WARNING}
        assert "leaves layers in RAM" in findings[0].what


def test_llama_cpp_spreads_over_gpus() -> None:
    one, _ = tried(GGUF_35B, "RTX 3090", max_model_len=131072, **LLAMA)
    two, _ = tried(GGUF_35B, "RTX 3090", 2, max_model_len=131072, **LLAMA)
    assert one is not None
    assert two is not None
    assert two.gpus == 2
    assert two.terms[0].bytes * 2 == one.terms[0].bytes
    assert two.requests > 2 * one.requests


def test_services_that_share_a_gpu_are_summed() -> None:
    wanted = Settings(max_model_len=32768, max_num_seqs=16, gpu_memory_utilization=0.6)
    services = [
        Service(name="a", model="m", port=8000, gpus=(0,), settings=wanted),
        Service(name="b", model="m", port=8001, gpus=(0,), settings=wanted),
        Service(name="c", model="m", port=8002, gpus=(1,), settings=wanted),
    ]
    machine = target(("NVIDIA H200", 2))
    fits = [fit(item, QWEN_35B_FP8, machine, "vllm", "0.33.0", ONE)[0] for item in services]
    known = [item for item in fits if item]
    (crowd,) = together(services, known, machine, "vllm")
    assert crowd.code == "fit-shared"
    assert crowd.subject == "a, b"
    assert "GPU 0" in crowd.what
    assert not together(services[1:], known, machine, "vllm")


def test_llama_cpp_services_share_by_what_they_need() -> None:
    wanted = Settings(max_model_len=32768)
    pair = [Service(name=name, model="m", port=port, settings=wanted) for name, port in (("a", 1), ("b", 2))]  # fmt: skip
    for gpu, crowded in (("H200", False), ("RTX 3090", True)):
        machine = target((gpu, 1))
        fits = [fit(item, GGUF_35B, machine, "llamacpp", "b8000", ONE)[0] for item in pair]
        found = together(pair, [item for item in fits if item], machine, "llamacpp")
        assert bool(found) is crowded


KINDS = st.sampled_from(["H200", "H100", "L4", "RTX 3090", "RTX 2080 Super", "B200"])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(ALL), KINDS, st.sampled_from([1, 2, 4, 8]), st.integers(1, 10**12),
    st.sampled_from(["vllm", "llamacpp"]), st.integers(1, 10**6),
)  # fmt: skip
def test_any_settings_end_in_a_fit_or_a_reason(
    model: ModelFacts, gpu: str, count: int, context: int, engine: str, seqs: int
) -> None:
    result, findings = tried(
        model, gpu, count, engine=engine, max_model_len=context, max_num_seqs=seqs
    )
    assert result is not None
    assert all(term.bytes >= 0 for term in (*result.terms, *result.host_terms))
    assert result.max_context >= 0
    counts = [result.at[length] for length in sorted(result.at)]
    assert counts == sorted(counts, reverse=True)
    if not result.fits:
        assert {"fit-no", "fit-context"} & set(codes(findings))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(ALL), KINDS, st.integers(0, 2), st.integers(4096, 131072))
def test_more_gpus_fit_at_least_as_many(
    model: ModelFacts, gpu: str, power: int, context: int
) -> None:
    wanted = {"max_model_len": context, "max_num_seqs": 8}
    fewer, _ = tried(model, gpu, 2**power, **wanted)
    more, _ = tried(model, gpu, 2 ** (power + 1), **wanted)
    assert fewer is not None
    assert more is not None
    if (
        fewer.terms[0].bytes > 4 * GIB
    ):  # Otherwise communication costs more than the weights' halves.
        assert more.requests >= fewer.requests


def test_huge_numbers_end() -> None:
    huge = QWEN_35B.model_copy(update={"weight_bytes": 10**30, "max_context": 10**15})
    for engine in ("vllm", "llamacpp"):
        result, findings = tried(
            huge, "H200", engine=engine, args=("--max-num-batched-tokens", "9" * 12)
        )
        assert result is not None
        assert "fit-no" in codes(findings)
