"""What the bundle needs of the target, found in the shipped bytes; preflight checks it there."""

from typing import Annotated

from pydantic import Field, StringConstraints

from bundler.domain.record import Record

# They cross the gap: nothing in them may steer a terminal or go on for ever.
Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*$", max_length=1000)]
Version = Annotated[str, StringConstraints(pattern=r"^([0-9]{1,5}(\.[0-9]{1,5}){0,4})?$")]


class Tool(Record):
    """A program (or set of files) that the host must have, and for what."""

    name: Line = Field(description="gcc, g++, nvcc, ninja, python-headers ...")
    why: Line


class HostNeeds(Record):
    """Requirements on the host. Empty: none found, or none looked for (`checked` says which)."""

    checked: bool = Field(False, description="Whether every shared object of the closure was read.")
    objects: int = Field(0, description="Shared objects read.")
    glibc: Version = Field("", description="Newest GLIBC_x.y symbol version that any object needs.")
    glibcxx: Version = Field("", description="Newest GLIBCXX_3.4.n (libstdc++) that any needs.")
    cxxabi: Version = Field("", description="Newest CXXABI_1.3.n.")
    libraries: tuple[Line, ...] = Field(
        (),
        max_length=1000,
        description="Shared libraries that the closure does not bring and the host must have.",
    )
    because: dict[Line, Line] = Field(
        {}, max_length=2000, description="Need -> wheel and object that has it."
    )
    cuda_runtime: Version = Field("", description="CUDA runtime in the closure, e.g. 12.8.")
    driver: Version = Field("", description="Oldest NVIDIA driver for that runtime.")
    tools: tuple[Tool, ...] = Field((), max_length=100)


def needs_lines(needs: HostNeeds) -> list[str]:
    """What the host must have, one thing on each line."""
    return [
        *([f"glibc {needs.glibc} or newer"] if needs.glibc else []),
        *([f"libstdc++ with GLIBCXX_{needs.glibcxx}"] if needs.glibcxx else []),
        *(
            [f"NVIDIA driver {needs.driver} or newer (CUDA {needs.cuda_runtime})"]
            if needs.driver
            else []
        ),
        *needs.libraries,
        *(f"{tool.name}: {tool.why}" for tool in needs.tools),
    ]
