"""Ollama from its archive to its answers, through the command line.

Its program is in no registry that tests may ask: a stand-in speaks the documented API, and serves a model only when
the documented file layout is right to the last digest.
"""

import json
import socket
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bundler.cli.app import run
from bundler.errors import IncompatibleError
from tests.fakes.ollama_release import OllamaBundle
from tests.fakes.site import Site, gone

pytestmark = pytest.mark.slow


@pytest.fixture
def two_ports() -> list[int]:
    open_ = [socket.socket() for _ in range(2)]
    for one in open_:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in open_]
    for one in open_:
        one.close()
    return ports


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.loads(answer.read())


def environment(pid: int) -> dict[str, str]:
    words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


@pytest.mark.parametrize("form", ["tgz", "tar.zst"])
def test_two_services_from_the_archive_to_the_receipt(
    form: str,
    tmp_path: Path,
    two_ports: list[int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {"max_num_seqs": 8, "max_model_len": 512, "kv_cache_dtype": "q8_0"}
    small = OllamaBundle(
        tmp_path / "b",
        form=form,
        services=tuple(
            {"name": f"toy{gpu}", "model": "toy", "port": port, "gpus": [gpu], "settings": settings}
            for gpu, port in enumerate(two_ports)
        ),
    ).build()
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    site = Site(small, tmp_path / "root", capsys)
    try:
        site.do("import", str(small.out), "--key", str(small.public), "--quiet")
        site.do("install", "--quiet")
        states = site.json("start", "--quiet")
        assert [environment(s["pid"])["CUDA_VISIBLE_DEVICES"] for s in states] == ["0", "1"]
        assert [get(f"{s['url']}/api/version") for s in states] == [{"version": "0.33.0"}] * 2
        # Each has its own model, under the name that clients send.
        tags = [get(f"{s['url']}/api/tags")["models"] for s in states]
        assert tags == [[{"name": "toy0:latest"}], [{"name": "toy1:latest"}]]
        assert [s["running"]["kv_dtype"] for s in states] == [["q8_0"]] * 2
        assert [s["running"]["kv_tokens"] for s in states] == [8 * 512] * 2
        said = site.do("logs", "toy0")
        assert "Ollama cloud disabled: true" in said
        assert 'proxies="[]"' in said
        assert site.json("kernels")
        assert site.json("accept", "--quiet")["verdict"] == "PASS"
        # Nothing of it lies outside the root, and the model lies there once.
        home = Path(environment(states[0]["pid"])["HOME"])
        assert home.is_relative_to(site.root)
        [weights] = (site.root / "current").resolve().glob("models/toy/toy.gguf")
        blobs = [
            p
            for p in (site.root / "current").resolve().glob("cache/*/ollama/blobs/*")
            if p.is_symlink()
        ]
        assert [p.resolve() for p in blobs] == [weights] * 2
        site.do("verify", "--installed")
        site.do("stop")
        assert all(gone(s["pid"]) for s in states)
    finally:
        run(["stop", "--root", str(site.root)])


def test_a_service_beyond_loopback_needs_a_waiver_since_no_key_guards_it(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    open_ = OllamaBundle(
        tmp_path / "b",
        services=({"name": "toy", "model": "toy", "port": free_port, "host": "0.0.0.0"},),
    )
    open_.prepare()
    with pytest.raises(IncompatibleError, match="no-api-key"):
        open_.build_only()
    waived = replace(
        open_, waivers=({"code": "no-api-key", "reason": "a proxy of the site asks for one"},)
    ).build()
    site = Site(waived, tmp_path / "root", capsys)
    site.up()
    try:
        assert "API key" not in site.do("start", "--quiet")
        assert not (site.root / "secrets").exists()
        # The same links and files serve again.
        site.do("stop")
        site.do("start", "--quiet")
        out = tmp_path / "objects"
        site.do("export", "--format", "k8s", "--image", "base:1", "--out", str(out))
        assert "/api/version" in (out / "toy.yaml").read_text()
    finally:
        run(["stop", "--root", str(site.root)])


def test_a_model_that_changed_is_told_by_the_engine(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    small = OllamaBundle(tmp_path / "b", port=free_port).build()
    site = Site(small, tmp_path / "root", capsys)
    site.up()
    try:
        [weights] = (site.root / "current").resolve().glob("models/toy/toy.gguf")
        data = bytearray(weights.read_bytes())
        data[-1] ^= 1
        weights.unlink()
        weights.write_bytes(data)
        assert "digest mismatch" in site.do("start", "--quiet", code=13)
        assert site.json("status")["services"] == []
    finally:
        run(["stop", "--root", str(site.root)])
