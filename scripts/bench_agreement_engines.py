"""The real engines that scripts/bench_agreement.py measures, with the demo's tiny random models."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent


def name_vllm(work: Path) -> None:
    """vLLM asks for a distribution named vllm, which the wheel for CPUs is not."""
    named = work / "vllm-0.32.0.dist-info"
    named.mkdir(exist_ok=True)
    (named / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n")


def environment(work: Path) -> dict[str, str]:
    """What engines and tools run in: no network, no home, no proxy."""
    return os.environ | {
        "PYTHONPATH": f"{work}:{ROOT}", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "HOME": str(work),
        "VLLM_CPU_KVCACHE_SPACE": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
    }  # fmt: skip


def demo_server(work: Path) -> Path:
    """The llama-server of the demo's spec, in an environment of its own."""
    text = (ROOT / "manifests" / "demo.yaml").read_text(encoding="utf-8")
    named = re.search(r"package: (\S+)", text), re.search(r"version: (\S+)", text)
    place = work / "llama"
    wanted = "==".join(one[1] for one in named if one)
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "-q", "-p", sys.executable, str(place)], check=True)
    install = ["pip", "install", "-q", "-p", str(place / "bin" / "python"), wanted]
    subprocess.run([*uv, *install], check=True)
    return next((place / "bin").glob("llama-server*"))


def llama(server: Path, work: Path) -> list[str]:
    """llama-server on one thread: the clients need the rest."""
    model = ["-m", str(work / "tiny.gguf"), "--alias", "m"]
    return [str(server), *model, "-c", "4096", "-np", "8", "-t", "1", "--host", "127.0.0.1"]


def vllm_server(python: Path, work: Path) -> list[str]:
    """vLLM as a module."""
    return [
        str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(work / "tiny"),
        "--served-model-name", "m", "--max-model-len", "512", "--max-num-seqs", "16",
        "--language-model-only", "--enforce-eager", "--host", "127.0.0.1",
    ]  # fmt: skip


@contextmanager
def served(argv: list[str], work: Path) -> Iterator[str]:
    """Start an engine, wait until it is healthy, give its address, end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (work / "server.log").open("w") as log:
        process = subprocess.Popen(
            [*argv, "--port", str(port)], env=environment(work), cwd=work, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise SystemExit((work / "server.log").read_text()[-2000:])
            try:
                urllib.request.urlopen(f"{url}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.5)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
