"""DeviceProbe and DeviceSampler through NVML (`nvidia-ml-py`).

Each thing is asked alone, so that one refusal hides nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pynvml

from bundler.domain.host import Devices, GpuProcess, GpuState
from bundler.domain.telemetry import GpuObservation

T = TypeVar("T")
# https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html ; idle is no brake.
_BRAKES = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
_NVLINKS = 18
# nvmlGpuP2PCapsIndex_t; the library has a tuple in its place (13.615).
_P2P_READ = 0
_NONE_ANSWERS = (
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
)


class NvmlDevices:
    """This machine's NVIDIA GPUs."""

    def devices(self) -> Devices:
        """What NVML says. Never raises: a host without NVML is a fault in the answer."""
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as cause:
            return Devices(fault=f"NVML: {cause}")
        try:
            count = pynvml.nvmlDeviceGetCount()
            gpus = tuple(_gpu(number) for number in range(count))
            return Devices(
                driver=_text(pynvml.nvmlSystemGetDriverVersion()),
                cuda=_cuda(),
                gpus=_with_peers(gpus),
            )
        except pynvml.NVMLError as cause:
            return Devices(fault=f"NVML: {cause}")
        finally:
            pynvml.nvmlShutdown()


class NvmlSampler:
    """Looks at the GPUs while something runs on them: NVML is opened once, handles are kept."""

    def __init__(self) -> None:
        self._handles: dict[int, Any] = {}
        self._opened = False

    def open(self) -> str:
        """Find the GPUs; gives why there is nothing to read, empty when there is."""
        try:
            pynvml.nvmlInit()
            self._opened = True
            count = pynvml.nvmlDeviceGetCount()
        except pynvml.NVMLError as cause:
            return f"NVML: {cause}"
        for number in range(count):
            # One that has fallen off the bus is counted, and cannot be asked.
            with suppress(pynvml.NVMLError):
                self._handles[number] = pynvml.nvmlDeviceGetHandleByIndex(number)
        return "" if self._handles else "NVML: no GPU answers"

    def sample(self, t_s: float) -> tuple[GpuObservation, ...]:
        """Every GPU now. What one refuses is None; one that has gone is left out, and asked again."""
        seen = (_observed(t_s, number, handle) for number, handle in self._handles.items())
        return tuple(one for one in seen if one is not None)

    def close(self) -> None:
        """Let NVML go."""
        if self._opened:
            self._opened = False
            self._handles.clear()
            with suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()


