"""GPUs that are known by name: memory and compute capability."""

from __future__ import annotations

from pydantic import Field

from bundler.domain.record import Record

_SOURCE = "https://developer.nvidia.com/cuda-gpus"
_GIB = 2**30


class GpuModel(Record):
    """One GPU product."""

    name: str
    memory_bytes: int
    compute_capability: str = Field(description="For example `9.0`.")
    source: str


# Word that tells the product apart, name, GiB, compute capability.
_TABLE = (
    ("H200", "NVIDIA H200", 141, "9.0"),
    ("H100", "NVIDIA H100 80GB HBM3", 80, "9.0"),
    ("A100", "NVIDIA A100-SXM4-80GB", 80, "8.0"),
    ("L40S", "NVIDIA L40S", 48, "8.9"),
    ("3090", "NVIDIA GeForce RTX 3090 Ti", 24, "8.6"),
    ("B200", "NVIDIA B200", 180, "10.0"),
)


def gpu(name: str) -> GpuModel | None:
    """The product with this name, as nvidia-smi writes it; None when it is not in the table."""
    words = name.upper().replace("-", " ").split()
    for word, product, size, capability in _TABLE:
        if word in words:
            return GpuModel(
                name=product,
                memory_bytes=size * _GIB,
                compute_capability=capability,
                source=_SOURCE,
            )
    return None
