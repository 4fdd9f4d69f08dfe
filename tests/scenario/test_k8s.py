"""Exported Kubernetes objects against the API's own schemas."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

pytestmark = pytest.mark.slow

OPEN = "0.0.0.0"
SCHEMA = json.loads(
    (Path(__file__).parents[1] / "assets/leaderworkerset-v1.schema.json").read_text()
)


def exported(here: Any, out: Path, *words: str) -> list[dict[str, Any]]:
    image = "registry.internal/base:1"
    here.do("export", "--format", "k8s", "--image", image, "--out", str(out), *words)
    return [item for path in sorted(out.iterdir()) for item in yaml.safe_load_all(path.read_text())]


@pytest.mark.parametrize("version", ["1.28", "1.31", "1.37"])
def test_objects_are_what_the_api_takes(
    site: Any, free_port: int, tmp_path: Path, version: str
) -> None:
    service = {"name": "Toy_1.0", "model": "toy", "port": free_port, "host": OPEN, "gpus": [2, 3]}
    here = site(services=(service,))
    here.up()
    deployment, front = exported(here, tmp_path / "k8s")
    for item in (deployment, front):
        kubernetes_validate.validate(item, version, strict=True)
    assert deployment["metadata"]["name"] == "toy-1-0"
    pod = deployment["spec"]["template"]["spec"]
    [engine] = pod["containers"]
    assert engine["command"][1:3] == ["run", "Toy_1.0"]
    assert engine["resources"]["limits"] == {"nvidia.com/gpu": 2}
    assert pod["securityContext"]["runAsUser"] == os.getuid()
    selector = front["spec"]["selector"]
    assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()


def test_a_service_on_loopback_is_refused(site: Any, tmp_path: Path) -> None:
    here = site()
    here.up()
    words = ("export", "--format", "k8s", "--out", str(tmp_path / "k8s"))
    assert "host: 0.0.0.0" in here.do(*words, "--image", "x", code=17)
    assert not (tmp_path / "k8s").exists()
    assert "--image" in here.do(*words, code=2)


@pytest.mark.parametrize("way", ["native", "ray"])
@pytest.mark.parametrize("version", ["1.28", "1.31", "1.37"])
def test_a_service_over_several_nodes_is_a_set_of_leader_and_workers(
    site: Any, free_port: int, tmp_path: Path, version: str, way: str
) -> None:
    service = {"name": "Toy_1.0", "model": "toy", "port": free_port, "host": OPEN, "nodes": 2}
    here = site(
        engine="vllm", ray=True, services=(service,), waived=("format-mismatch",),
        settings={"tensor_parallel": 2, "pipeline_parallel": 2},
    )  # fmt: skip
    here.up()
    group, front = exported(here, tmp_path / "k8s", "--over", way)
    jsonschema.validate(group, SCHEMA)
    kubernetes_validate.validate(front, version, strict=True)
    templates = group["spec"]["leaderWorkerTemplate"]
    assert templates["size"] == 2
    for role in ("leader", "worker"):
        template = templates[f"{role}Template"]
        whole = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}}
        kubernetes_validate.validate({**whole, "template": template}, version, strict=True)
        [engine] = template["spec"]["containers"]
        assert engine["resources"]["limits"] == {"nvidia.com/gpu": 2}
        assert ("readinessProbe" in engine) == (role == "leader")
    [leader] = templates["leaderTemplate"]["spec"]["containers"]
    [worker] = templates["workerTemplate"]["spec"]["containers"]
    assert worker["command"][worker["command"].index("--node") + 1] == "$(LWS_WORKER_INDEX)"
    assert "$(LWS_LEADER_ADDRESS)" in worker["command"]
    if way == "ray":
        assert "--over ray-node" in leader["command"][2]
        assert "$(" not in leader["command"][2]  # Kubernetes would put variables in.
        subprocess.run(["sh", "-n"], input=leader["command"][2], text=True, check=True)
    else:
        assert leader["command"][-1] == "29501"
    # Traffic goes to the leader alone; the controller itself has a Service of the set's name.
    labels = templates["leaderTemplate"]["metadata"]["labels"]
    labels["leaderworkerset.sigs.k8s.io/name"] = group["metadata"][
        "name"
    ]  # As the controller does.
    assert front["spec"]["selector"].items() <= labels.items()
    assert front["spec"]["selector"]["airbundle/role"] == "leader"
    assert templates["workerTemplate"]["metadata"]["labels"]["airbundle/role"] == "worker"
    assert front["metadata"]["name"] != group["metadata"]["name"]
