"""One HTTP/1.1 request on one connection, read in the event loop's own callback.

Each read is stamped before anything else happens, and handed on without waking a task: at 100 streams
this took half of the processor time of the same client on aiohttp. A connection
each: a server that closes an idle one as we write would be counted as a failed request. No proxy from
the environment, no redirects, no compression: engines are on this host.

RFC 9112 as far as engines use it. What comes in is not trusted: heads, chunk sizes and bodies are bounded.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from bundler.adapters.chat_openai.safe_text import failure
from bundler.errors import EngineError

Sink = Callable[[bytes, float], bool]
"""Takes bytes of the body and the monotonic time of their arrival; True when it needs no more."""

_MOST_HEAD = 64 * 1024
_MOST_SIZE_LINE = 1024
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: |$)")
_SIZE = re.compile(rb"[0-9a-fA-F]{1,12}")
_DIGITS = re.compile(rb"\d{1,15}")
_OK = 200


@dataclass(frozen=True)
class Answer:
    """What came back; `body` is empty when a sink took it, and at most a little over what was allowed."""

    status: int
    body: bytes


async def exchange(
    url: str, method: str, path: str, *, key: str, timeout_s: float, most: int, body: bytes = b"",
    sink: Sink | None = None,
) -> Answer:  # fmt: skip
    """Send a request and read the answer until its end, or until `sink` or `most` bytes end it.

    `sink` gets the body of an answer with status 200. Messages hold nothing that differs from request
    to request: the report counts equal ones.

    Raises:
        EngineError: no connection, a connection that breaks, no end within `timeout_s`, no HTTP; and
            what `sink` raises.
    """
    loop = asyncio.get_running_loop()
    reader = _Reader(sink, most, loop.create_future())
    place = urlsplit(url)
    started = loop.time()
    try:
        transport, _ = await asyncio.wait_for(
            loop.create_connection(lambda: reader, place.hostname or "", place.port or 80),
            timeout_s,
        )
    except asyncio.TimeoutError as cause:
        raise _late(timeout_s) from cause
    except OSError as cause:
        raise failure(f"cannot connect: {_strerror(cause)}") from cause
    timer = loop.call_at(started + timeout_s, reader.end, _late(timeout_s))
    try:
        transport.write(_head(method, path, place.netloc, key, body) + body)
        await reader.ended
    finally:
        timer.cancel()
        transport.abort()
    return Answer(reader.status, bytes(reader.body))


def _late(timeout_s: float) -> EngineError:
    return EngineError(f"no whole answer within {timeout_s:g} s")


def _head(method: str, path: str, host: str, key: str, body: bytes) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Accept: */*", "Connection: close"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode()


def _strerror(error: OSError) -> str:
    """The system's words: asyncio puts address and port into its own, which differ between services."""
    return os.strerror(error.errno) if error.errno else str(error)


class _Reader(asyncio.Protocol):
    """Reads one answer."""

    def __init__(self, sink: Sink | None, most: int, ended: asyncio.Future[None]) -> None:
        self._sink, self._most, self.ended = sink, most, ended
        self.status = 0
        self.body = bytearray()
        self._rest = b""
        self._chunked = False
        self._left: int | None = None  # bytes until the end of the chunk or body; None: not known

    def end(self, error: BaseException | None = None) -> None:
        """The answer is whole, or cannot be."""
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """The server closed, or the network broke."""
        if isinstance(exc, OSError):
            self.end(failure(f"the connection broke: {_strerror(exc)}"))
        elif not self.status:
            self.end(failure("the connection broke: closed before an answer"))
        elif self._chunked or self._left:
            self.end(failure("the connection broke: closed in the middle of an answer"))
        else:
            self.end(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes have arrived."""
        at = time.monotonic()
        if self.ended.done():
            return
        try:
            if not self.status:
                data = self._head(self._rest + data)
            if self.status and self._take(data, at):
                self.end()
        except Exception as cause:  # noqa: BLE001 - whoever waits for the answer gets it
            self.end(cause)

    def _head(self, data: bytes) -> bytes:
        """Read the head when it is whole; gives the bytes after it."""
        head, mark, rest = data.partition(b"\r\n\r\n")
        if len(head) > _MOST_HEAD:
            raise failure("the server's HTTP head is endless")
        if not mark:
            self._rest = data
            return b""
        self._rest = b""
        first, *lines = head.split(b"\r\n")
        found = _STATUS.match(first)
        if not found:
            raise failure(f"no HTTP from the server: {first[:80].decode(errors='replace')}")
        status = int(found[1])
        if status // 100 == 1:  # 100 Continue: the answer itself follows
            return self._head(rest)
        fields = {
            name.strip().lower(): value.strip().lower()
            for name, _, value in (line.partition(b":") for line in lines)
        }
        self._chunked = fields.get(b"transfer-encoding", b"").endswith(b"chunked")
        if not self._chunked and b"content-length" in fields:
            if not _DIGITS.fullmatch(fields[b"content-length"]):
                raise failure("the server's Content-Length is no number")
            self._left = int(fields[b"content-length"])
        if fields.get(b"content-encoding", b"identity") != b"identity":
            raise failure("the server compresses its answer unasked")
        self.status = status
        return rest

    def _take(self, data: bytes, at: float) -> bool:
        """Take bytes of the body; whether it has ended."""
        if self._chunked:
            data, last = self._chunks(data)
        else:
            last = False
            if self._left is not None:
                data = data[: self._left]
                self._left -= len(data)
                last = not self._left
        if data and self._keep(data, at):
            return True
        return last

    def _keep(self, data: bytes, at: float) -> bool:
        if self._sink is not None and self.status == _OK:
            return self._sink(data, at)
        self.body += data
        return len(self.body) > self._most

    def _chunks(self, data: bytes) -> tuple[bytes, bool]:
        """What the chunks hold that these bytes complete or go on with, and whether the last was there."""
        data = self._rest + data
        self._rest = b""
        parts: list[bytes] = []
        at = 0
        while at < len(data):
            if self._left is None:
                end = data.find(b"\n", at)
                if end < 0:
                    break
                size = data[at:end].partition(b";")[0].strip()
                if not _SIZE.fullmatch(size):
                    raise failure("the server's chunks have no size")
                at, self._left = end + 1, int(size, 16)
                if not self._left:
                    return b"".join(parts), True
            part = data[at : at + self._left]
            parts.append(part)
            at += len(part)
            self._left -= len(part)
            if not self._left:
                if len(data) < at + 2:  # the line end after a chunk is still to come
                    self._left = 0
                    break
                at, self._left = at + 2, None
        self._rest = data[at:]
        if len(self._rest) > _MOST_SIZE_LINE:
            raise failure("the server's chunks have no size")
        return b"".join(parts), False
