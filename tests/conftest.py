"""What every test may use. Quick tests have no network and no engine; `--all` runs the rest."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest
from hypothesis import settings

from tests.fakes.small_bundle import SmallBundle

OUTSIDE = ("index", "engine")
SLOW = (*OUTSIDE, "slow")

# A gate says something of the change, not of the day's luck: the same examples each time.
# New ones are what `python -m tests.fuzz` is for.
settings.register_profile("gate", derandomize=True)
settings.load_profile("gate")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all",
        action="store_true",
        help="also run the slow tests, those that ask the package index, and those with real engines",
    )


def pytest_configure() -> None:
    """A gate under nohup or in a shell's background has signals ignored, and programs inherit that."""
    # Messages are compared in English, whatever the host's locale is.
    os.environ["AIRBUNDLE_LANG"] = "en"
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--all"):
        return
    slow = [item for item in items if any(item.get_closest_marker(name) for name in SLOW)]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's caches and roots."""
    monkeypatch.setenv("AIRBUNDLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AIRBUNDLE_ROOT", raising=False)
    monkeypatch.delenv("AIRBUNDLE_POLICY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture(autouse=True)
def _loopback_only(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick tests cannot reach the world."""
    if any(request.node.get_closest_marker(name) for name in OUTSIDE):
        return
    real = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else "127.0.0.1"
        if host not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a quick test reached for {host}")
        real(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(scope="session")
def session_bundle(tmp_path_factory: pytest.TempPathFactory) -> SmallBundle:
    """A signed bundle of several small volumes. Read only: copy it to change it."""
    return SmallBundle(tmp_path_factory.mktemp("small")).build()


@pytest.fixture
def small(session_bundle: SmallBundle, tmp_path: Path) -> SmallBundle:
    """A copy of the session's bundle that a test may damage."""
    return session_bundle.copy(tmp_path / "copy")


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return int(port)


@pytest.fixture
def clean_env() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("UV_", "PIP_", "HF_"))}
