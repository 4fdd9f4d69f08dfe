"""What Ollama starts for a model, llama-server, on the layout that airbundle makes: a real one.

Ollama itself is in no registry. Its runner is, and is started here with the arguments that Ollama gives it
(https://github.com/ollama/ollama/blob/main/llm/llama_server.go).
"""

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from bundler.adapters.engine_ollama.adapter import OllamaEngine
from bundler.adapters.engine_ollama.layout import model_layout
from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.domain.manifest import Block, Entry
from bundler.domain.spec import Service, Settings
from bundler.format.digests import sha256_file
from bundler.ports import Install

DEMO = Path(__file__).parents[2] / "manifests" / "demo.yaml"
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The llama-server of the demo's spec, in an environment of its own."""
    text = DEMO.read_text(encoding="utf-8")
    [package] = re.findall(r"package: (\S+)", text)
    [version] = re.findall(r"^  version: (\S+)", text, re.MULTILINE)
    place = tmp_path_factory.mktemp("llama") / "venv"
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "-q", "-p", sys.executable, str(place)], check=True)
    install = [uv, "pip", "install", "-q", "-p", str(place / "bin" / "python")]
    subprocess.run([*install, f"{package}=={version}"], check=True)
    return next((place / "bin").glob("llama-server*"))


def laid_out(folder: Path, service: Service) -> Path:
    """The weights as Ollama finds them: by the manifest's model layer."""
    model = folder / "models" / "m"
    model.mkdir(parents=True)
    write_tiny_gguf(model / "tiny.gguf")

    def shipped(name: str) -> Entry:
        digest = sha256_file(model / name)
        block = Block(sha256=digest, xxh3="0" * 32)
        size = (model / name).stat().st_size
        return Entry(path=name, kind="model", size=size, sha256=digest, blocks=(block,), parts=())

    install = Install(
        python=folder / "p", programs=(), model=model, model_files=("tiny.gguf",),
        cache_dir=folder / "cache", engine_version="0.33.0", distribution="ollama", shipped=shipped,
    )  # fmt: skip
    manifest = b""
    for path, content in model_layout(install, service).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            path.symlink_to(content)
        else:
            path.write_bytes(content)
            manifest = content if path.name == "latest" else manifest
    [layer] = [one for one in json.loads(manifest)["layers"] if one["mediaType"].endswith(".model")]
    return folder / "cache" / "ollama" / "blobs" / layer["digest"].replace(":", "-")


def test_its_runner_serves_a_blob_and_its_log_tells_what_runs(
    server: Path, tmp_path: Path, free_port: int
) -> None:
    settings = Settings(max_model_len=512, max_num_seqs=2, kv_cache_dtype="q8_0")
    blob = laid_out(tmp_path, Service(name="tiny", model="m", settings=settings))
    log = tmp_path / "log"
    argv = [
        str(server), "--model", str(blob), "--port", str(free_port), "--host", "127.0.0.1", "--no-webui",
        "--offline", "-c", str(512 * 2), "-np", "2", "--log-verbosity", "4", "--no-log-prefix",
        "--no-log-timestamps", "--cache-type-k", "q8_0", "--cache-type-v", "q8_0", "--flash-attn", "on",
    ]  # fmt: skip
    with log.open("wb") as out, subprocess.Popen(argv, stdout=out, stderr=out) as process:
        try:
            _until_healthy(f"http://127.0.0.1:{free_port}/health", process, log)
        finally:
            process.kill()
    found = OllamaEngine().running(log.read_text(errors="replace").splitlines(), "")
    assert (found.kv_dtype, found.attention) == (("q8_0",), ("flash",))
    assert (found.kv_tokens, found.max_concurrency, found.concurrency_tokens) == (1024, 2, 512)


def _until_healthy(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.2)
    pytest.fail(log.read_text(errors="replace")[-2000:])
