"""What the bundle needs of the target, found in the shipped bytes; preflight checks it there."""

from __future__ import annotations

from pydantic import Field

from bundler.domain.record import Record


class Tool(Record):
    """A program (or set of files) that the host must have, and for what."""

    name: str = Field(description="gcc, g++, nvcc, ninja, python-headers ...")
    why: str


class HostNeeds(Record):
    """Requirements on the host. Empty: none found, or none looked for (`checked` says which)."""

    checked: bool = Field(False, description="Whether every shared object of the closure was read.")
    objects: int = Field(0, description="Shared objects read.")
    glibc: str = Field("", description="Newest GLIBC_x.y symbol version that any object needs.")
    glibcxx: str = Field("", description="Newest GLIBCXX_3.4.n (libstdc++) that any needs.")
    cxxabi: str = Field("", description="Newest CXXABI_1.3.n.")
    libraries: tuple[str, ...] = Field(
        (), description="Shared libraries that the closure does not bring and the host must have."
    )
    because: dict[str, str] = Field({}, description="Need -> wheel and object that has it.")
    cuda_runtime: str = Field("", description="CUDA runtime in the closure, e.g. 12.8.")
    driver: str = Field("", description="Oldest NVIDIA driver for that runtime.")
    tools: tuple[Tool, ...] = ()
