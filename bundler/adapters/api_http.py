"""ApiClient: JSON over HTTP to an engine, for what chat alone cannot ask (log-probabilities, tools, tokens).

The server is not trusted: sizes are bounded, and its words lose what would steer a terminal.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp

from bundler.errors import EngineError
from bundler.instruments import Answered

_MOST_ANSWER = 16 * 2**20
_LONGEST_MESSAGE = 200
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class HttpApi:
    """Makes sessions; `key_for` gives the API key of an address, empty when it asks for none."""

    def __init__(self, key_for: Callable[[str], str] = lambda url: "") -> None:
        self._key_for = key_for

    def session(self, url: str) -> HttpApiSession:
        """A session with one engine."""
        return HttpApiSession(url, self._key_for(url))


class HttpApiSession:
    """Any number of requests to one engine, inside `async with`."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key
        self._client: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> HttpApiSession:
        """Open."""
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            trust_env=False,  # engines are on this host: no proxy
            headers={"Authorization": f"Bearer {self._key}"} if self._key else None,
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def post(self, path: str, body: Mapping[str, object], timeout_s: float) -> Answered:
        """One request and its whole answer.

        Raises:
            EngineError: no answer, one of over 16 MiB, or a good one that is no JSON object.
        """
        if self._client is None:
            raise EngineError("the API session is not open")
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            sent = self._client.post(self._url + path, json=dict(body), timeout=timeout)
            async with sent as response:
                status, data = response.status, await _read(response)
        except asyncio.TimeoutError as cause:
            raise EngineError(f"no whole answer within {timeout_s:g} s") from cause
        except aiohttp.ClientConnectorError as cause:
            number = cause.os_error.errno
            raise EngineError(
                f"cannot connect: {os.strerror(number) if number else cause.os_error}"
            ) from cause
        except (aiohttp.ClientError, OSError) as cause:
            raise EngineError(
                f"the connection broke: {_one_line(str(cause)) or type(cause).__name__}"
            ) from cause
        return answered(status, data)


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for data in response.content.iter_any():
        body += data
        if len(body) > _MOST_ANSWER:
            raise EngineError(f"an answer of over {_MOST_ANSWER // 2**20} MiB")
    return bytes(body)


def answered(status: int, data: bytes) -> Answered:
    """What a status and a body say.

    Raises:
        EngineError: a good answer that is no JSON object.
    """
    text = data.decode("utf-8", errors="replace")
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as cause:
        if status == 200:
            raise EngineError(f"not JSON from the engine: {_one_line(text)}") from cause
        return Answered(status, message=_one_line(text) or f"HTTP {status}")
    body = value if isinstance(value, dict) else {}
    if status == 200 and not isinstance(value, dict):
        raise EngineError(f"not an object from the engine: {_one_line(text)}")
    if status == 200 and not body.get("error"):
        return Answered(status, body)
    # llama.cpp and Ollama have put errors into answers of status 200.
    return Answered(500 if status == 200 else status, message=_message(value))


def _message(value: object) -> str:
    """The server's words, from the error shapes that engines use."""
    for key in ("error", "message", "detail"):
        if isinstance(value, dict) and value.get(key):
            value = value[key]
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _one_line(said)


def _one_line(text: str) -> str:
    return " ".join(_UNSAFE.sub(" ", text[: 4 * _LONGEST_MESSAGE]).split())[:_LONGEST_MESSAGE]
