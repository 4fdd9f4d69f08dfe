"""GPUs that are known by name: memory as nvidia-smi reports it, compute capability, link.

Compute capabilities: https://developer.nvidia.com/cuda-gpus . Memory is the total that nvidia-smi
prints (with ECC on where the product ships so), which is less than the nominal size of some
products and more than it of others; each entry says where it was read.
"""

import re
from typing import Literal

from pydantic import Field

from bundler.domain.record import Record

_MIB = 2**20
_LONGEST_NAME = 200


class GpuModel(Record):
    """One GPU product."""

    name: str = Field(description="As nvidia-smi prints it.")
    memory_bytes: int = Field(description="Total that nvidia-smi reports.")
    compute_capability: str = Field(description="For example `9.0`.")
    link: Literal["nvlink", "pcie", ""] = Field(
        "", description="Between GPUs of one host; empty: depends on the machine."
    )
    source: str = Field(description="Where the memory was read.")
    aliases: tuple[str, ...] = Field(description="Other names, without maker and size.")
    sizes: tuple[int, ...] = Field(description="Sizes in GB that a name may state.")


def _model(
    name: str,
    mib: int,
    capability: str,
    link: Literal["nvlink", "pcie", ""],
    aliases: str,
    sizes: tuple[int, ...],
    source: str,
) -> GpuModel:
    return GpuModel(
        name=name,
        memory_bytes=mib * _MIB,
        compute_capability=capability,
        link=link,
        source=source,
        aliases=tuple(alias.strip() for alias in aliases.split(",")),
        sizes=sizes,
    )


_LOGS = "nvidia-smi, as printed in many public logs"
_MODAL = "https://github.com/modal-labs/modal-client/pull/2797"
_CLUB = "https://github.com/noonghunna/club-3090"

GPUS = (
    _model("NVIDIA H200", 143771, "9.0", "nvlink", "H200, H200 SXM, H200 SXM5", (141,), _LOGS),
    _model("NVIDIA H200 NVL", 143771, "9.0", "", "H200 NVL", (141,), _LOGS),
    _model("NVIDIA H100 80GB HBM3", 81559, "9.0", "nvlink", "H100, H100 SXM, H100 SXM5", (80,),
           "https://github.com/NVIDIA/nccl/issues/1264"),
    _model("NVIDIA H100 PCIe", 81559, "9.0", "", "H100, H100 PCIe", (80,), _MODAL),
    _model("NVIDIA H100 NVL", 95830, "9.0", "", "H100 NVL", (94,), _LOGS),
    _model("NVIDIA GH200 480GB", 97871, "9.0", "", "GH200", (96, 120, 480), _LOGS),
    _model("NVIDIA B200", 183359, "10.0", "nvlink", "B200, B200 SXM", (180, 192),
           "https://github.com/NVIDIA/TensorRT-LLM/issues/10278"),
    _model("NVIDIA A100-SXM4-80GB", 81920, "8.0", "nvlink", "A100, A100 SXM, A100 SXM4", (80,), _MODAL),
    _model("NVIDIA A100 80GB PCIe", 81920, "8.0", "", "A100, A100 PCIe", (80,), _MODAL),
    _model("NVIDIA A100-SXM4-40GB", 40960, "8.0", "nvlink", "A100, A100 SXM, A100 SXM4", (40,), _MODAL),
    _model("NVIDIA A100-PCIE-40GB", 40960, "8.0", "", "A100, A100 PCIe", (40,), _MODAL),
    _model("NVIDIA A10", 23028, "8.6", "pcie", "A10", (24,), _MODAL),
    _model("NVIDIA L40S", 46068, "8.9", "pcie", "L40S", (48,), _MODAL),
    _model("NVIDIA L4", 23034, "8.9", "pcie", "L4", (24,), _MODAL),
    _model("NVIDIA RTX 6000 Ada Generation", 49140, "8.9", "pcie",
           "RTX 6000 Ada, 6000 Ada", (48,), _LOGS),
    _model("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, "12.0", "pcie",
           "RTX PRO 6000, PRO 6000, RTX PRO 6000 Blackwell, PRO 6000 Blackwell,"
           " RTX PRO 6000 Blackwell Server", (96,),
           "https://github.com/vllm-project/recipes/pull/831"),
    _model("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 97887, "12.0", "pcie",
           "RTX PRO 6000 Blackwell Workstation", (96,), _LOGS),
    _model("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 97887, "12.0", "pcie",
           "RTX PRO 6000 Blackwell Max-Q Workstation, RTX PRO 6000 Blackwell Max-Q", (96,),
           "https://github.com/vllm-project/recipes/pull/831"),
    _model("NVIDIA GeForce RTX 5090", 32607, "12.0", "pcie", "RTX 5090, 5090", (32,),
           f"{_CLUB}/issues/617"),
    _model("NVIDIA GeForce RTX 4090", 24564, "8.9", "pcie", "RTX 4090, 4090", (24,),
           "https://github.com/vllm-project/vllm/issues/7553"),
    _model("NVIDIA GeForce RTX 3090", 24576, "8.6", "", "RTX 3090, 3090", (24,),
           f"{_CLUB}/issues/390"),
    _model("NVIDIA GeForce RTX 3090 Ti", 24564, "8.6", "", "RTX 3090 Ti, 3090 Ti", (24,), _LOGS),
    _model("NVIDIA GeForce RTX 2080 SUPER", 8192, "7.5", "", "RTX 2080 Super, 2080 Super", (8,), _LOGS),
)  # fmt: skip

