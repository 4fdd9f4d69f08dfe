"""Engines on a simulated clock: how busy the machine is on which that runs is no part of it."""

import pytest

from bundler.accept import watching


@pytest.fixture(autouse=True)
def unwatched_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_TICK_S", 1e6)
