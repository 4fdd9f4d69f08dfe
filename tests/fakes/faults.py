"""A process that dies, or is refused by the operating system, at one exact step of its writing.

The work runs in a forked child, so that dying is dying: no handler, no `finally`, nothing flushed.
"""

from __future__ import annotations

import errno
import os
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Every call after which the disk looks different, or after which it is promised to.
BOUNDARIES = (
    "pwrite", "write", "fsync", "fdatasync", "replace", "rename", "unlink", "posix_fallocate", "mkdir",
    "chmod", "link", "symlink",
)  # fmt: skip
DIED = 77
CRASHED = 78


def in_child(work: Callable[[], int], at: int, fault: int | None) -> tuple[int, int]:
    """Run `work` and meet it at its `at`-th boundary.

    Args:
        work: gives an exit code.
        at: number of the boundary, from 1; 0 lets it run through.
        fault: the errno of a refusal; None: the process dies there.

    Returns:
        The exit code (DIED when it died at the boundary), and how many boundaries it passed.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = CRASHED
        try:
            os.close(reader)
            passed = _arm(at, fault)
            code = work()
            _real["write"](writer, str(passed[0]).encode())
        except BaseException:  # noqa: BLE001 - a forked child must never return into pytest
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), int(text or 0)


_real: dict[str, Any] = {name: getattr(os, name) for name in BOUNDARIES}


def _arm(at: int, fault: int | None) -> list[int]:
    """Replace the calls in this process; the list holds how many were made."""
    passed, lock = [0], threading.Lock()

    def wrapped(name: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            with lock:
                passed[0] += 1
                met = passed[0] == at
            if met and fault is None:
                # In the middle of a write: half of it reaches the file.
                if name in ("write", "pwrite") and len(args[1]) > 1:
                    _real[name](args[0], bytes(args[1])[: len(args[1]) // 2], *args[2:])
                os._exit(DIED)
            if met:
                raise OSError(fault, os.strerror(fault or errno.EIO))
            return _real[name](*args, **named)

        return call

    for name in BOUNDARIES:
        setattr(os, name, wrapped(name))
    return passed


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; names of what is still on its way among them."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
