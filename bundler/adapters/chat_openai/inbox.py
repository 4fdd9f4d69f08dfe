"""Reads every connection of one event loop in one callback.

asyncio's transports cost a handle, a context and three calls for each read, which at 100 streams was more than half
of the client's processor time. Here the connections are in an epoll of their own, which the event loop
watches as one file: whatever has arrived is read and stamped first, then parsed.
"""

from __future__ import annotations

import asyncio
import os
import select
import time
from contextlib import suppress
from typing import Protocol

# What is left over is read in the next round, so one loud connection does not delay the stamps of others.
_MOST_READ = 32 * 1024


class Reader(Protocol):
    """Who gets what arrives on one connection."""

    def received(self, data: bytes, at: float) -> None:
        """Bytes that arrived at the monotonic time `at`; none when the other side has closed. Never raises."""
        ...

    def broken(self, error: OSError) -> None:
        """The connection broke. Never raises."""
        ...


class Inbox:
    """Any number of connections, on the event loop that runs when it is made."""

    def __init__(self) -> None:
        """Start to watch."""
        self._readers: dict[int, Reader] = {}
        self._epoll = select.epoll()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._epoll.fileno(), self._read)

    def close(self) -> None:
        """Stop; connections that are still open are nobody's from here on."""
        if not self._epoll.closed:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
        self._readers.clear()

    def watch(self, connection: int, reader: Reader) -> None:
        """Read a connection (the number of its non-blocking socket) from now on."""
        self._readers[connection] = reader
        self._epoll.register(connection, select.EPOLLIN)

    def leave(self, connection: int) -> None:
        """Read it no more; to be called before it is closed. It need not be watched."""
        if self._readers.pop(connection, None) is not None:
            with suppress(OSError, ValueError):  # closed meanwhile, the one or the other
                self._epoll.unregister(connection)

    def _read(self) -> None:
        """Something has arrived."""
        now, read, readers = time.monotonic, os.read, self._readers
        came = []
        for connection, _ in self._epoll.poll(0):
            reader = readers.get(connection)
            if reader is None:
                continue
            try:
                data = read(connection, _MOST_READ)
            except BlockingIOError:
                continue
            except OSError as cause:
                reader.broken(cause)
                continue
            came.append((reader, data, now()))
        for reader, data, at in came:
            reader.received(data, at)
