"""The real pynvml against a compiled stand-in for NVIDIA's library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bundler.domain.host import Devices
from bundler.domain.telemetry import GpuObservation

ASK = (
    "import sys; from bundler import wiring;"
    "sys.stdout.write(wiring.device_probe().devices().model_dump_json())"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).parents[2] / "fakes" / "nvml.c"
    out = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", out, source], check=True)
    return folder


def ask(library: Path | None, **stub: object) -> Devices:
    env = {**os.environ, **{f"STUB_{name}": str(value) for name, value in stub.items()}}
    env["LD_LIBRARY_PATH"] = str(library) if library else ""
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Devices.model_validate(json.loads(done.stdout))


def test_two_h100_with_nvlink(library: Path) -> None:
    found = ask(library, COUNT=2, NAME="NVIDIA H100 80GB HBM3", TOTAL_MIB=81559, FREE_MIB=81000)
    assert (found.fault, found.driver, found.cuda) == ("", "570.124.06", "12.8")
    one = found.gpus[0]
    assert (one.name, one.compute_capability) == ("NVIDIA H100 80GB HBM3", "9.0")
    assert (one.memory_bytes, one.free_bytes) == (81559 * 2**20, 81000 * 2**20)
    assert (one.mig, one.ecc, one.persistence, one.exclusive) == (False, True, True, False)
    assert (one.nvlinks, one.peers, found.gpus[1].peers) == (18, (1,), (0,))
    assert (one.power_limit_w, one.power_default_w, one.pcie_width) == (700.0, 700.0, 16)
    assert one.unread == {}


def test_a_3090_ti_says_what_it_has_not(library: Path) -> None:
    found = ask(library, COUNT=1, NAME="NVIDIA GeForce RTX 3090 Ti", TOTAL_MIB=24564, CC="8.6",
                MIG=-1, ECC=-1, ERRORS=-1, NVLINKS=-1, PERSISTENCE=0, POWER_W=300, DEFAULT_W=450,
                BRAKES=0x44, WIDTH=8)  # fmt: skip
    [one] = found.gpus
    assert (one.mig, one.ecc, one.ecc_errors, one.nvlinks, one.peers) == (None,) * 5
    assert (one.persistence, one.power_limit_w, one.power_default_w) == (False, 300.0, 450.0)
    assert one.slowed_by == ("power cap", "hardware thermal slowdown")
    assert (one.pcie_width, one.pcie_max_width) == (8, 16)
    # That a GPU has no such thing is no failure to read it.
    assert one.unread == {}


def test_mig_and_who_holds_the_memory(library: Path) -> None:
    gone = 4_000_000
    found = ask(library, MIG=1, PID=os.getpid(), PID_MIB=70_000, EXCLUSIVE=1)
    [one] = found.gpus
    assert (one.mig, one.exclusive) == (True, True)
    [process] = one.processes
    assert (process.pid, process.bytes, process.alive) == (os.getpid(), 70_000 * 2**20, True)
    assert "python" in process.name
    [stranded] = ask(library, PID=gone).gpus[0].processes
    assert (stranded.alive, stranded.name) == (False, "")


@pytest.mark.parametrize(
    ("function", "what"),
    [("Memory", "memory"), ("Mig", "MIG"), ("Ecc", "ECC"), ("Power", "power cap"), ("Clocks", "clocks"),
     ("Pcie", "PCIe"), ("Capability", "compute capability"), ("Processes", "processes"),
     ("Name", "name"), ("Persistence", "persistence"), ("Mode", "compute mode")],
)  # fmt: skip
def test_what_one_call_refuses_is_noted_and_the_rest_is_read(
    library: Path, function: str, what: str
) -> None:
    [one] = ask(library, FAIL=f"{function}:4").gpus
    assert one.unread == {what: "Insufficient Permissions"}
    assert one.uuid == "GPU-00000000"


def test_a_gpu_that_fell_off_the_bus_hides_no_other(library: Path) -> None:
    found = ask(library, COUNT=3, LOST=1)
    assert [bool(one.unread) for one in found.gpus] == [False, True, False]
    assert "lost" in found.gpus[1].unread["gpu"]
    assert found.gpus[0].peers == (2,)


@pytest.mark.parametrize(
    ("fail", "words"),
    [("Init:9", "Driver Not Loaded"), ("Init:18", "mismatch"), ("Count:999", "Unknown"),
     ("Driver:999", "Unknown")],
)  # fmt: skip
def test_a_driver_that_does_not_answer_is_a_fault(library: Path, fail: str, words: str) -> None:
    found = ask(library, FAIL=fail)
    assert words in found.fault
    assert found.gpus == ()


def test_a_host_without_nvml_is_a_fault_and_no_traceback() -> None:
    assert ask(None).fault.startswith("NVML")


def test_no_peer_access(library: Path) -> None:
    assert ask(library, COUNT=2, P2P=0).gpus[0].peers == ()
    assert ask(library, COUNT=2, FAIL="P2P:999").gpus[0].peers is None


WATCH = (
    "import sys, json; from bundler.adapters.probe_nvml import NvmlSampler;"
    "one = NvmlSampler(); fault = one.open();"
    "looks = [[seen.model_dump(mode='json') for seen in one.sample(t)] for t in range(6)] if not fault else [];"
    "one.close(); one.close();"
    "json.dump({'fault': fault, 'looks': looks}, sys.stdout)"
)


def watch(library: Path | None, **stub: object) -> tuple[str, list[list[GpuObservation]]]:
    env = {**os.environ, **{f"STUB_{name}": str(value) for name, value in stub.items()}}
    env["LD_LIBRARY_PATH"] = str(library) if library else ""
    done = subprocess.run(
        [sys.executable, "-c", WATCH], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    looks = [[GpuObservation.model_validate(one) for one in look] for look in found["looks"]]
    return found["fault"], looks


def test_gpus_are_looked_at_again_and_again(library: Path) -> None:
    fault, looks = watch(library, COUNT=2, SEQUENCE=1, PID=4321, TOTAL_MIB=1000, FREE_MIB=400)
    assert fault == ""
    assert [[seen.gpu for seen in look] for look in looks] == [[0, 1]] * 6
    first = [look[0] for look in looks]
    assert [seen.t_s for seen in first] == [0, 1, 2, 3, 4, 5]
    # Two GPUs share the stub's counter: each look of one is two looks on.
    assert [seen.power_w for seen in first] == [110, 130, 150, 170, 190, 210]
    assert first[0].sm_clock_mhz == 1975
    assert first[-1].sm_clock_mhz == 1925
    assert {seen.throttle_reasons for seen in first} == {("power cap",)}
    # Idle is no brake.
    assert {look[1].throttle_reasons for look in looks} == {()}
    assert (first[0].memory_used, first[0].power_limit_w) == (600 * 2**20, 700.0)
    assert first[0].processes == (4321,)


@pytest.mark.parametrize(
    ("function", "field"),
    [("Memory", "memory_used"), ("Draw", "power_w"), ("Enforced", "power_limit_w"), ("Clock", "sm_clock_mhz")],
)  # fmt: skip
def test_what_one_call_refuses_is_none_at_every_look(
    library: Path, function: str, field: str
) -> None:
    _, looks = watch(library, FAIL=f"{function}:4")
    assert [getattr(look[0], field) for look in looks] == [None] * 6
    assert all(look[0].model_dump(exclude_none=True).keys() >= {"t_s", "gpu"} for look in looks)
    assert len(looks[0][0].model_dump(exclude_none=True)) == 7


def test_a_gpu_that_falls_off_the_bus_midway_is_left_out_from_then_on(library: Path) -> None:
    _, looks = watch(library, GONE_AFTER=3)
    assert [len(look) for look in looks] == [1, 1, 1, 1, 0, 0]
    # It went between two questions of one look.
    assert looks[3][0].memory_used is not None
    assert (looks[3][0].power_w, looks[3][0].sm_clock_mhz) == (None, None)


def test_a_gpu_that_was_gone_before_hides_no_other(library: Path) -> None:
    fault, looks = watch(library, COUNT=2, LOST=0)
    assert fault == ""
    assert [[seen.gpu for seen in look] for look in looks] == [[1]] * 6


def test_no_driver_is_a_reason_and_no_crash(library: Path) -> None:
    assert "NVML" in watch(None)[0]
    assert "Driver Not Loaded" in watch(library, FAIL="Init:9")[0]
    assert watch(library, COUNT=0)[0] == "NVML: no GPU answers"
