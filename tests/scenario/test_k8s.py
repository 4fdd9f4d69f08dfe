"""Exported Kubernetes objects against the API's own schemas."""

import os
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

OPEN = "0.0.0.0"


def exported(here: Any, out: Path) -> list[dict[str, Any]]:
    here.do("export", "--format", "k8s", "--image", "registry.internal/base:1", "--out", str(out))
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
