"""HostProbe: kernel, processor, memory and, through NVML, the GPUs. For the receipt."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

import pynvml

from bundler.domain.sizes import human


class HostFacts:
    """This machine."""

    def facts(self) -> dict[str, str]:
        """Name -> value."""
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return {
            "host": platform.node(),
            "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
            "glibc": " ".join(platform.libc_ver()).strip(),
            "processor": _processor(),
            "cores": str(len(os.sched_getaffinity(0))),
            "memory": human(pages),
            **dict(_gpus()),
        }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), "?")


def _gpus() -> Iterator[tuple[str, str]]:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as cause:
        yield "gpus", f"none that NVML can see ({cause})"
        return
    try:
        yield "driver", str(pynvml.nvmlSystemGetDriverVersion())
        for number in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(number)
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
            name = pynvml.nvmlDeviceGetName(handle)
            yield f"gpu {number}", f"{name}, {human(int(memory.total))}"
    except pynvml.NVMLError as cause:
        yield "gpus", f"NVML failed: {cause}"
    finally:
        pynvml.nvmlShutdown()
