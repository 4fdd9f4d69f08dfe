"""Every row of the preflight table in every state that it can have."""

from __future__ import annotations

from typing import Any

import pytest

from bundler.deploy.preflight import Case, preflight
from bundler.domain.host import Devices, GpuProcess, GpuState, Host, Mount, Row
from bundler.domain.manifest import Manifest
from bundler.domain.sizes import human
from tests.fakes.closed_host import GIB, H200, devices, host, manifest


def rows(
    made: Manifest | None = None,
    here: Host | None = None,
    found: Devices | None = None,
    **more: Any,
) -> dict[str, Row]:
    case = Case(made or manifest(), here or host(), found or devices(), **more)
    table = preflight(case)
    names = [row.name for row in table]
    assert len(set(names)) == len(names), names
    for row in table:
        # A failure without a way out helps nobody.
        assert row.fix or row.state in ("ok", "unknown"), row
        assert row.found, row
    return {row.name: row for row in table}


def test_a_host_as_it_was_planned_for_is_ok_throughout() -> None:
    assert {row.name: row.state for row in rows().values() if row.state != "ok"} == {}


SYSTEM: list[tuple[str, str, dict[str, Any]]] = [
    ("operating system", "fail", {"os": "darwin"}),
    ("operating system", "unknown", {"os": ""}),
    ("processor", "fail", {"arch": "aarch64"}),
    ("container", "warn", {"container": "docker"}),
    ("glibc", "fail", {"glibc": "2.28"}),
    ("glibc", "unknown", {"glibc": ""}),
    ("GLIBCXX", "fail", {"glibcxx": "3.4.9"}),
    ("GLIBCXX", "unknown", {"glibcxx": "", "unread": {"libstdc++": "denied"}}),
    ("CXXABI", "fail", {"cxxabi": "1.3.8"}),
    ("libraries", "fail", {"libraries": frozenset({"libc.so.6"})}),
    ("libraries", "unknown", {"libraries": None, "unread": {"libraries": "ldconfig is not here"}}),
    ("python", "fail", {"pythons": {}}),
    ("python", "unknown", {"pythons": {}, "unread": {"python": "no answer"}}),
    ("python-headers", "fail", {"headers": {}}),
    ("gcc", "fail", {"programs": {"nvcc": "/x"}}),
    ("nvcc", "fail", {"programs": {"gcc": "/x"}}),
    ("memory", "warn", {"available_bytes": 2 * GIB}),
    ("memory", "warn", {"cgroup_memory_bytes": 3 * GIB}),
    ("memory", "unknown", {"available_bytes": None, "memory_bytes": None}),
    ("shared memory", "fail", {"shm_bytes": 64 * 2**20}),
    ("shared memory", "warn", {"shm_bytes": 512 * 2**20}),
    ("shared memory", "unknown", {"shm_bytes": None, "unread": {"shm": "denied"}}),
    ("limit nofile", "warn", {"limits": {"nofile": 1024, "memlock": None}}),
    ("limit memlock", "warn", {"limits": {"nofile": None, "memlock": 1024}}),
    ("huge pages", "warn", {"hugepages": "never"}),
    ("huge pages", "unknown", {"hugepages": "", "unread": {"huge pages": "denied"}}),
    ("port 8000", "fail", {"ports_taken": {8000: "process 12 (nginx)"}}),
    ("port 8000", "unknown", {"unread": {"ports": "denied"}}),
    ("SELinux", "warn", {"selinux": "enforcing"}),
    ("AppArmor", "warn", {"apparmor": "snap.x"}),
    ("clock", "fail", {"now": "2025-01-01T00:00:00Z"}),
    ("clock", "unknown", {"now": ""}),
    ("proxies", "warn", {"proxies": ("https_proxy",)}),
    ("disk", "unknown", {"mounts": (), "unread": {"mount /srv": "denied"}}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "state", "changes"), SYSTEM, ids=lambda x: str(x)[:40])
def test_the_system(name: str, state: str, changes: dict[str, Any]) -> None:
    assert rows(here=host(**changes))[name].state == state


def test_a_port_held_by_this_roots_own_service_makes_way() -> None:
    taken = host(ports_taken={8000: "process 12 (vllm)"})
    assert rows(here=taken, own_ports=frozenset({8000}))["port 8000"].state == "ok"


def test_memory_decides_where_the_engine_runs_on_the_processor() -> None:
    made = manifest(gpus=(), cuda="")
    found = rows(made, host(available_bytes=2 * GIB), Devices(fault="NVML: not there"))
    assert found["memory"].state == "fail"
    assert found["GPUs"].state == "ok"
    assert "shared memory" in rows()
    assert "shared memory" not in rows(manifest(tensor_parallel=1))


@pytest.mark.parametrize(
    ("name", "state", "changes"),
    [
        ("disk /srv/llm", "fail", {"free_bytes": GIB}),
        ("disk /srv/llm", "fail", {"read_only": True}),
        ("exec /srv/llm", "fail", {"noexec": True}),
        ("kind /srv/llm", "warn", {"network": True, "file_system": "nfs4"}),
    ],
)
def test_the_roots_disk(name: str, state: str, changes: dict[str, Any]) -> None:
    good = host().mounts
    bad = (good[0].model_copy(update=changes), *good[1:])
    found = rows(here=host(mounts=bad), bytes_to_come=100 * GIB)
    assert found[name].state == state


