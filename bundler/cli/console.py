"""What commands show: results to stdout, progress and everything else to stderr."""

from __future__ import annotations

import codecs
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from bundler.cli.loadfigures import LoadFigures
from bundler.cli.streams import ERR, OUT
from bundler.domain.sizes import human
from bundler.ports import Task

if TYPE_CHECKING:
    from bundler.cli.drawing import RichProgress

PLAIN_EVERY_S = 5.0
# Work that does not move still says that it is there, well within a minute.
HEARTBEAT_S = 15.0


def show_json(value: object) -> None:
    """A result for machines: UTF-8, or ASCII where the stream is of another encoding."""
    if sys.stdout is None:
        return
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    text = _json(value, ascii_only=codecs.lookup(encoding).name != "utf-8")
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair: a file name that is not UTF-8
        text = _json(value, ascii_only=True)
    sys.stdout.write(text + "\n")


def _json(value: object, *, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only, indent=2, sort_keys=True)


def say(line: str, style: str = "") -> None:
    """A result for people."""
    OUT.line(line, style)


def quote(line: str, style: str = "") -> None:
    """Another program's words, such as a log: never translated."""
    OUT.verbatim(line, style)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A small table; columns named `#...` are numbers and lie to the right."""
    from bundler.cli.drawing import draw_table

    draw_table(title, columns, rows)


class SilentProgress:
    """Shows nothing."""

    @contextmanager
    def task(self, label: str, total: int, unit: str = "bytes") -> Iterator[Task]:
        """Count nothing."""
        yield _Counter()

    def note(self, line: str) -> None:
        """Say nothing."""


class _Counter:
    def advance(self, amount: int) -> None:
        """Forget it."""


class PlainProgress(LoadFigures):
    """Lines with rate and time left, a few seconds apart: for logs and pipes."""

    @contextmanager
    def task(self, label: str, total: int, unit: str = "bytes") -> Iterator[Task]:
        """Print now and then, also while nothing moves, and at the end."""
        self.begin(label)
        task = _PlainTask(label, total, unit, self.words)
        over = threading.Event()
        beat = threading.Thread(target=task.beat, args=(over,), name="heartbeat", daemon=True)
        beat.start()
        try:
            yield task
        finally:
            over.set()
            beat.join()
        task.end()

    def note(self, line: str) -> None:
        """One line."""
        ERR.line(line)


class _PlainTask:
    def __init__(
        self, label: str, total: int, unit: str, more: Callable[[], str] = lambda: ""
    ) -> None:
        self._bytes = unit == "bytes"
        self._label, self._total, self._unit = ERR.word(label), total, ERR.unit(unit)
        self._more = more
        self._done = 0
        self._began = self._shown = time.monotonic()
        self._lock = threading.Lock()

    def advance(self, amount: int) -> None:
        """Count; print when the last line is old enough."""
        with self._lock:
            self._done += amount
            self._show(PLAIN_EVERY_S)

    def beat(self, over: threading.Event) -> None:
        """Print whenever nothing was printed for long, until it is over."""
        # A stderr that is gone is for the work itself to meet; a thread could only leave a traceback.
        with suppress(OSError, ValueError):
            while not over.wait(max(0.01, self._shown + HEARTBEAT_S - time.monotonic())):
                with self._lock:
                    self._show(HEARTBEAT_S)

    def end(self) -> None:
        """The closing line."""
        took = max(time.monotonic() - self._began, 1e-9)
        done = self._amount(self._done) if self._bytes else f"{self._done} {self._unit}"
        ERR.line(f"{self._label}: {done} in {took:.1f} s, {self._rate(self._done / took)}")

    def _show(self, quiet_s: float) -> None:
        """The line of now, when the last one is `quiet_s` old."""
        now = time.monotonic()
        if now - self._shown < quiet_s:
            return
        self._shown = now
        took = now - self._began
        rate = self._done / max(took, 1e-9)
        total = self._amount(self._total) if self._bytes else f"{self._total} {self._unit}"
        label, done = self._label, self._amount(self._done)
        if rate > 0:
            left = max(0, self._total - self._done) / rate
            told = f"{label}: {done} of {total}, {self._rate(rate)}, {left:.0f} s left"
        else:
            told = f"{label}: {done} of {total} after {took:.0f} s"
        more = "" if self._bytes else self._more()
        ERR.line(f"{told}; {more}" if more else told)

    def _amount(self, value: int) -> str:
        return human(value) if self._bytes else str(value)

    def _rate(self, value: float) -> str:
        if self._bytes:
            return f"{human(value)}/s"
        return f"{value:.1f} {self._unit}/s" if value >= 1 else f"{value:.2g} {self._unit}/s"


def progress(*, quiet: bool = False) -> SilentProgress | PlainProgress | RichProgress:
    """Bars on a terminal, lines elsewhere, nothing when asked to be quiet."""
    if quiet:
        return SilentProgress()
    if not ERR.is_terminal:
        return PlainProgress()
    from bundler.cli.drawing import RichProgress

    return RichProgress()
