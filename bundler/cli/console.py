"""All that is drawn: progress, tables, verdicts. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

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
OUT = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _WIDE)
ERR = Console(stderr=True, highlight=False, soft_wrap=True)
PLAIN_EVERY_S = 5.0


def show_json(value: object) -> None:
    """A result for machines."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n")


def say(line: str, style: str = "") -> None:
    """A result for people."""
    OUT.print(Text(line, style=style))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A small table; columns named `#...` are numbers and lie to the right."""
    drawn = Table(title=title, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for column in columns:
        drawn.add_column(
            column.lstrip("#"),
            justify="right" if column.startswith("#") else "left",
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*map(Text, row))
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
        """Print now and then, and at the end."""
        task = _PlainTask(label, total, unit)
        yield task
        task.end()

    def note(self, line: str) -> None:
        """One line."""
        ERR.print(Text(line))


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
            now = time.monotonic()
            if now - self._shown < PLAIN_EVERY_S:
                return
            self._shown = now
            rate = self._done / max(now - self._began, 1e-9)
            left = (self._total - self._done) / rate if rate > 0 else 0
            ERR.print(
                Text(
                    f"{self._label}: {self._amount(self._done)} of {self._amount(self._total)},"
                    f" {self._amount(rate)}/s, {max(0, left):.0f} s left"
                )
            )

    def end(self) -> None:
        """The closing line."""
        took = max(time.monotonic() - self._began, 1e-9)
        rate = self._amount(self._done / took)
        ERR.print(Text(f"{self._label}: {self._amount(self._done)} in {took:.1f} s, {rate}/s"))

    def _amount(self, value: float) -> str:
        return human(value) if self._unit == "bytes" else f"{value:.4g} {self._unit}"


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
            TextColumn("{task.description:<12}"),
            BarColumn(),
            *amount,
            TimeRemainingColumn(),
        ]
        with Progress(*columns, console=ERR) as drawn:
            yield _RichTask(drawn, drawn.add_task(label, total=total))

    def note(self, line: str) -> None:
        """One line."""
        ERR.print(Text(line, style="dim"))


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
