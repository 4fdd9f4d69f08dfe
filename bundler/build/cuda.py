"""The CUDA runtime in a closure, and the oldest NVIDIA driver that runs it.

Sources: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html (a driver of
the same major release runs every minor one), release notes of the toolkits, table 3, for the drivers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# CUDA major release -> oldest Linux driver for any of its minor releases.
OLDEST_DRIVER = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
# Driver branch -> newest CUDA that it states (`nvidia-smi`, top right).
_STATED = ((580, (13, 0)), (575, (12, 9)), (570, (12, 8)), (565, (12, 7)), (560, (12, 6)),
           (555, (12, 5)), (550, (12, 4)), (545, (12, 3)), (535, (12, 2)), (530, (12, 1)),
           (525, (12, 0)), (520, (11, 8)), (450, (11, 0)))  # fmt: skip
_RUNTIME = re.compile(r"nvidia-cuda-runtime(-cu(?P<major>\d+))?")


def runtime_of(packages: Mapping[str, str], libraries: Mapping[str, str]) -> str:
    """CUDA runtime of a closure, `12.8`; empty when it has none.

    Args:
        packages: normalized name -> version.
        libraries: DT_NEEDED library -> who needs it: an engine may link a runtime that is not carried.
    """
    if packages.get("torch", "").endswith("+cpu"):
        # Others may bring a CUDA runtime along; the engine does without.
        return ""
    found = [numbers(version)[:2] for name, version in packages.items() if _RUNTIME.fullmatch(name)]
    linked = [(int(match[1]), 0) for library in libraries
              if (match := re.fullmatch(r"libcudart\.so\.(\d+)", library))]  # fmt: skip
    # A package with a runtime for each major release may be carried beside the one that is linked.
    majors = {major for major, _ in linked}
    fitting = [pair for pair in found if not majors or pair[0] in majors] or linked
    return ".".join(map(str, max(fitting))) if fitting else ""


def driver_for(runtime: str) -> str:
    """The oldest driver for a runtime; empty when it is not known."""
    return OLDEST_DRIVER.get(numbers(runtime)[0], "") if runtime else ""


def cuda_of_driver(driver: str) -> tuple[int, int] | None:
    """The newest CUDA that a driver states; None for one older than the table."""
    branch = numbers(driver)[0]
    return next((cuda for lowest, cuda in _STATED if branch >= lowest), None)


def numbers(text: str) -> tuple[int, ...]:
    """`12.8.90` -> (12, 8, 90)."""
    return tuple(int(part) for part in re.findall(r"\d+", text)) or (0,)
