r"""All that is drawn: progress, tables, verdicts. Results go to stdout, everything else to stderr.

Text may hold the names of strangers' files: whatever would steer the terminal, or cannot be written in its
encoding, is shown as an escape such as `\x1b`. A stream that is closed takes nothing and breaks nothing.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from bundler.domain.sizes import human
from bundler.ports import Task

# Into a pipe or a file, lines are as long as they are: a digest must not be folded.
_WIDE = 240
PLAIN_EVERY_S = 5.0
# Work that does not move still says that it is there, well within a minute.
HEARTBEAT_S = 15.0
# Control characters but tab and newline, and marks that reorder a line.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


class _Printer(Console):
    """A console that never lets a text steer the terminal, nor fails for its encoding."""

    def shown(self, text: str) -> str:
        """The text with all that is unsafe or unwritable as escapes."""
        safe = _STEERING.sub(_escaped, text)
        return safe.encode(self.encoding, "backslashreplace").decode(self.encoding)

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich does, with the texts made safe."""
        super().print(*map(self._safe, objects), **options)

    def on_broken_pipe(self) -> None:
        """As rich does, in the main thread; it also closes stdout, which is not for a helper to do."""
        if threading.current_thread() is not threading.main_thread():
            raise  # rich calls this while it handles the error
        super().on_broken_pipe()

    def _safe(self, drawn: object) -> object:
        if not isinstance(drawn, Text):
            return drawn
        shown = self.shown(drawn.plain)
        # One that needs no change keeps its spans.
        return drawn if shown == drawn.plain else Text(shown, style=drawn.style)


def _into_a_terminal() -> bool:
    # Python has no stdout at all when it starts with the descriptor closed.
    return sys.stdout is not None and sys.stdout.isatty()


OUT = _Printer(highlight=False, soft_wrap=True, width=None if _into_a_terminal() else _WIDE)
ERR = _Printer(stderr=True, highlight=False, soft_wrap=True)


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
    OUT.print(Text(OUT.shown(line), style=style))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A small table; columns named `#...` are numbers and lie to the right."""
    head = Text(OUT.shown(title), style="bold") if title else None
    drawn = Table(title=head, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        drawn.add_column(
            Text(OUT.shown(column.lstrip("#"))),
            justify="right" if column.startswith("#") else "left",
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*(Text(OUT.shown(cell)) for cell in row))
    OUT.print(drawn)


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


class PlainProgress:
    """Lines with rate and time left, a few seconds apart: for logs and pipes."""

    @contextmanager
    def task(self, label: str, total: int, unit: str = "bytes") -> Iterator[Task]:
        """Print now and then, also while nothing moves, and at the end."""
        task = _PlainTask(label, total, unit)
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
        ERR.print(Text(ERR.shown(line)))


class _PlainTask:
    def __init__(self, label: str, total: int, unit: str) -> None:
        self._label, self._total, self._unit = label, total, unit
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
        ERR.print(Text(f"{self._label}: {done} in {took:.1f} s, {self._rate(self._done / took)}"))

    @property
    def _bytes(self) -> bool:
        return self._unit == "bytes"

    def _show(self, quiet_s: float) -> None:
        """The line of now, when the last one is `quiet_s` old."""
        now = time.monotonic()
        if now - self._shown < quiet_s:
            return
        self._shown = now
        took = now - self._began
        rate = self._done / max(took, 1e-9)
        total = self._amount(self._total) if self._bytes else f"{self._total} {self._unit}"
        pace = f" after {took:.0f} s"
        if rate > 0:
            left = max(0, self._total - self._done) / rate
            pace = f", {self._rate(rate)}, {left:.0f} s left"
        ERR.print(Text(f"{self._label}: {self._amount(self._done)} of {total}{pace}"))

    def _amount(self, value: int) -> str:
        return human(value) if self._bytes else str(value)

    def _rate(self, value: float) -> str:
        if self._bytes:
            return f"{human(value)}/s"
        return f"{value:.1f} {self._unit}/s" if value >= 1 else f"{value:.2g} {self._unit}/s"


class RichProgress:
    """Bars with rate and time left, on a terminal."""

    @contextmanager
    def task(self, label: str, total: int, unit: str = "bytes") -> Iterator[Task]:
        """A bar while the work lasts."""
        amount: list[ProgressColumn] = (
            [DownloadColumn(binary_units=True), TransferSpeedColumn()]
            if unit == "bytes"
            else [MofNCompleteColumn(), TextColumn(unit)]
        )
        columns = [
            TextColumn("{task.description:<12}", markup=False),
            BarColumn(),
            *amount,
            TimeRemainingColumn(),
        ]
        with Progress(*columns, console=ERR) as drawn:
            yield _RichTask(drawn, drawn.add_task(ERR.shown(label), total=total))

    def note(self, line: str) -> None:
        """One line."""
        ERR.print(Text(ERR.shown(line), style="dim"))


class _RichTask:
    def __init__(self, drawn: Progress, task: TaskID) -> None:
        self._drawn, self._task = drawn, task

    def advance(self, amount: int) -> None:
        """Move the bar."""
        self._drawn.advance(self._task, amount)


def progress(*, quiet: bool = False) -> SilentProgress | PlainProgress | RichProgress:
    """Bars on a terminal, lines elsewhere, nothing when asked to be quiet."""
    if quiet:
        return SilentProgress()
    return RichProgress() if ERR.is_terminal else PlainProgress()


def width() -> int:
    """Columns of the output."""
    return OUT.width


def unicode_out() -> bool:
    """Whether the output can draw block characters."""
    return codecs.lookup(OUT.encoding).name == "utf-8"
