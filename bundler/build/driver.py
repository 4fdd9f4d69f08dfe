"""Whether the target's NVIDIA driver runs the CUDA runtime that is carried, on the target's GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from bundler.build.cuda import cuda_of_driver, gpu_floor, numbers
from bundler.domain.catalogue import finding
from bundler.domain.findings import Finding, Level
from bundler.domain.gpus import GpuModel, gpu
from bundler.domain.needs import HostNeeds
from bundler.domain.target import Target


def judge_driver(needs: HostNeeds, target: Target, user: str) -> Iterator[Finding]:
    """Judge target.driver, else target.cuda.

    Args:
        needs: with the CUDA runtime and its oldest driver; without a runtime only `user` tells.
        target: the closed machine.
        user: an object that needs a library of the driver; empty when none does.
    """
    if not needs.cuda_runtime:
        if user and target.driver is None and target.cuda is None:
            yield finding("driver-needed", "target.driver", f"{user}, which the driver brings")
        return
    known = [model for model in (gpu(item.model) for item in target.gpus) if model]
    too_old = list(_unknown_gpu(target, known)) or list(_old_major(needs, target, known))
    yield from too_old or _same_major(needs, target)


def _what(needs: HostNeeds) -> str:
    return f"CUDA runtime {needs.cuda_runtime} needs an NVIDIA driver {needs.driver} or newer"


def _unknown_gpu(target: Target, known: list[GpuModel]) -> Iterator[Finding]:
    """A driver that is older than the GPU; cuda-compat brings no kernel module, so it does not help."""
    for model in known:
        floor, cuda = gpu_floor(model.compute_capability)
        if not floor:
            continue
        if target.driver is not None and numbers(target.driver) < numbers(floor):
            place, has = "target.driver", target.driver
        elif target.driver is None and target.cuda is not None and numbers(target.cuda) < cuda:
            place, has = "target.cuda", f"one for CUDA {target.cuda}"
        else:
            continue
        what = f"{model.name} needs an NVIDIA driver {floor} or newer, the target has {has}"
        yield finding("cuda-too-old", place, what, fix="Update the driver; it can be carried.")
        return


def _old_major(needs: HostNeeds, target: Target, known: list[GpuModel]) -> Iterator[Finding]:
    found = _stated_too_old(needs, target)
    if found is None:
        return
    place, has = found
    level, fix = None, ""
    if "cuda-compat" in target.tools:
        # https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html
        gamer = next((model.name for model in known if "GeForce" in model.name), None)
        level = Level.ERROR if gamer else Level.WARNING
        has += (
            f"; cuda-compat does not work on {gamer}" if gamer else "; cuda-compat has to bridge it"
        )
        fix = (
            ""
            if gamer
            else "cuda-compat works on data center GPUs; try it there before you rely on it."
        )
    yield finding("cuda-too-old", place, f"{_what(needs)}; {has}", level=level, fix=fix)


def _stated_too_old(needs: HostNeeds, target: Target) -> tuple[str, str] | None:
    """Where it is stated, and what is."""
    if target.driver is not None and numbers(target.driver) < numbers(needs.driver):
        cuda = cuda_of_driver(target.driver)
        runs = f", which runs CUDA {cuda[0]}.{cuda[1]}" if cuda else ""
        return "target.driver", f"the target has {target.driver}{runs}"
    major = numbers(needs.cuda_runtime)[0]
    if target.driver is None and target.cuda is not None and numbers(target.cuda)[0] < major:
        return "target.cuda", f"the target's runs up to CUDA {target.cuda}"
    return None


def _same_major(needs: HostNeeds, target: Target) -> Iterator[Finding]:
    """A driver of the same major release runs every minor one, but does not compile its PTX."""
    if target.driver is None and target.cuda is None:
        yield finding("driver-needed", "target.driver", _what(needs))
        return
    place = "target.cuda" if target.driver is None else "target.driver"
    stated = numbers(target.cuda or "") if target.driver is None else cuda_of_driver(target.driver)
    runtime = numbers(needs.cuda_runtime)
    if stated and len(runtime) > 1 and stated[0] == runtime[0] and stated < runtime:
        what = f"CUDA runtime {needs.cuda_runtime} on a driver for CUDA {stated[0]}.{stated[1]}"
        yield finding("cuda-minor", place, what)
