"""The closed machine that a bundle is built for."""

from typing import Literal

from pydantic import Field

from bundler.domain.record import Record

AUTO = "auto"
ToolName = Literal["gcc", "g++", "nvcc", "ninja", "python-headers", "cuda-compat"]


class Gpu(Record):
    """GPUs of one kind in the target machine."""

    model: str = Field(description="Product name, for example `NVIDIA H200`.")
    count: int = Field(1, ge=1, le=64, description="How many of them.")


class WantedTarget(Record):
    """The closed machine as the spec states it: its glibc may be left open."""

    os: Literal["linux"] = Field("linux", description="Operating system.")
    arch: Literal["x86_64", "aarch64"] = Field("x86_64", description="Processor architecture.")
    python: Literal["3.10", "3.11", "3.12", "3.13", "3.14"] = Field(
        description="CPython minor version on the target."
    )
    glibc: str = Field(
        AUTO,
        pattern=r"^(auto|2\.[0-9]{1,2})$",
        description="The target's glibc (`ldd --version`), e.g. `2.31`; with `auto` the oldest that"
        " the wheels admit, from 2.28 on, is found and put into the lock.",
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

    @property
    def states_glibc(self) -> bool:
        """Whether the spec names the glibc; if not, the lock's was found from the wheels."""
        return self.glibc != AUTO

    def with_glibc(self, glibc: str) -> "Target":
        """The same machine with this glibc."""
        return Target.model_validate(self.model_dump() | {"glibc": glibc})


class Target(WantedTarget):
    """The closed machine that the bundle is built for; its glibc is always known."""

    glibc: str = Field(
        pattern=r"^2\.[0-9]{1,2}$", description="The target's glibc (`ldd --version`), e.g. `2.31`."
    )
