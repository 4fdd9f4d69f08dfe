"""The GPUs' part of the preflight table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from bundler.domain.gpus import gpu
from bundler.domain.host import Devices, GpuState, Row
from bundler.domain.sizes import human
from bundler.domain.spec import Service
from bundler.domain.target import Gpu

# vLLM's own default (vllm/config/cache.py).
_SHARE = 0.9
# A cap below this share of the default costs speed that shows.
_CAPPED = 0.95


def gpu_rows(
    devices: Devices, services: Sequence[Service], expected: Sequence[Gpu], driver: str, cuda: str,
    weights: Mapping[str, int], *, wanted: bool, engine: str,
) -> Iterator[Row]:  # fmt: skip
    """Judge driver and GPUs; a bundle that needs none gets one line."""
    if not wanted:
        yield Row(name="GPUs", state="ok", found="the bundle needs none")
        return
    if devices.fault:
        yield Row(
            name="GPUs", state="fail", found=devices.fault, wanted=_list(expected),
            fix="Install the NVIDIA driver; in a container, start it with the GPUs"
            " (nvidia-container-toolkit). `nvidia-smi` must list them.",
        )  # fmt: skip
        return
    yield from _driver(devices, driver, cuda)
    yield from _kinds(devices, services, expected)
    for one in devices.gpus:
        yield from _health(one)
        yield from _speed(one)
    yield from _memory(devices, services, weights, engine)
    yield from _links(devices, services)


def _driver(devices: Devices, driver: str, cuda: str) -> Iterator[Row]:
    if driver:
        good = bool(devices.driver) and _numbers(devices.driver) >= _numbers(driver)
        state = "ok" if good else "fail" if devices.driver else "unknown"
        yield Row(name="driver", state=state, found=devices.driver or "not readable", wanted=driver,
                  fix="" if good else "Update the NVIDIA driver; it can be carried in `files`.")  # fmt: skip
    if cuda:
        major = _numbers(cuda)[:1]
        has = _numbers(devices.cuda)[:1]
        state = "unknown" if not has else "ok" if has >= major else "fail"
        yield Row(name="CUDA", state=state, found=devices.cuda or "not readable", wanted=cuda,
                  fix="" if state != "fail" else "Update the NVIDIA driver.")  # fmt: skip


def _kinds(devices: Devices, services: Sequence[Service], expected: Sequence[Gpu]) -> Iterator[Row]:
    named = {number for service in services for number in service.gpus}
    parallel = max((service.gpus_per_node for service in services), default=1)
    need = max(sum(one.count for one in expected), max(named, default=-1) + 1, parallel)
    has = len(devices.gpus)
    yield Row(name="GPU count", state="ok" if has >= need else "fail", found=str(has), wanted=str(need),
              fix="" if has >= need else "Add GPUs, or lower tensor_parallel, pipeline_parallel and"
              " services[].gpus.")  # fmt: skip
    for one in expected:
        known = gpu(one.model)
        same = [g for g in devices.gpus if _is(g, one.model)]
        fits = [
            g for g in devices.gpus if known and g.compute_capability == known.compute_capability
        ]
        found = ", ".join(sorted({g.name for g in devices.gpus})) or "none"
        if len(same) >= one.count:
            yield Row(name="GPU model", state="ok", found=found, wanted=f"{one.count}x {one.model}")
        else:
            state = "warn" if len(fits) >= one.count else "fail"
            yield Row(name="GPU model", state=state, found=found, wanted=f"{one.count}x {one.model}",
                      fix="Memory, kernels and expected ranges were planned for another GPU: run"
                      " `airbundle plan` for this one.")  # fmt: skip
        if known is not None:
            yield _capability(devices, known.compute_capability, one.count)


def _capability(devices: Devices, wanted: str, count: int) -> Row:
    has = [g.compute_capability for g in devices.gpus]
    if not all(has):
        return Row(name="compute capability", state="unknown", found="not readable", wanted=wanted)
    good = sum(_numbers(one) >= _numbers(wanted) for one in has) >= count
    return Row(name="compute capability", state="ok" if good else "fail",
               found=", ".join(sorted(set(has))), wanted=wanted,
               fix="" if good else "The carried kernels and types may not run: plan for this GPU.")  # fmt: skip


def _health(one: GpuState) -> Iterator[Row]:
    name = f"GPU {one.index}"
    if "gpu" in one.unread:
        yield Row(name=name, state="fail", found=one.unread["gpu"],
                  fix="The GPU does not answer (fallen off the bus?): nvidia-smi, dmesg, reboot.")  # fmt: skip
        return
    for what, why in one.unread.items():
        yield Row(name=f"{name} {what}", state="unknown", found=why)
    if one.mig:
        yield Row(name=f"{name} MIG", state="fail", found="on",
                  fix=f"nvidia-smi -i {one.index} -mig 0: an engine sees slices, not the GPU.")  # fmt: skip
    elif one.mig is not None:
        yield Row(name=f"{name} MIG", state="ok", found="off")
    if one.ecc_errors:
        yield Row(name=f"{name} ECC", state="fail", found=f"{one.ecc_errors} uncorrected errors",
                  fix="Results cannot be trusted: reset the GPU, and have it exchanged if they return.")  # fmt: skip
    elif one.ecc is not None:
        yield Row(name=f"{name} ECC", state="ok" if one.ecc else "warn",
                  found="on" if one.ecc else "off",
                  fix="" if one.ecc else f"nvidia-smi -i {one.index} -e 1, then reboot.")  # fmt: skip
    if one.exclusive:
        yield Row(name=f"{name} compute mode", state="warn", found="exclusive",
                  fix=f"nvidia-smi -i {one.index} -c DEFAULT: engines start several processes.")  # fmt: skip


def _speed(one: GpuState) -> Iterator[Row]:
    name = f"GPU {one.index}"
    if one.power_limit_w is not None and one.power_default_w:
        good = one.power_limit_w >= one.power_default_w * _CAPPED
        yield Row(name=f"{name} power cap", state="ok" if good else "warn",
                  found=f"{one.power_limit_w:.0f} W", wanted=f"{one.power_default_w:.0f} W",
                  fix="" if good else f"nvidia-smi -i {one.index} -pl {one.power_default_w:.0f}")  # fmt: skip
    if one.slowed_by:
        yield Row(name=f"{name} clocks", state="warn", found=f"held down: {', '.join(one.slowed_by)}",
                  fix="Look at cooling and power before measuring.")  # fmt: skip
    if one.persistence is not None:
        yield Row(name=f"{name} persistence", state="ok" if one.persistence else "warn",
                  found="on" if one.persistence else "off",
                  fix="" if one.persistence else "systemctl enable --now nvidia-persistenced")  # fmt: skip
    if one.pcie_width and one.pcie_max_width:
        # The generation drops when a GPU idles; lanes do not come back.
        good = one.pcie_width >= one.pcie_max_width
        link = f"gen {one.pcie_generation or '?'} x{one.pcie_width}"
        yield Row(name=f"{name} PCIe", state="ok" if good else "warn", found=link,
                  wanted=f"x{one.pcie_max_width}",
                  fix="" if good else "Seat the card anew, or use another slot.")  # fmt: skip


def _memory(
    devices: Devices, services: Sequence[Service], weights: Mapping[str, int], engine: str
) -> Iterator[Row]:
    by_index = {one.index: one for one in devices.gpus}
    for service in services:
        chosen = service.gpus or tuple(sorted(by_index))[: service.gpus_per_node]
        share = (service.settings.gpu_memory_utilization if service.settings else None) or _SHARE
        for index in chosen:
            one = by_index.get(index)
            if one is None or not one.memory_bytes:
                continue
            # vLLM refuses to start when less is free than it is to take; llama.cpp takes what it needs.
            need = (
                int(one.memory_bytes * share) if engine == "vllm"
                else weights.get(service.name, 0) // max(1, len(chosen))
            )  # fmt: skip
            good = one.free_bytes >= need
            yield Row(name=f"GPU {index} memory for {service.name}", state="ok" if good else "fail",
                      found=f"{human(one.free_bytes)} of {human(one.memory_bytes)} free{_held(one)}",
                      wanted=human(need), fix="" if good else _make_room(one))  # fmt: skip


def _held(one: GpuState) -> str:
    rows = [
        f"{human(p.bytes) if p.bytes else '?'} by process {p.pid}"
        f" ({p.name or ('of another user' if p.alive else 'which is gone')})"
        for p in one.processes
    ]
    return f"; held: {', '.join(rows)}" if rows else ""


def _make_room(one: GpuState) -> str:
    if any(not process.alive for process in one.processes):
        return "A process has died and its memory is still held: nvidia-smi --gpu-reset, or reboot."
    if one.processes:
        return "Stop the processes named, or lower gpu_memory_utilization."
    return (
        "Memory is held by what NVML does not show here (another container?); or lower the share."
    )


def _links(devices: Devices, services: Sequence[Service]) -> Iterator[Row]:
    for service in services:
        parallel = service.gpus_per_node
        if parallel < 2:
            continue
        chosen = service.gpus or tuple(range(parallel))
        group = [one for one in devices.gpus if one.index in chosen]
        name = f"links of {service.name}"
        if any(one.peers is None for one in group):
            yield Row(
                name=name, state="unknown", found="NVML does not say which GPUs reach each other"
            )
            continue
        apart = [
            f"{one.index}-{other.index}"
            for one in group for other in group
            if one.index < other.index and other.index not in (one.peers or ())
        ]  # fmt: skip
        bridged = all(one.nvlinks for one in group)
        due = any((known := gpu(one.name)) is not None and known.link == "nvlink" for one in group)
        if apart:
            yield Row(name=name, state="warn", found=f"no direct access: {', '.join(apart)}",
                      fix="What the GPUs share goes through host memory: check IOMMU/ACS and the topology"
                      " (nvidia-smi topo -m).")  # fmt: skip
        elif due and not bridged:
            yield Row(name=name, state="warn", found="PCIe, although these modules have NVLink",
                      fix="NVLinks are down: nvidia-smi nvlink -s, and nvidia-fabricmanager.")  # fmt: skip
        else:
            yield Row(name=name, state="ok", found="NVLink" if bridged else "PCIe, direct")


def _is(one: GpuState, model: str) -> bool:
    wanted, found = gpu(model), gpu(one.name)
    if wanted is None or found is None:
        return one.name.casefold() == model.casefold()
    return wanted.name == found.name


def _list(expected: Sequence[Gpu]) -> str:
    return ", ".join(f"{one.count}x {one.model}" for one in expected) or "a GPU"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