def test_the_folder_for_temporary_files_only_warns() -> None:
    mounts = (*host().mounts[:1], Mount(path="/tmp", mount="/tmp", free_bytes=10, noexec=True))
    found = rows(here=host(mounts=mounts))
    assert (found["disk /tmp"].state, found["exec /tmp"].state) == ("warn", "warn")


GPU: list[tuple[str, str, dict[str, Any]]] = [
    ("GPU model", "warn", {"name": "NVIDIA H100 80GB HBM3"}),
    ("GPU model", "fail", {"name": "NVIDIA L40S", "compute_capability": "8.9"}),
    ("compute capability", "fail", {"compute_capability": "8.9"}),
    ("compute capability", "unknown", {"compute_capability": ""}),
    ("GPU 0", "fail", {"unread": {"gpu": "GPU is lost"}}),
    ("GPU 0 MIG", "fail", {"mig": True}),
    ("GPU 0 MIG", "unknown", {"mig": None, "unread": {"MIG": "denied"}}),
    ("GPU 0 ECC", "warn", {"ecc": False}),
    ("GPU 0 ECC", "fail", {"ecc_errors": 3}),
    ("GPU 0 compute mode", "warn", {"exclusive": True}),
    ("GPU 0 power cap", "warn", {"power_limit_w": 400.0}),
    ("GPU 0 clocks", "warn", {"slowed_by": ("power cap",)}),
    ("GPU 0 persistence", "warn", {"persistence": False}),
    ("GPU 0 PCIe", "warn", {"pcie_width": 8}),
    ("GPU 0 memory for llm", "fail", {"free_bytes": 10 * GIB}),
    ("links of llm", "warn", {"peers": ()}),
    ("links of llm", "warn", {"nvlinks": 0}),
    ("links of llm", "unknown", {"peers": None}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "state", "changes"), GPU, ids=lambda x: str(x)[:40])
def test_the_gpus(name: str, state: str, changes: dict[str, Any]) -> None:
    bad = tuple(one.model_copy(update=changes) for one in devices().gpus)
    found = rows(found=devices(gpus=bad))
    assert found[name].state == state


@pytest.mark.parametrize(
    ("name", "state", "changes"),
    [
        ("driver", "fail", {"driver": "470.1"}),
        ("driver", "unknown", {"driver": ""}),
        ("CUDA", "fail", {"cuda": "11.8"}),
        ("CUDA", "unknown", {"cuda": ""}),
        ("GPU count", "fail", {"gpus": devices().gpus[:1]}),
        ("GPUs", "fail", {"fault": "NVML: Driver Not Loaded"}),
    ],
)
def test_the_driver(name: str, state: str, changes: dict[str, Any]) -> None:
    assert rows(found=devices(**changes))[name].state == state


def test_who_holds_the_memory_is_named() -> None:
    held = (
        GpuProcess(pid=7, name="python train.py", bytes=90 * GIB),
        GpuProcess(pid=8, bytes=30 * GIB, alive=False),
        GpuProcess(pid=9),
    )
    bad = tuple(
        one.model_copy(update={"free_bytes": GIB, "processes": held}) for one in devices().gpus
    )
    row = rows(found=devices(gpus=bad))["GPU 1 memory for llm"]
    for text in ("process 7 (python train.py)", human(90 * GIB), "process 8 (which is gone)",
                 "process 9 (of another user)"):  # fmt: skip
        assert text in row.found
    assert "has died" in row.fix


def test_llama_cpp_needs_its_weights_and_not_a_share() -> None:
    made = manifest(engine="llama.cpp", tensor_parallel=1)
    bad = tuple(one.model_copy(update={"free_bytes": 60 * GIB}) for one in devices().gpus)
    assert rows(made, found=devices(gpus=bad))["GPU 0 memory for llm"].state == "ok"
    assert rows(found=devices(gpus=bad))["GPU 0 memory for llm"].state == "fail"


def test_a_gpu_that_says_nothing_of_itself_gets_no_false_lines() -> None:
    quiet = tuple(
        GpuState(index=i, name="NVIDIA GeForce RTX 3090 Ti", compute_capability="8.6",
                 memory_bytes=24 * GIB, free_bytes=24 * GIB, peers=())
        for i in range(2)
    )  # fmt: skip
    found = rows(manifest(gpus=(("RTX 3090 Ti", 2),)), found=devices(gpus=quiet))
    assert found["GPU model"].state == "ok"
    assert not [name for name in found if name.startswith("GPU 0 ") and "memory" not in name]
    assert H200.name not in found["GPU model"].found


def test_a_host_needs_its_own_part_of_a_service_s_gpus() -> None:
    made = manifest(tensor_parallel=4)
    [service] = made.services
    spread = made.model_copy(update={"services": (service.model_copy(update={"nodes": 2}),)})
    assert rows(made)["GPU count"].state == "fail"
    found = rows(spread)
    assert found["GPU count"].state == "ok"
    assert "GPU 1 memory for llm" in found
    assert found["links of llm"].state == "ok"
