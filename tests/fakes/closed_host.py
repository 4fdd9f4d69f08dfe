"""A host that is as the bundle wants it; tests change one thing at a time."""

from __future__ import annotations

from typing import Any

from bundler.domain.host import Devices, GpuState, Host, Mount
from bundler.domain.manifest import (
    Block,
    Entry,
    Manifest,
    Part,
    ShippedEngine,
    ShippedModel,
    ShippedTool,
)
from bundler.domain.needs import HostNeeds, Tool
from bundler.domain.spec import Acceptance, Service, Settings
from bundler.domain.target import Gpu, Target

GIB = 2**30
H200 = GpuState(
    index=0, name="NVIDIA H200", uuid="GPU-0", compute_capability="9.0", memory_bytes=143771 * 2**20,
    free_bytes=143000 * 2**20, mig=False, ecc=True, ecc_errors=0, persistence=True, exclusive=False,
    power_limit_w=700.0, power_default_w=700.0, power_max_w=700.0, pcie_generation=5,
    pcie_max_generation=5, pcie_width=16, pcie_max_width=16, nvlinks=18, peers=(1,),
)  # fmt: skip


def devices(**changes: Any) -> Devices:
    two = (H200, H200.model_copy(update={"index": 1, "peers": (0,)}))
    return Devices(driver="570.124.06", cuda="12.8", gpus=two).model_copy(update=changes)


def host(**changes: Any) -> Host:
    good = Host(
        os="linux", arch="x86_64", kernel="6.1", glibc="2.36", glibcxx="3.4.30", cxxabi="1.3.13",
        libraries=frozenset({"libc.so.6", "libgomp.so.1"}), pythons={"3.12": "/usr/bin/python3.12"},
        headers={"3.12": "/usr/include/python3.12"}, programs={"gcc": "/usr/bin/gcc", "nvcc": "/nvcc"},
        memory_bytes=512 * GIB, available_bytes=500 * GIB, swap_bytes=0, shm_bytes=64 * GIB,
        hugepages="madvise", limits={"nofile": 65536, "memlock": None},
        mounts=(
            Mount(path="/srv/llm", mount="/srv", file_system="ext4", free_bytes=900 * GIB),
            Mount(path="/tmp", mount="/", file_system="ext4", free_bytes=90 * GIB),
        ),
        now="2026-12-02T00:00:00Z", synchronised=True, cores=64, user="1000",
    )  # fmt: skip
    return good.model_copy(update=changes)


def manifest(
    *, gpus: tuple[tuple[str, int], ...] = (("NVIDIA H200", 2),), cuda: str = "12.8",
    engine: str = "vllm", tensor_parallel: int = 2,
) -> Manifest:  # fmt: skip
    entries = (
        entry("models/m/model.safetensors", "model", 40 * GIB),
        entry("wheels/vllm-1-py3-none-any.whl", "wheel", 5 * GIB),
    )
    return Manifest.model_validate(
        {
            "block_size": 2**26,
            "name": "b",
            "sequence": 1,
            "created": "2026-06-01T00:00:00Z",
            "target": Target(
                python="3.12", glibc="2.31", gpus=tuple(Gpu(model=m, count=n) for m, n in gpus)
            ),
            "engine": ShippedEngine.model_validate(
                {"name": engine, "version": "0.17.1", "distribution": "vllm", "requirements": "r"}
            ),
            "tool": ShippedTool(version="1", requirements="t", uv_wheel="u"),
            "models": (ShippedModel(name="m", source="hub", origin="a/b"),),
            "services": (
                Service(name="llm", model="m", settings=Settings(tensor_parallel=tensor_parallel)),
            ),
            "acceptance": Acceptance(),
            "needs": HostNeeds(
                checked=True, glibc="2.31", glibcxx="3.4.29", cxxabi="1.3.11",
                libraries=("libgomp.so.1", "libcuda.so.1"), cuda_runtime=cuda,
                driver="525.60.13" if cuda else "",
                tools=tuple(Tool(name=n, why="JIT") for n in ("gcc", "nvcc", "python-headers")),
            ),
            "volumes": (),
            "loose": (),
            "entries": entries,
        }
    )  # fmt: skip


def entry(path: str, kind: str, size: int) -> Entry:
    part = Part(volume="v", member=path, offset=0, size=size, crc32=0)
    block = Block(sha256="0" * 64, xxh3="0" * 32)
    return Entry.model_validate(
        {"path": path, "kind": kind, "size": size, "sha256": "0" * 64, "blocks": (block,),
         "parts": (part,)}
    )  # fmt: skip
