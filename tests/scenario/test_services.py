"""Services that listen wider than loopback, and several at once, through the command line."""

import os
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from bundler.deploy.root import Root
from tests.fakes.site import gone

pytestmark = pytest.mark.slow


def ask(url: str, key: str = "") -> int:
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", b'{"messages": [], "max_tokens": 1}'
    )
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def environment(pid: int) -> dict[str, str]:
    words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)


def test_a_service_beyond_loopback_asks_for_a_key_that_is_in_no_record(
    site: Any, free_port: int
) -> None:
    service = {"name": "toy", "model": "toy", "port": free_port, "host": "0.0.0.0"}
    here = site(services=(service,))
    here.up()
    said = here.do("start", "--quiet")
    path = Root(here.root).api_key(free_port)
    assert str(path) in said
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = path.read_text().strip()
    url = f"http://127.0.0.1:{free_port}"
    assert [ask(url), ask(url, "wrong"), ask(url, key)] == [401, 401, 200]
    here.do("accept", "--quiet")
    here.do("report")
    [service_state] = here.json("status")["services"]
    assert f"--host\0{service['host']}" in Path(f"/proc/{service_state['pid']}/cmdline").read_text()
    holders = [
        found
        for found in here.root.rglob("*")
        if found.is_file() and found != path and key.encode() in found.read_bytes()
    ]
    assert holders == []
    here.do("stop")
    # Clients keep their key over a restart.
    here.do("start", "--quiet")
    assert path.read_text().strip() == key


def test_loopback_needs_no_key(site: Any) -> None:
    here = site()
    here.up()
    assert "API key" not in here.do("start", "--quiet")
    assert not (here.root / "secrets").exists()


@pytest.fixture
def two_ports() -> list[int]:
    open_ = [socket.socket() for _ in range(2)]
    for one in open_:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in open_]
    for one in open_:
        one.close()
    return ports


def two(ports: list[int]) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"name": f"toy{gpu}", "model": "toy", "port": port, "gpus": [gpu]}
        for gpu, port in enumerate(ports)
    )


def test_two_services_have_their_own_gpu_and_port(site: Any, two_ports: list[int]) -> None:
    here = site(services=two(two_ports))
    here.up()
    states = here.json("start", "--quiet")
    assert [environment(s["pid"])["CUDA_VISIBLE_DEVICES"] for s in states] == ["0", "1"]
    assert [ask(s["url"]) for s in states] == [200, 200]
    assert here.json("accept", "--quiet")["verdict"] == "PASS"
    here.do("stop")
    assert all(gone(s["pid"]) for s in states)


@pytest.mark.slow
def test_kill_9_of_a_start_of_two_leaves_nothing_that_cannot_be_stopped(
    site: Any, two_ports: list[int]
) -> None:
    here = site("--slow-start", services=two(two_ports))
    here.up()
    argv = [sys.executable, "-m", "bundler", "start", "--root", str(here.root)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as begun:
        assert begun.stderr
        for line in begun.stderr:
            if "started, loading" in line:
                break
        begun.send_signal(signal.SIGKILL)
    states = here.json("status")["services"]
    assert len(states) == 2
    assert all(not gone(s["pid"]) for s in states)
    # What was started goes on; a second start waits for it rather than start another.
    again = here.json("start", "--quiet")
    assert sorted(s["pid"] for s in again) == sorted(s["pid"] for s in states)
    here.do("stop")
    assert all(gone(s["pid"]) for s in states)
    assert os.listdir(here.root / "run") == []


def test_one_of_two_that_dies_ends_the_other_too(site: Any, two_ports: list[int]) -> None:
    first, second = two(two_ports)
    dies = {**second, "settings": {"args": ["--die-on-first-request"]}}
    here = site(services=(first, dies))
    here.up()
    assert "toy1: healthy on /health and died" in here.do("start", "--quiet", code=13)
    assert here.json("status")["services"] == []
