"""What each host runs of a service that spans several: a script for the head, one for the others, one file to fill in.

The scripts call `airbundle run`, which checks that the release is still trusted and becomes vLLM or Ray with the bundle's own
settings, so that nothing of these is written twice. They name the root and not the release.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from bundler.domain.seat import Seat, Way
from bundler.domain.spec import Service
from bundler.ports import LaunchPlan

ENV_FILE = "nodes.env"
# vLLM's own --master-port, and Ray's --port.
PORTS: dict[Way, int] = {"native": 29501, "ray": 6379}
_FORMATS = {"native": "multinode", "ray": "ray"}

_ENV = """\
# The nodes of {name}; read by head.sh and worker.sh, and never overwritten. The same on every node, but for VLLM_HOST_IP.
# What the nodes say to each other is neither encrypted nor authenticated, and who reaches these ports can run code there:
# name addresses of a network of their own.

# Address of the head, as the other nodes reach it.
HEAD_ADDRESS=
# Port at which it waits for them.
HEAD_PORT={port}

# This node's own address, where the one that leads to the head is not it.
#VLLM_HOST_IP=10.0.0.5
# Ray (from 2.52 on) can ask its nodes for a token, of a file that lies on each of them: `ray get-auth-token --generate`.
#RAY_AUTH_MODE=token
#RAY_AUTH_TOKEN_PATH=/etc/ray/auth_token
# The network interfaces between the nodes; without them NCCL and Gloo choose by themselves.
#NCCL_SOCKET_IFNAME=eth0
#GLOO_SOCKET_IFNAME=eth0
#NCCL_IB_HCA=mlx5
"""
_TOP = """\
#!/bin/sh
# Made by `airbundle export --format {format}`; see docs/launch.md.
# {what}
#   {usage}
# `airbundle run` gives it the bundle's settings, the caches below the root, the variables that keep it offline
# and, where clients need one, the API key of ROOT/secrets. With the release in use at the export it becomes
{commands}
# On each node the release is installed in {root}.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
set -a
# shellcheck source=/dev/null
. "$here/{env}"
set +a
if [ -z "${{HEAD_ADDRESS:-}}" ]; then
    echo "HEAD_ADDRESS is empty: fill it in in $here/{env}" >&2
    exit 64
fi
port=${{HEAD_PORT:-{port}}}
"""
_RANK = """\
rank=${{1:-}}
case $rank in
'' | 0 | *[!0-9]*)
    echo "usage: {usage}" >&2
    exit 64
    ;;
esac
shift
"""
# Children, so that each can lead a session of its own, which `airbundle stop` ends.
_TURN = """\
children=
end() {
    # shellcheck disable=SC2086
    [ -z "$children" ] || kill -TERM $children 2>/dev/null || :
}
trap 'end; wait; exit 143' HUP INT TERM
"""
_START = """\
{airbundle} run {name} --root {root} --over {over} --node {rank} --head "$HEAD_ADDRESS" --head-port "$port" {more}&
children="$! $children"
"""
_MEET = """\
ray=$!
until RAY_USAGE_STATS_ENABLED=0 {ray} status --address "$HEAD_ADDRESS:$port" >/dev/null 2>&1; do
    kill -0 "$ray" 2>/dev/null || {{ wait "$ray"; exit; }}
    sleep 2
done
# vLLM itself waits until the other nodes' GPUs are there.
"""
_WAIT = """\
code=0
wait "$!" || code=$?
end
wait || :
exit "$code"
"""


def node_files(
    root: Path, services: Iterable[Service], way: Way, ray: Path, plan: Callable[[Service, Seat], LaunchPlan]
) -> dict[str, str]:  # fmt: skip
    """File name -> text, a folder for each service that spans several nodes.

    Args:
        root: the installation root, the same on every node.
        services: of the release in use.
        way: vLLM's own executor, or Ray.
        ray: Ray's program below the root.
        plan: what a node would run.

    Raises:
        SpecError: the release cannot serve so: it holds no Ray.
    """
    files: dict[str, str] = {}
    for service in services:
        if service.nodes > 1:
            folder = f"{service.name}/"
            files[folder + ENV_FILE] = _ENV.format(name=service.name, port=PORTS[way])
            files[folder + "head.sh"] = _head(root, service, way, ray, plan)
            files[folder + "worker.sh"] = _worker(root, service, way, plan)
    return files


def body(root: Path, service: Service, way: Way, ray: Path, more: str = "") -> str:
    """The head's part of a script, with $HEAD_ADDRESS and $port set."""
    start = {
        "airbundle": shlex.quote(f"{root}/bin/airbundle"), "name": shlex.quote(service.name),
        "root": shlex.quote(str(root)), "rank": "0", "more": more,
    }  # fmt: skip
    if way == "native":
        return _TURN + _START.format(over="native", **start) + _WAIT
    meet = _MEET.format(ray=shlex.quote(str(ray)))
    node = _START.format(over="ray-node", **start)
    return _TURN + node + meet + _START.format(over="ray", **start) + _WAIT


def _head(
    root: Path, service: Service, way: Way, ray: Path, plan: Callable[[Service, Seat], LaunchPlan]
) -> str:
    overs: tuple[Literal["native", "ray", "ray-node"], ...] = (
        ("native",) if way == "native" else ("ray-node", "ray")
    )
    plans = [plan(service, _seat(over, 0, way)) for over in overs]
    what = (
        f"The head of {service.name}, node 0 of {service.nodes}: it answers on port {service.port}."
    )
    top = _top(root, way, what, "sh head.sh", plans)
    return top + body(root, service, way, ray, '"$@" ')


def _worker(
    root: Path, service: Service, way: Way, plan: Callable[[Service, Seat], LaunchPlan]
) -> str:
    over: Literal["native", "ray-node"] = "native" if way == "native" else "ray-node"
    last = service.nodes - 1
    usage = (
        f"sh worker.sh NUMBER    # {'1' if last == 1 else f'1 to {last}'}, another one on each node"
    )
    what = f"A further node of {service.name}, which spans {service.nodes}."
    top = _top(root, way, what, usage, [plan(service, _seat(over, 1, way))])
    start = _START.format(
        airbundle=shlex.quote(f"{root}/bin/airbundle"), name=shlex.quote(service.name),
        root=shlex.quote(str(root)), over=over, rank='"$rank"', more='"$@" ',
    )  # fmt: skip
    return top + _RANK.format(usage=usage) + _TURN + start + _WAIT


def _seat(over: Literal["native", "ray", "ray-node"], rank: int, way: Way) -> Seat:
    return Seat(way=over, rank=rank, head="HEAD_ADDRESS", port=PORTS[way], own="VLLM_HOST_IP")


def _top(root: Path, way: Way, what: str, usage: str, plans: Iterable[LaunchPlan]) -> str:
    return _TOP.format(
        format=_FORMATS[way],
        what=what,
        usage=usage,
        commands="\n".join(f"#   {_shown(plan.argv)}" for plan in plans),
        root=_shown([str(root)]),
        env=ENV_FILE,
        port=PORTS[way],
    )


def _shown(argv: Iterable[str]) -> str:
    """A command in one line of a comment, whatever its words hold."""
    return shlex.join("".join(c if c.isprintable() else "?" for c in word) for word in argv)
