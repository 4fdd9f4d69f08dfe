"""A real llama-server takes every flag that settings become."""

import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from bundler.adapters.engine_llamacpp.adapter import LlamaCppEngine
from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.domain.spec import Service, Settings
from bundler.format.llamalog import read_log
from bundler.ports import Install

pytestmark = pytest.mark.engine


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False


@pytest.mark.parametrize("kv", ["f16", "q8_0", "q4_0"])
def test_settings_are_taken(server: Path, tmp_path: Path, free_port: int, kv: str) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    settings = Settings(
        kv_cache_dtype=kv, max_model_len=256, max_num_seqs=3,
        gpu_layers=0, cpu_moe_layers=2, fit=False, args=("--verbosity", "4"),
    )  # fmt: skip
    service = Service(name="tiny", model="tiny", port=free_port, settings=settings)
    plan = LlamaCppEngine().plan(
        Install(
            python=server.with_name("python"), programs=(server,), model=tmp_path,
            model_files=("tiny.gguf",), cache_dir=tmp_path, engine_version="1", distribution="x",
        ),
        service,
    )  # fmt: skip
    log = tmp_path / "log"
    with log.open("wb") as out:
        engine = subprocess.Popen(plan.argv, stdout=out, stderr=subprocess.STDOUT)
        try:
            for _ in range(600):
                if healthy(service.url) or engine.poll() is not None:
                    break
                time.sleep(0.1)
            assert engine.poll() is None, log.read_text(errors="replace")[-2000:]
            assert healthy(service.url)
        finally:
            engine.kill()
            engine.wait()
    runs = read_log(log.read_text(errors="replace").splitlines())
    assert runs.kv_dtype == (kv,)
    assert (runs.kv_tokens, runs.max_concurrency) == (3 * 256, 3)
    assert runs.attention == ("flash",) or kv == "f16"
