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