def _observed(t_s: float, number: int, handle: Any) -> GpuObservation | None:
    ask = _Asking(handle).ask
    memory = ask("memory", pynvml.nvmlDeviceGetMemoryInfo)
    power = ask("power", pynvml.nvmlDeviceGetPowerUsage)
    limit = ask("power cap", pynvml.nvmlDeviceGetEnforcedPowerLimit)
    clock = ask("clock", pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM)
    brakes = ask("clocks", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    running = ask("processes", pynvml.nvmlDeviceGetComputeRunningProcesses)
    if all(answer is None for answer in (memory, power, limit, clock, brakes, running)):
        return None
    return GpuObservation(
        t_s=t_s,
        gpu=number,
        memory_used=int(memory.used) if memory else None,
        power_w=_watts(power),
        power_limit_w=_watts(limit),
        sm_clock_mhz=clock,
        throttle_reasons=tuple(text for bit, text in _BRAKES.items() if (brakes or 0) & bit),
        processes=tuple(sorted({one.pid for one in running or ()})),
    )


def _cuda() -> str:
    try:
        number = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    except pynvml.NVMLError:
        return ""
    return f"{number // 1000}.{number % 1000 // 10}"


class _Asking:
    """Asks one GPU; what it refuses is noted, what it has not is None."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.unread: dict[str, str] = {}

    def ask(self, what: str, question: Callable[..., T], *args: Any) -> T | None:
        """One answer."""
        try:
            return question(self.handle, *args)
        except pynvml.NVMLError as cause:
            if getattr(cause, "value", None) not in _NONE_ANSWERS:
                self.unread[what] = str(cause)
            return None


def _gpu(number: int) -> GpuState:
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(number)
    except pynvml.NVMLError as cause:
        # A GPU that has fallen off the bus is still counted.
        return GpuState(index=number, name="?", unread={"gpu": str(cause)})
    gpu = _Asking(handle)
    ask = gpu.ask
    memory = ask("memory", pynvml.nvmlDeviceGetMemoryInfo)
    capability = ask("compute capability", pynvml.nvmlDeviceGetCudaComputeCapability)
    mig = ask("MIG", pynvml.nvmlDeviceGetMigMode)
    ecc = ask("ECC", pynvml.nvmlDeviceGetEccMode)
    mode = ask("compute mode", pynvml.nvmlDeviceGetComputeMode)
    limits = ask("power limits", pynvml.nvmlDeviceGetPowerManagementLimitConstraints)
    brakes = ask("clocks", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons) or 0
    persistence = ask("persistence", pynvml.nvmlDeviceGetPersistenceMode)
    name = ask("name", pynvml.nvmlDeviceGetName)
    return GpuState(
        index=number,
        name=_text(name) if name is not None else "?",
        uuid=_text(ask("uuid", pynvml.nvmlDeviceGetUUID) or ""),
        compute_capability=".".join(map(str, capability)) if capability else "",
        memory_bytes=int(memory.total) if memory else 0,
        free_bytes=int(memory.free) if memory else 0,
        processes=_processes(gpu),
        mig=None if mig is None else mig[0] == pynvml.NVML_DEVICE_MIG_ENABLE,
        ecc=None if ecc is None else bool(ecc[0]),
        ecc_errors=ask(
            "ECC errors",
            pynvml.nvmlDeviceGetTotalEccErrors,
            pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
            pynvml.NVML_VOLATILE_ECC,
        ),
        persistence=None if persistence is None else bool(persistence),
        exclusive=None if mode is None else mode != pynvml.NVML_COMPUTEMODE_DEFAULT,
        power_limit_w=_watts(ask("power cap", pynvml.nvmlDeviceGetPowerManagementLimit)),
        power_default_w=_watts(
            ask("default power", pynvml.nvmlDeviceGetPowerManagementDefaultLimit)
        ),
        power_max_w=_watts(limits[1]) if limits else None,
        slowed_by=tuple(text for bit, text in _BRAKES.items() if brakes & bit),
        pcie_generation=ask("PCIe", pynvml.nvmlDeviceGetCurrPcieLinkGeneration),
        pcie_max_generation=ask("PCIe", pynvml.nvmlDeviceGetMaxPcieLinkGeneration),
        pcie_width=ask("PCIe", pynvml.nvmlDeviceGetCurrPcieLinkWidth),
        pcie_max_width=ask("PCIe", pynvml.nvmlDeviceGetMaxPcieLinkWidth),
        nvlinks=_nvlinks(gpu),
        unread=gpu.unread,
    )


def _processes(gpu: _Asking) -> tuple[GpuProcess, ...]:
    found: dict[int, GpuProcess] = {}
    for question in (
        pynvml.nvmlDeviceGetComputeRunningProcesses,
        pynvml.nvmlDeviceGetGraphicsRunningProcesses,
    ):
        for one in gpu.ask("processes", question) or ():
            alive = Path(f"/proc/{one.pid}").exists()
            used = one.usedGpuMemory
            found[one.pid] = GpuProcess(
                pid=one.pid, name=_command(one.pid), bytes=used or None, alive=alive
            )
    return tuple(found[pid] for pid in sorted(found))


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    text = " ".join(word.decode("utf-8", "replace") for word in words if word)
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:200]


def _nvlinks(gpu: _Asking) -> int | None:
    """Links that are up; None where the GPU has none to speak of."""
    up, known = 0, False
    for link in range(_NVLINKS):
        state = gpu.ask("NVLink", pynvml.nvmlDeviceGetNvLinkState, link)
        if state is None:
            break
        known, up = True, up + (state == pynvml.NVML_FEATURE_ENABLED)
    return up if known else None


def _with_peers(gpus: tuple[GpuState, ...]) -> tuple[GpuState, ...]:
    """Which GPUs read each other's memory directly."""
    return tuple(gpu.model_copy(update={"peers": _peers(gpu, gpus)}) for gpu in gpus)


def _peers(gpu: GpuState, gpus: tuple[GpuState, ...]) -> tuple[int, ...] | None:
    if "gpu" in gpu.unread or len(gpus) < 2:
        return None
    reached = []
    try:
        one = pynvml.nvmlDeviceGetHandleByIndex(gpu.index)
        for other in gpus:
            if other.index != gpu.index and "gpu" not in other.unread:
                two = pynvml.nvmlDeviceGetHandleByIndex(other.index)
                status = pynvml.nvmlDeviceGetP2PStatus(one, two, _P2P_READ)
                if status == pynvml.NVML_P2P_STATUS_OK:
                    reached.append(other.index)
    except pynvml.NVMLError:
        return None
    return tuple(reached)


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
