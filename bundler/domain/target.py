"""The closed machine that a bundle is built for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bundler.domain.record import Record

ToolName = Literal["gcc", "g++", "nvcc", "ninja", "python-headers", "cuda-compat"]


class Gpu(Record):
    """GPUs of one kind in the target machine."""

    model: str = Field(description="Product name, for example `NVIDIA H200`.")
    count: int = Field(1, ge=1, le=64, description="How many of them.")


class Target(Record):
    """The closed machine that the bundle is built for."""

    os: Literal["linux"] = Field("linux", description="Operating system.")
    arch: Literal["x86_64", "aarch64"] = Field("x86_64", description="Processor architecture.")
    python: Literal["3.10", "3.11", "3.12", "3.13", "3.14"] = Field(
        description="CPython minor version on the target."
    )
    glibc: str = Field(
        pattern=r"^2\.[0-9]{1,2}$", description="The target's glibc (`ldd --version`), e.g. `2.31`."
    )
    cuda: str | None = Field(
        None,
        pattern=r"^[0-9]{1,3}\.[0-9]{1,3}$",
        description="Newest CUDA that the target's driver supports (`nvidia-smi`, top right).",
    )
    driver: str | None = Field(
        None,
        pattern=r"^[0-9]{1,4}(\.[0-9]{1,4}){0,3}$",
        description="The target's NVIDIA driver, e.g. `570.124.06`.",
    )
    tools: tuple[ToolName, ...] = Field(
        (),
        max_length=20,
        description="What the target has for compiling at run time; nothing is assumed.",
    )
    gpus: tuple[Gpu, ...] = Field((), max_length=64, description="GPUs in the target.")
