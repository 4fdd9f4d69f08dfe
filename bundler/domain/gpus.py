"""GPUs that are known by name: memory as nvidia-smi reports it, and compute capability.

Compute capabilities: https://developer.nvidia.com/cuda-gpus . Memory is the total that nvidia-smi
prints (MiB); the source of each figure stands beside it.
"""

from __future__ import annotations

import re

from pydantic import Field

from bundler.domain.record import Record

_MIB = 2**20
_MODAL = "https://github.com/modal-labs/modal-client/pull/2797"
_CLUB = "https://github.com/noonghunna/club-3090"
_SEEN = "total in nvidia-smi tables of public reports"


class GpuModel(Record):
    """One GPU product."""

    name: str = Field(description="As nvidia-smi prints it.")
    memory_bytes: int = Field(description="Total that nvidia-smi reports.")
    compute_capability: str = Field(description="For example `9.0`.")
    source: str = Field(description="Of the memory figure.")


# Words that must all occur, words that must not, name, MiB, compute capability, source. The first
# row that fits counts, so that the special stands before the general.
_TABLE = (
    (("GH200",), (), "NVIDIA GH200 480GB", 97871, "9.0", _SEEN),
    (("H200", "NVL"), (), "NVIDIA H200 NVL", 143771, "9.0", _SEEN),
    (("H200",), (), "NVIDIA H200", 143771, "9.0", _SEEN),
    (("H100", "NVL"), (), "NVIDIA H100 NVL", 95830, "9.0", _SEEN),
    (("H100", "PCIE"), (), "NVIDIA H100 PCIe", 81559, "9.0", _MODAL),
    (("H100",), (), "NVIDIA H100 80GB HBM3", 81559, "9.0", _MODAL),
    (("H20",), (), "NVIDIA H20", 97871, "9.0", _SEEN),
    (("A100", "40GB"), (), "NVIDIA A100-SXM4-40GB", 40960, "8.0", _MODAL),
    (("A100",), (), "NVIDIA A100-SXM4-80GB", 81920, "8.0", _MODAL),
    (("L40S",), (), "NVIDIA L40S", 46068, "8.9", _MODAL),
    (("L4",), (), "NVIDIA L4", 23034, "8.9", _MODAL),
    (("A10",), (), "NVIDIA A10", 23028, "8.6", _MODAL),
    (("T4",), (), "Tesla T4", 15360, "7.5", _MODAL),
    (("A6000",), (), "NVIDIA RTX A6000", 49140, "8.6", _SEEN),
    (("6000", "ADA"), (), "NVIDIA RTX 6000 Ada Generation", 49140, "8.9", _SEEN),
    (("PRO", "6000"), ("ADA",), "NVIDIA RTX PRO 6000 Blackwell", 97887, "12.0", _SEEN),
    (("2080", "SUPER"), (), "NVIDIA GeForce RTX 2080 SUPER", 8192, "7.5", _SEEN),
    (("2080", "TI"), (), "NVIDIA GeForce RTX 2080 Ti", 11264, "7.5", _SEEN),
    (("3090", "TI"), (), "NVIDIA GeForce RTX 3090 Ti", 24564, "8.6", _CLUB),
    (("3090",), (), "NVIDIA GeForce RTX 3090", 24576, "8.6", _CLUB),
    (("4090",), (), "NVIDIA GeForce RTX 4090", 24564, "8.9", _CLUB),
    (("5090",), (), "NVIDIA GeForce RTX 5090", 32607, "12.0", _CLUB),
    (("B200",), (), "NVIDIA B200", 183359, "10.0", "https://github.com/NVIDIA/TensorRT-LLM/issues/10278"),
)  # fmt: skip


def gpu(name: str) -> GpuModel | None:
    """The product with this name, as nvidia-smi or a person writes it; None when it is not known.

    `H100` alone is the 80 GB SXM module, `A100` the 80 GB one.
    """
    words = set(re.split(r"[^A-Z0-9]+", name.upper()))
    # `RTX3090Ti` in one word.
    words |= {part for word in words for part in re.findall(r"[A-Z]+|[0-9]+(?:GB)?", word)}
    for wanted, unwanted, product, mib, capability, source in _TABLE:
        if set(wanted) <= words and not set(unwanted) & words:
            return GpuModel(
                name=product,
                memory_bytes=mib * _MIB,
                compute_capability=capability,
                source=source,
            )
    return None
