"""A service that spans several nodes as Kubernetes objects: a LeaderWorkerSet, and a Service to its leader.

The API and the variables that its controller sets in each container (LWS_LEADER_ADDRESS, LWS_WORKER_INDEX):
https://lws.sigs.k8s.io/docs/reference/leaderworkerset.v1/ and https://lws.sigs.k8s.io/docs/reference/labels-annotations-and-environment-variables/ .
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bundler.deploy.multinode import PORTS, body
from bundler.domain.seat import Way
from bundler.domain.spec import Service

API = "leaderworkerset.x-k8s.io/v1"
NAME_LABEL = "leaderworkerset.sigs.k8s.io/name"
_ROLE = "airbundle/role"


def leader_worker_set(
    root: Path, service: Service, way: Way, ray: Path, name: str, labels: dict[str, str], pod: dict[str, Any]
) -> dict[str, Any]:  # fmt: skip
    """The set's `spec`: one group, made anew as a whole when one of its pods ends.

    Args:
        root: the installation root, the same on every node.
        service: spans several nodes.
        way: how they meet.
        ray: Ray's program below the root.
        name: of the set.
        labels: of its pods.
        pod: what a pod of a service on one node is.
    """
    run = [f"{root}/bin/airbundle", "run", service.name, "--root", str(root), "--any-gpu"]
    meet = ["--head", "$(LWS_LEADER_ADDRESS)", "--head-port", str(PORTS[way])]
    over = "native" if way == "native" else "ray-node"
    lead = [*run, "--over", over, "--node", "0", *meet]
    if way == "ray":
        lead = ["/bin/sh", "-euc", _script(root, service, ray)]
    follow = [*run, "--over", over, "--node", "$(LWS_WORKER_INDEX)", *meet]
    template = {
        "leader": _template(name, labels, "leader", _with(pod, lead, probed=True)),
        "worker": _template(name, labels, "worker", _with(pod, follow, probed=False)),
    }
    return {
        "replicas": 1,
        "leaderWorkerTemplate": {
            "size": service.nodes,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": template["leader"],
            "workerTemplate": template["worker"],
        },
    }


def leader_selector(name: str) -> dict[str, str]:
    """Labels of the pod that answers."""
    return {NAME_LABEL: name, _ROLE: "leader"}


def _script(root: Path, service: Service, ray: Path) -> str:
    head = f"HEAD_ADDRESS=$LWS_LEADER_ADDRESS\nport={PORTS['ray']}\n"
    return head + body(root, service, "ray", ray, "--any-gpu ")


def _template(name: str, labels: dict[str, str], role: str, pod: dict[str, Any]) -> dict[str, Any]:
    """Two pods of a set never share a node, whose root they would share as well."""
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {NAME_LABEL: name}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        }
    }
    return {"metadata": {"labels": {**labels, _ROLE: role}}, "spec": {**pod, "affinity": apart}}


def _with(pod: dict[str, Any], command: list[str], *, probed: bool) -> dict[str, Any]:
    [container] = pod["containers"]
    kept = {
        k: v for k, v in container.items() if probed or not (k.endswith("Probe") or k == "ports")
    }
    own = {"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    return {**pod, "containers": [{**kept, "command": command, "env": [own]}]}
