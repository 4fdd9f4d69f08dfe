"""An engine's defaults by version and GPU, and arguments that beat the spec's keys."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.build.runsettings import Beyond, Run, llamacpp, release, vllm
from bundler.domain.gpus import gpu
from bundler.domain.spec import Service, Settings
from tests.unit.connected.known_models import QWEN_35B


def service(**wanted: object) -> Service:
    return Service(name="chat", model="m", settings=Settings(**wanted))


def on(name: str, version: str, **wanted: object) -> Run:
    found = gpu(name)
    assert found is not None
    return vllm(service(**wanted), QWEN_35B, found, version)


@pytest.mark.parametrize(
    ("name", "version", "requests", "batch"),
    [
        ("H100", "0.17.1", 1024, 8192),
        ("H200", "0.33.0", 1024, 8192),
        ("RTX PRO 6000", "0.29.0", 1024, 8192),
        ("A100 80GB", "0.33.0", 256, 2048),
        ("L40S", "0.33.0", 256, 2048),
        ("B200", "0.27.1", 1024, 8192),
        ("B200", "0.28.0", 1024, 16384),
    ],
)
def test_batch_defaults(name: str, version: str, requests: int, batch: int) -> None:
    run = on(name, version)
    assert (run.requests, run.batch) == (requests, batch)
    stated = on(name, version, max_num_seqs=7, args=("--max-num-batched-tokens=4096",))
    assert (stated.requests, stated.batch) == (7, 4096)


def test_hybrids_keep_two_states_where_prefix_caching_is_on() -> None:
    assert [on("H200", version).states for version in ("0.25.1", "0.26.0", "0.33.0")] == [1, 2, 2]
    assert on("H200", "0.33.0", args=("--no-enable-prefix-caching",)).states == 1
    assert on("H200", "0.24.0", args=("--enable-prefix-caching",)).states == 2


def test_states_are_float32_in_llama_cpp_and_as_the_model_says_in_vllm() -> None:
    half = QWEN_35B.model_copy(update={"state_dtype": "bfloat16"})
    found = gpu("H200")
    assert found is not None
    assert vllm(service(), half, found, "0.33.0").numbers.state == 2
    assert (llamacpp(service(), half).numbers.state, llamacpp(service(), half).numbers.conv) == (
        4,
        4,
    )


def test_llama_cpp_arguments() -> None:
    args = ("-c", "65536", "-np", "4", "-ctk", "q8_0", "-ctv", "q4_0", "-ub", "1024", "--swa-full")
    run = llamacpp(service(max_model_len=4096, args=args), QWEN_35B)
    assert (run.context, run.requests, run.batch) == (16384, 4, 1024)
    assert run.numbers.label == "K q8_0, V q4_0"
    assert run.whole_windows
    assert llamacpp(service(args=("-ngl", "10")), QWEN_35B).layers_on_gpu == Fraction(1, 4)
    assert llamacpp(service(args=("-ngl", "999")), QWEN_35B).layers_on_gpu == 1
    assert llamacpp(service(gpu_layers=10), QWEN_35B).layers_on_gpu == Fraction(1, 4)
    assert llamacpp(
        service(gpu_layers=10, args=("-ngl", "20")), QWEN_35B
    ).layers_on_gpu == Fraction(1, 2)
    off = llamacpp(service(args=("-nkvo",)), QWEN_35B)
    assert (off.share, off.layers_on_gpu) == (0, 1)


@pytest.mark.parametrize(
    ("settings", "args"),
    [
        ({"gpu_layers": 10}, ("-ngl", "10")),
        ({"cpu_moe_layers": 12}, ("--n-cpu-moe", "12")),
        ({"cpu_moe_layers": 99}, ("-cmoe",)),
        ({"fit": False}, ("-fit", "off")),
        ({"fit": True}, ("-fit", "on")),
        ({"gpu_layers": 0, "cpu_moe_layers": 0}, ("-ngl", "0", "-ncmoe", "0")),
    ],
)
def test_llama_cpp_placement_by_setting_is_that_by_argument(
    settings: dict[str, object], args: tuple[str, ...]
) -> None:
    assert llamacpp(service(**settings), QWEN_35B) == llamacpp(service(args=args), QWEN_35B)


@pytest.mark.parametrize(
    "args",
    [("-ot", "ffn_up_exps=CPU"), ("-ot", r"blk\.(1|2)\.ffn_.*_exps=CPU"), ("-ts", "3,1"),
     ("-ctk", "unheard_of"), ("-ot", "(a+)+" * 30 + "exps=CPU")],
)  # fmt: skip
def test_a_placement_that_is_not_understood_is_not_guessed(args: tuple[str, ...]) -> None:
    with pytest.raises(Beyond):
        llamacpp(service(args=args), QWEN_35B)


def test_versions_are_compared_by_number() -> None:
    assert release("0.9.2") < release("0.11.0") < release("0.11.1.post2") < release("1.0")
    assert release("") == ()


@given(
    st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30), max_size=8)
)
def test_any_arguments_end_in_a_run_or_a_reason(args: list[str]) -> None:
    flags = tuple(args)
    for read in (
        lambda: on("H200", "0.33.0", args=flags),
        lambda: llamacpp(service(args=flags), QWEN_35B),
    ):
        try:
            run = read()
        except Beyond:
            continue
        assert run.context > 0
        assert 0 < run.utilization <= 1
