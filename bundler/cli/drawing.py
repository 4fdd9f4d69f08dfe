"""All that rich draws: bars on a terminal, and tables. Loaded only when something is drawn."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, RenderableType
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

from bundler.cli.loadfigures import LoadFigures
from bundler.cli.streams import ERR, OUT
from bundler.ports import Task

_OUR_WORDS = frozenset(
    (
        "what", "state", "import", "release", "use", "kind", "change", "outcome", "signed by", "found",
        "area", "would",
    )
)  # fmt: skip


class Drawn(Console):
    """A console that does not close stdout from a helper thread."""

    def on_broken_pipe(self) -> None:
        """As rich does, in the main thread; it also closes stdout, which is not for a helper to do."""
        if threading.current_thread() is not threading.main_thread():
            raise  # rich calls this while it handles the error
        super().on_broken_pipe()


def draw_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """See `console.table`."""
    head = Text(OUT.shown(OUT.word(title)), style="bold") if title else None
    drawn = Table(title=head, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        drawn.add_column(
            Text(OUT.shown(OUT.word(column.lstrip("#")))),
            justify="right" if column.startswith("#") else "left",
            overflow="fold",
        )
    # In these columns a cell is one of our own words; elsewhere a single word may be anybody's name.
    told = [OUT.word if column in _OUR_WORDS else OUT.spoken for column in columns]
    for row in rows:
        drawn.add_row(*(Text(OUT.shown(say(cell))) for say, cell in zip(told, row, strict=False)))
    OUT.drawn.print(drawn)


# Drawing takes milliseconds in which the client's event loop may wait: at so many a second it is late for
# fewer than one wake-up in a hundred, which the gate on its p99 looks at (scripts/bench_live_view.py).
_LIVE_REFRESHES = 2


class _Load(Progress):
    """A bar, and below it what the load does."""

    def __init__(self, figures: LoadFigures, *columns: ProgressColumn) -> None:
        self._figures = figures
        super().__init__(*columns, console=ERR.drawn, refresh_per_second=_LIVE_REFRESHES)

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bar and the line."""
        yield from super().get_renderables()
        if words := self._figures.words():
            yield Text(ERR.shown(f"  {words}"), style="cyan")


class RichProgress(LoadFigures):
    """Bars with rate and time left, on a terminal; of a load also what it does now."""

    @contextmanager
    def task(self, label: str, total: int, unit: str = "bytes") -> Iterator[Task]:
        """A bar while the work lasts."""
        amount: list[ProgressColumn] = (
            [DownloadColumn(binary_units=True), TransferSpeedColumn()]
            if unit == "bytes"
            else [MofNCompleteColumn(), TextColumn(ERR.unit(unit), markup=False)]
        )
        columns = [
            TextColumn("{task.description:<12}", markup=False),
            BarColumn(),
            *amount,
            TimeRemainingColumn(),
        ]
        self.begin(label)
        load = _Load(self, *columns) if unit == "requests" else None
        with load or Progress(*columns, console=ERR.drawn) as drawn:
            yield _RichTask(drawn, drawn.add_task(ERR.shown(ERR.word(label)), total=total))

    def note(self, line: str) -> None:
        """One line."""
        ERR.line(line, style="dim")


class _RichTask:
    def __init__(self, drawn: Progress, task: TaskID) -> None:
        self._drawn, self._task = drawn, task

    def advance(self, amount: int) -> None:
        """Move the bar."""
        self._drawn.advance(self._task, amount)