_NOISE = re.compile(r"NVIDIA|GEFORCE|TESLA|GENERATION|EDITION|GPU|HBM\d?E?|GDDR\d?X?")
_SIZE = re.compile(r"(\d{1,4})GI?B?")


def gpu(name: str) -> GpuModel | None:
    """The product with this name, as nvidia-smi or people write it; None when not certain.

    Maker, brand and size may be left out, and nvidia-smi's shortened names (`RTX 6000 Ada Gene...`)
    are understood, as long as memory and capability are certain: `A100` alone is not (40 or 80 GB).
    Where a name may mean an SXM module or a card, the first in the table is given without its link.
    """
    if len(name) > _LONGEST_NAME:
        return None
    found = _cut_short(name) if name.rstrip().endswith(("...", "\u2026")) else _whole(name)
    if len({(entry.memory_bytes, entry.compute_capability) for entry in found}) != 1:
        return None
    links = {entry.link for entry in found}
    return found[0] if len(links) == 1 else found[0].model_copy(update={"link": ""})


def _whole(name: str) -> tuple[GpuModel, ...]:
    exact = tuple(entry for entry in GPUS if _words(entry.name) == _words(name))
    key, sizes = _parts(name)
    return exact or tuple(
        entry
        for entry in GPUS
        if key in {_parts(text)[0] for text in (entry.name, *entry.aliases)}
        and sizes <= set(entry.sizes)
    )


def _cut_short(name: str) -> tuple[GpuModel, ...]:
    begin = "".join(_words(name))
    return tuple(entry for entry in GPUS if begin and "".join(_words(entry.name)).startswith(begin))


def _words(text: str) -> list[str]:
    spaced = re.sub(r"(\d)\s+(?=GI?B\b)", r"\1", text.upper())
    return [word for word in re.split(r"[^A-Z0-9]+", spaced) if word]


def _parts(text: str) -> tuple[str, set[int]]:
    """The words that tell the product apart, joined, and the sizes in GB among them."""
    words = _words(text)
    sizes = {int(match[1]) for word in words if (match := _SIZE.fullmatch(word))}
    kept = [word for word in words if not _NOISE.fullmatch(word) and not _SIZE.fullmatch(word)]
    return "".join(kept), sizes
