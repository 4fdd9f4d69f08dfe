"""One HTTP/1.1 request on one connection, read by an inbox.

Each read is stamped before anything else happens, and handed on without waking a task. A connection
each: a server that closes an idle one as we write would be counted as a failed request. No proxy from
the environment, no redirects, no compression: engines are on this host.

RFC 9112 as far as engines use it. What comes in is not trusted: heads, chunk sizes and bodies are bounded.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from bundler.adapters.chat_openai.inbox import Inbox
from bundler.adapters.chat_openai.safe_text import failure
from bundler.errors import EngineError


class Sink(Protocol):
    """Takes the body of an answer; `at` is the monotonic time at which its bytes arrived."""

    def feed(self, data: bytes, at: float) -> bool:
        """Take bytes of the body; True when no more are needed."""
        ...

    def known(self, data: bytes, at: float, chunked: bool) -> int:
        """Take what can be taken faster, and say how many bytes that was.

        `data` is as it came, with chunk sizes when `chunked`, and begins where a chunk may begin.
        """
        ...


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
    sink: Sink | None = None, inbox: Inbox | None = None,
) -> Answer:  # fmt: skip
    """Send a request and read the answer until its end, or until `sink` or `most` bytes end it.

    `sink` gets the body of an answer with status 200. `inbox` reads it; one is made when none is given.
    Messages hold nothing that differs from request to request: the report counts equal ones.

    Raises:
        EngineError: no connection, a connection that breaks, no end within `timeout_s`, no HTTP; and
            what `sink` raises.
    """
    if inbox is None:
        try:
            inbox = Inbox()
        except OSError as cause:
            raise failure(f"cannot connect: {_strerror(cause)}") from cause
        try:
            return await exchange(
                url, method, path, key=key, timeout_s=timeout_s, most=most, body=body, sink=sink,
                inbox=inbox,
            )  # fmt: skip
        finally:
            inbox.close()
    loop = asyncio.get_running_loop()
    reader = _Reader(sink, most, loop.create_future())
    try:
        place = urlsplit(url)
        port = place.port or 80
    except ValueError as cause:
        raise failure(f"cannot connect to {url}: {cause}") from cause
    late = EngineError(f"no whole answer within {timeout_s:g} s")
    ends = loop.time() + timeout_s
    try:
        connection = await asyncio.wait_for(_connected(place.hostname or "", port), timeout_s)
    except asyncio.TimeoutError as cause:
        raise late from cause
    except UnicodeError as cause:  # what no name of a host can be
        raise failure(f"cannot connect: {cause}") from cause
    timer = loop.call_at(ends, reader.end, late)
    sending: asyncio.Task[None] | None = None
    try:
        inbox.watch(connection.fileno(), reader)
        rest = _send(connection, _head(method, path, place.netloc, key, body) + body)
        if rest:
            sending = loop.create_task(_send_rest(connection, rest))
        await reader.ended
    finally:
        timer.cancel()
        if sending is not None:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        inbox.leave(connection.fileno())
        connection.close()
    return Answer(reader.status, bytes(reader.body))


async def _connected(host: str, port: int) -> socket.socket:
    """A connection to the first of the host's addresses that takes one."""
    loop = asyncio.get_running_loop()
    refused: OSError | None = None
    for family in (socket.AF_INET6,) if ":" in host else (socket.AF_INET, socket.AF_INET6):
        try:
            connection = socket.socket(family, socket.SOCK_STREAM)
        except OSError as cause:  # no file is left to open, or the kernel has no IPv6
            refused = refused or cause
            continue
        try:
            connection.setblocking(False)
            await loop.sock_connect(connection, (host, port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as cause:
            connection.close()
            refused = refused or cause
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise failure(f"cannot connect: {_strerror(refused or OSError())}") from refused


def _send(connection: socket.socket, data: bytes) -> bytes:
    """Send what the system takes at once, which is nearly always all; gives the rest."""
    try:
        return data[connection.send(data) :]
    except BlockingIOError:
        return data
    except OSError:  # reading says why
        return b""


async def _send_rest(connection: socket.socket, data: bytes) -> None:
    """Send all of it; a server that will not hear it says so in its answer, or breaks off."""
    with suppress(OSError):
        await asyncio.get_running_loop().sock_sendall(connection, data)


def _head(method: str, path: str, host: str, key: str, body: bytes) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Accept: */*", "Connection: close"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode()


def _strerror(error: OSError) -> str:
    """The system's words: asyncio puts address and port into its own, which differ between services."""
    if isinstance(error, socket.gaierror):  # its numbers are not the system's
        return error.strerror or str(error)
    return os.strerror(error.errno) if error.errno else str(error)


class _Reader:
    """Reads one answer."""

    def __init__(self, sink: Sink | None, most: int, ended: asyncio.Future[None]) -> None:
        self._sink, self._most, self.ended = sink, most, ended
        self.status = 0
        self.body = bytearray()
        self._rest = b""
        self._chunked = False
        self._left: int | None = None  # bytes until the end of the chunk or body; None: not known
        self._knowing: Sink | None = None  # the sink, while it may know what comes as it is

    def end(self, error: BaseException | None = None) -> None:
        """The answer is whole, or cannot be."""
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)

    def broken(self, error: OSError) -> None:
        """The network broke."""
        self.end(failure(f"the connection broke: {_strerror(error)}"))

    def received(self, data: bytes, at: float) -> None:
        """Bytes have arrived, or the server closed."""
        if self.ended.done():
            return
        try:
            if self._knowing is not None:
                known = self._knowing.known(data, at, self._chunked)
                if known and known == len(data):
                    return
                data = data[known:]
            if not data:
                self._closed()
                return
            if not self.status:
                data = self._head(self._rest + data)
            if self.status and self._take(data, at):
                self.end()
            self._knowing = None
            if self.status == _OK and self._left is None and not self._rest:
                self._knowing = self._sink
        except Exception as cause:  # noqa: BLE001 - whoever waits for the answer gets it
            self.end(cause)

    def _closed(self) -> None:
        if not self.status:
            raise failure("the connection broke: closed before an answer")
        if self._chunked or self._left:
            raise failure("the connection broke: closed in the middle of an answer")
        self.end()

    def _head(self, data: bytes) -> bytes:
        """Read the head when it is whole; gives the bytes after it."""
        status, rest, lines = 100, data, list[bytes]()
        while status // 100 == 1:  # 100 Continue: the answer itself follows
            data = rest
            head, mark, rest = data.partition(b"\r\n\r\n")
            if len(head) > _MOST_HEAD:
                raise failure("the server's HTTP head is endless")
            if not mark:
                self._rest = data
                return b""
            first, *lines = head.split(b"\r\n")
            found = _STATUS.match(first)
            if not found:
                raise failure(f"no HTTP from the server: {first[:80].decode(errors='replace')}")
            status = int(found[1])
        self._rest = b""
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
            return self._sink.feed(data, at)
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
