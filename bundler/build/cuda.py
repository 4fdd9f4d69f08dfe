"""The CUDA runtime in a closure, and the oldest NVIDIA driver that runs it.

Sources: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html (a driver of
the same major release runs every minor one), release notes of the toolkits, table 3, for the drivers.
Blackwell: "requires a compatible driver (R570 or higher)",
https://forums.developer.nvidia.com/t/software-migration-guide-for-nvidia-blackwell-rtx-gpus/321330 .
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# CUDA major release -> oldest Linux driver for any of its minor releases.
OLDEST_DRIVER = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
# Compute capability, from -> oldest driver that knows such GPUs, and the CUDA that it states.
_BLACKWELL = ((10, 0), "570", (12, 8))
# Driver branch -> newest CUDA that it states (`nvidia-smi`, top right).
_STATED = ((580, (13, 0)), (575, (12, 9)), (570, (12, 8)), (565, (12, 7)), (560, (12, 6)),
           (555, (12, 5)), (550, (12, 4)), (545, (12, 3)), (535, (12, 2)), (530, (12, 1)),
           (525, (12, 0)), (520, (11, 8)), (450, (11, 0)))  # fmt: skip
_LOCAL = re.compile(r".*\+cu(\d\d)(\d{1,2})")
_RUNTIME = re.compile(r"nvidia-cuda-runtime(-cu(?P<major>\d+))?")


def runtime_of(packages: Mapping[str, str], libraries: Mapping[str, str]) -> str:
    """CUDA runtime of a closure, `12.8`; empty when it has none.

    Args:
        packages: normalized name -> version.
        libraries: DT_NEEDED library -> who needs it: an engine may link a runtime that is not carried.
    """
    if is_cpu_build(packages):
        # Others may bring a CUDA runtime along; the engine does without.
        return ""
    stated = _LOCAL.fullmatch(packages.get("torch", ""))
    found = [tuple(map(int, stated.groups()))] if stated else []
    found += [
        numbers(version)[:2] for name, version in packages.items() if _RUNTIME.fullmatch(name)
    ]
    linked = [(int(match[1]), 0) for library in libraries
              if (match := re.fullmatch(r"libcudart\.so\.(\d+)", library))]  # fmt: skip
    # A package with a runtime for each major release may be carried beside the one that is linked.
    majors = {major for major, _ in linked}
    fitting = [pair for pair in found if not majors or pair[0] in majors] or linked
    return ".".join(map(str, max(fitting))) if fitting else ""


def is_cpu_build(packages: Mapping[str, str]) -> bool:
    """Whether torch is its build without CUDA."""
    return packages.get("torch", "").endswith("+cpu")


def gpu_floor(capability: str) -> tuple[str, tuple[int, int]]:
    """The oldest driver that knows GPUs of a compute capability, and the newest CUDA it states.

    Empty and (0, 0) for those that every driver of the table knows.
    """
    since, driver, cuda = _BLACKWELL
    return (driver, cuda) if numbers(capability) >= since else ("", (0, 0))


def driver_for(runtime: str) -> str:
    """The oldest driver for a runtime; empty when it is not known."""
    return OLDEST_DRIVER.get(numbers(runtime)[0], "") if runtime else ""


def cuda_of_driver(driver: str) -> tuple[int, int] | None:
    """The newest CUDA that a driver states; None for one older or newer than the table."""
    branch = numbers(driver)[0]
    if branch > _STATED[0][0]:
        return None
    return next((cuda for lowest, cuda in _STATED if branch >= lowest), None)


def numbers(text: str) -> tuple[int, ...]:
    """`12.8.90` -> (12, 8, 90)."""
    return tuple(int(part) for part in re.findall(r"\d+", text)) or (0,)
