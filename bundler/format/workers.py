"""Work over several files at once that stops within a moment when it is to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bundler.ports import Task

T = TypeVar("T")
R = TypeVar("R")


class Idle:
    """A task that nobody watches."""

    def advance(self, amount: int) -> None:
        """Forget it."""


class _Stopped(Exception):  # noqa: N818 - no error: a worker gives up because another failed
    """Ends a worker from within its next `advance`."""


class _StoppableTask:
    """Passes counts on until it is stopped."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._stop = threading.Event()

    def advance(self, amount: int) -> None:
        """Count, or give up."""
        if self._stop.is_set():
            raise _Stopped
        self._task.advance(amount)

    def stop(self) -> None:
        """Make every worker give up at its next count."""
        self._stop.set()


def in_parallel(
    workers: int, function: Callable[[T, Task], R], items: Iterable[T], task: Task
) -> list[R]:
    """`function(item, task)` for each item, `workers` at a time; results in the items' order.

    The first failure, or Ctrl-C, stops the others at their next `task.advance`, so that nobody waits for
    a large file to end.
    """
    shared = _StoppableTask(task)
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(function, item, shared) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            shared.stop()
            for future in futures:
                future.cancel()
            raise
