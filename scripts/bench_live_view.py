"""What the live view costs the client: how late its event loop is with the view and without.

    python -m scripts.bench_live_view [--seconds 20] [--users 100]

A loop like the load client's wakes up every 10 ms and tells the view of so many requests a second, while the view
draws on a pseudo-terminal. Compare the p99 with the 5 ms of the gate `client lag` (docs/acceptance.md).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import pty
import sys
import threading
import time
from statistics import quantiles

from bundler.cli.console import SilentProgress, progress
from bundler.domain.facts import RequestSample
from bundler.domain.telemetry import EngineObservation
from bundler.instruments import LoadView

_TICK_S = 0.01
_SAMPLE = RequestSample(ok=True, started_s=0, ttft_ms=123, e2e_ms=900, output_tokens=128)


async def _load(shown: LoadView | None, seconds: float, rate: int) -> list[float]:
    """Wake up every tick; how late each was, in ms."""
    late = []
    end = time.monotonic() + seconds
    owed = 0.0
    while (now := time.monotonic()) < end:
        await asyncio.sleep(_TICK_S)
        late.append(max(0.0, time.monotonic() - now - _TICK_S) * 1000)
        owed += rate * _TICK_S
        while owed >= 1 and shown is not None:
            shown.answered(_SAMPLE)
            owed -= 1
    return late


def measure(seconds: float, rate: int, *, live: bool) -> tuple[float, float]:
    """p50 and p99 of the lag, ms."""
    shown = progress() if live else SilentProgress()
    view = shown if isinstance(shown, LoadView) else None
    with shown.task("chat x100", 1000, "requests"):
        if view is not None:
            view.measuring()
            view.seen(EngineObservation(t_s=1, service="chat", kv_usage=0.5, running=9, waiting=1))
        late = asyncio.run(_load(view, seconds, rate))
    cuts = quantiles(late, n=100)
    return cuts[49], cuts[98]


def main() -> None:
    """Measure both, twice, in turns."""
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument("--users", type=int, default=100, help="requests a second")
    chosen = options.parse_args()
    ours, theirs = pty.openpty()
    os.environ["TTY_COMPATIBLE"] = "1"
    sys.stderr = os.fdopen(theirs, "w")
    drawn = 0

    def drain() -> None:
        nonlocal drawn
        with contextlib.suppress(OSError):
            while True:
                drawn += len(os.read(ours, 65536))

    threading.Thread(target=drain, daemon=True).start()
    for live in (False, True, False, True):
        p50, p99 = measure(chosen.seconds, chosen.users, live=live)
        name = "live view" if live else "no view"
        sys.stdout.write(f"{name:10} lag p50 {p50:.2f} ms, p99 {p99:.2f} ms\n")
    sys.stdout.write(f"drawn: {drawn} bytes\n")


if __name__ == "__main__":
    main()
