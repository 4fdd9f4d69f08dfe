"""A release's services as Kubernetes objects: a Deployment and a Service for each.

The pods run `airbundle run` from the root on their node, so any glibc image does, and nothing is pulled but that. GPUs are
handed out by the device plugin (https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/), hence not pinned by index. Fields:
https://kubernetes.io/docs/reference/kubernetes-api/ .
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import yaml

from bundler.domain.spec import Service, Settings
from bundler.errors import StateError

_HEAD = """\
# Made by `airbundle export --format k8s`; see docs/launch.md.
# Nodes that have the release installed in {root} carry a label:
#   kubectl label node NODE airbundle=installed
"""
_LABEL = "app.kubernetes.io/name"
# Where it is another than /health.
_HEALTH = {"ollama": "/api/version"}
# A large model is read from disk and compiled: up to half an hour, looked at every ten seconds.
_START = {"periodSeconds": 10, "failureThreshold": 180}


def kubernetes_files(
    root: Path, services: tuple[Service, ...], *, image: str, namespace: str, engine: str = ""
) -> dict[str, str]:
    """File name -> text: one file of objects for each service.

    Args:
        root: the installation root, the same on every node.
        services: of the release in use.
        image: a container image with glibc that the cluster can have, such as one of its own registry.
        namespace: where the objects go.
        engine: its name; Ollama is healthy at another address than the others.

    Raises:
        StateError: a service listens on loopback, where no probe and no client reaches it.
    """
    files: dict[str, str] = {}
    for service in services:
        if not service.guarded:
            raise StateError(
                f"{service.name}: listens on {service.host}, which nothing outside its pod reaches",
                hint="Build the bundle with services[].host: 0.0.0.0 in its spec.",
            )
        name = _object_name(service.name)
        labels = {_LABEL: name, "app.kubernetes.io/managed-by": "airbundle"}
        objects = [
            _object("apps/v1", "Deployment", name, namespace, labels, {
                "replicas": 1,
                # Two engines do not share a GPU: the old one ends first.
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": {_LABEL: name}},
                "template": {"metadata": {"labels": labels}, "spec": _pod(root, service, image, engine)},
            }),
            _object("v1", "Service", name, namespace, labels, {
                "selector": {_LABEL: name},
                "ports": [{"name": "http", "port": service.port, "targetPort": "http"}],
            }),
        ]  # fmt: skip
        text = yaml.safe_dump_all(objects, sort_keys=False, allow_unicode=True)
        files[f"{name}.yaml"] = _HEAD.format(root=root) + text
    return files


def _object(
    version: str, kind: str, name: str, namespace: str, labels: dict[str, str], spec: dict[str, Any]
) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": spec,
    }


def _pod(root: Path, service: Service, image: str, engine: str) -> dict[str, Any]:
    settings = service.settings or Settings()
    gpus = max(settings.tensor_parallel, len(service.gpus), 1)
    health = {"httpGet": {"path": _HEALTH.get(engine, "/health"), "port": "http"}}
    owner = root.stat() if root.exists() else os.stat_result((0,) * 10)
    return {
        "nodeSelector": {"airbundle": "installed"},
        "terminationGracePeriodSeconds": 40,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # What the root's files belong to, so that state, caches and the API key stay readable there.
        "securityContext": {"runAsUser": owner.st_uid, "runAsGroup": owner.st_gid},
        "containers": [
            {
                "name": "engine",
                "image": image,
                "command": [f"{root}/bin/airbundle", "run", service.name, "--root", str(root),
                            "--any-gpu"],
                "ports": [{"name": "http", "containerPort": service.port}],
                "resources": {"limits": {"nvidia.com/gpu": gpus}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "startupProbe": {**health, **_START},
                "readinessProbe": {**health, "periodSeconds": 10},
                "livenessProbe": {**health, "periodSeconds": 30, "failureThreshold": 5},
                "volumeMounts": [
                    {"name": "root", "mountPath": str(root)},
                    {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - the container's own
                ],
            }
        ],
        "volumes": [
            {"name": "root", "hostPath": {"path": str(root), "type": "Directory"}},
            # Processes of one model speak through it; a container's own is 64 MiB.
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ],
    }  # fmt: skip


def _object_name(name: str) -> str:
    """A DNS label (RFC 1123) near to a service's name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:63].rstrip("-") or "service"
