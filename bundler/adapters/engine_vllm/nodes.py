"""The commands of one model over several hosts, in vLLM's two ways.

Native (`--nnodes`, from 0.11.1 on): each host runs vLLM itself, the first one with the API, the others
`--headless`. Ray: each host runs a Ray node, and the first one vLLM besides, which places its workers on them.
https://docs.vllm.ai/en/latest/serving/parallelism_scaling/ ,
https://docs.ray.io/en/latest/cluster/cli.html#ray-start .
"""

from __future__ import annotations

from pathlib import Path

from bundler.domain.names import at_port
from bundler.domain.seat import Seat
from bundler.domain.spec import Service
from bundler.errors import SpecError
from bundler.ports import Install

NATIVE = ("--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless")
# The API server's module starts a server whatever `--headless` says: only `vllm serve` heeds it.
SERVER = ("-m", "vllm.entrypoints.openai.api_server")
_COMMAND = ("-m", "vllm.entrypoints.cli.main", "serve")


def program(seat: Seat | None, model: Path) -> tuple[str, ...]:
    """What Python runs; further flags follow. `vllm serve` wants the model as its argument."""
    if seat and seat.way == "native" and seat.rank:
        return (*_COMMAND, str(model))
    return (*SERVER, "--model", str(model))


def flags(seat: Seat | None, service: Service) -> tuple[str, ...]:
    """How vLLM finds the other hosts."""
    if seat is None:
        return ()
    if seat.way != "native":
        return ("--distributed-executor-backend", "ray")
    return (
        "--distributed-executor-backend", "mp",
        "--nnodes", str(service.nodes), "--node-rank", str(seat.rank),
        "--master-addr", seat.head, "--master-port", str(seat.port),
        *(("--headless",) if seat.rank else ()),
    )  # fmt: skip


def environment(seat: Seat | None) -> dict[str, str]:
    """Under which address this host is reached, and where Ray is."""
    if seat is None:
        return {}
    ray = {"RAY_ADDRESS": at_port(seat.head, seat.port)} if seat.way == "ray" else {}
    return {"VLLM_HOST_IP": seat.own, **ray}


def ray_node(install: Install, service: Service, seat: Seat) -> tuple[str, ...]:
    """A node of Ray, in the foreground.

    Raises:
        SpecError: the release holds no Ray.
    """
    ray = install.python.with_name("ray")
    if ray not in install.programs:
        raise SpecError(
            f"{service.name}: this release holds no Ray",
            hint="Build it with engine.requirements: ['ray[cgraph]'], or spread it by vLLM's own"
            " executor: airbundle export --format multinode.",
        )
    meet = (
        ("--head", "--port", str(seat.port), "--include-dashboard=false")
        if seat.rank == 0
        else ("--address", at_port(seat.head, seat.port))
    )
    return (
        str(ray), "start", *meet, "--node-ip-address", seat.own,
        "--num-gpus", str(service.gpus_per_node), "--disable-usage-stats", "--block",
    )  # fmt: skip
