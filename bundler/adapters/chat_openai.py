"""ChatClient: the OpenAI chat API over HTTP, as vLLM and llama.cpp serve it.

Server-sent events are parsed here rather than by a client library, so that each delta carries the time
at which its bytes arrived and nothing is retried behind the measurement's back.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from bundler.errors import EngineError, as_error
from bundler.ports import ChatRequest, Delta

_ROUTE = "/v1/chat/completions"
# aiohttp pauses a stream at 64 KiB by default, which throttled fast engines (vllm issue 39963).
_READ_BUFFER = 4 * 2**20
_HEALTH_TIMEOUT_S = 5.0
_LONGEST_MESSAGE = 300
_DONE = "[DONE]"
_BROKEN_OFF = ("abort", "error")  # vLLM ends a request so when the engine itself gave up on it


class OpenAIChat:
    """Speaks to one engine or another; holds no connection of its own."""

    def healthy(self, url: str, path: str) -> bool:
        """Whether the health address answers 200; False also when nothing listens there."""
        return asyncio.run(_healthy(url, path))

    def complete(self, url: str, request: ChatRequest) -> str:
        """One whole completion, not streamed: the content, or the reasoning when it is all there is.

        Raises:
            EngineError: any failure or timeout.
        """
        return asyncio.run(_complete(url, request))

    def session(self, url: str) -> OpenAISession:
        """A session to measure with."""
        return OpenAISession(url)


class OpenAISession:
    """Any number of streams to one engine, inside `async with`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> OpenAISession:
        """Open."""
        self._client = _client()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def stream(self, request: ChatRequest) -> AsyncIterator[Delta]:
        """Stream one completion.

        Times are `time.monotonic`, the clock of the `Clock` port, read as bytes arrive and before they
        are parsed. Events without text, finish reason or usage (such as the role) are left out.

        Raises:
            EngineError: any failure or timeout, and a stream that breaks off early.
        """
        if self._client is None:
            raise EngineError("the chat session is not open")
        body = _body(request) | {"stream": True, "stream_options": {"include_usage": True}}
        events = _Events()
        finished = False
        async with _answer(self._client, "POST", self._url + _ROUTE, request, body) as response:
            async for data in response.content.iter_any():
                at = time.monotonic()
                for text in events.feed(data):
                    if text == _DONE:
                        break
                    with as_error(EngineError, "an event that cannot be read"):
                        delta = _delta(text, at)
                    finished = finished or bool(delta.finish_reason)
                    if delta.text or delta.finish_reason or delta.output_tokens is not None:
                        yield delta
                if events.done:
                    break
        if not events.done:
            raise EngineError(f"the stream broke off without {_DONE}")
        if not finished:
            raise EngineError("the stream ended without a finish_reason")


class _Events:
    """Cuts bytes into the data of server-sent events.

    Follows https://html.spec.whatwg.org/multipage/server-sent-events.html as far as engines use it: every
    `data` line is an event of its own, as OpenAI's API promises. Lines are cut as bytes, so a character
    that is split over two reads is whole again before it is decoded.
    """

    def __init__(self) -> None:
        self._rest = b""
        self.done = False

    def feed(self, data: bytes) -> Iterator[str]:
        """The events that are complete with these bytes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            name, _, value = line.strip(b"\r").partition(b":")
            if name == b"error":  # llama.cpp has sent failures in a field of this name
                raise EngineError(f"the engine reported: {_message(value)}")
            if name != b"data":
                continue
            text = value.decode("utf-8", errors="replace").strip()
            self.done = self.done or text == _DONE
            yield text


def _client() -> aiohttp.ClientSession:
    # No limit: the default of 100 connections would queue requests unseen. A connection each: a server
    # that closes an idle one as we write would be counted as a failed request. No proxy from the
    # environment: engines are on this host.
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        read_bufsize=_READ_BUFFER,
        trust_env=False,
    )


def _body(request: ChatRequest) -> dict[str, Any]:
    return {
        "model": request.model,
        "messages": [{"role": "user", "content": request.prompt}],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "ignore_eos": request.ignore_eos,
    }


async def _healthy(url: str, path: str) -> bool:
    timeout = aiohttp.ClientTimeout(total=_HEALTH_TIMEOUT_S)
    try:
        async with _client() as client, client.get(url + path, timeout=timeout) as response:
            return response.status == 200
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError):
        return False


async def _complete(url: str, request: ChatRequest) -> str:
    async with _client() as client:
        answering = _answer(client, "POST", url + _ROUTE, request, _body(request))
        async with answering as response:
            answer = _object((await response.read()).decode(errors="replace"))
    if not answer.get("choices"):
        raise EngineError("the engine answered without choices")
    with as_error(EngineError, "an answer that cannot be read"):
        return _text(answer["choices"][0].get("message") or {})[0]


@asynccontextmanager
async def _answer(
    client: aiohttp.ClientSession, method: str, url: str, request: ChatRequest, body: object
) -> AsyncIterator[aiohttp.ClientResponse]:
    """A response with status 200; every failure on the way, in the body of the `with` too, is named.

    Messages hold nothing that differs from request to request: the report counts equal ones.
    """
    timeout = aiohttp.ClientTimeout(total=request.timeout_s)
    try:
        async with client.request(method, url, json=body, timeout=timeout) as response:
            if response.status != 200:
                raise EngineError(f"HTTP {response.status}: {_message(await response.read())}")
            yield response
    except asyncio.TimeoutError as cause:
        raise EngineError(f"no whole answer within {request.timeout_s:g} s") from cause
    except aiohttp.ClientConnectorError as cause:
        raise EngineError(f"cannot connect: {_reason(cause.os_error)}") from cause
    except (aiohttp.ClientError, OSError) as cause:
        raise EngineError(f"the connection broke: {str(cause) or type(cause).__name__}") from cause


def _reason(error: OSError) -> str:
    """The system's words: asyncio puts address and port into its own, which differ between services."""
    return os.strerror(error.errno) if error.errno else str(error)


def _delta(text: str, at: float) -> Delta:
    chunk = _object(text)
    if chunk.get("error"):
        raise EngineError(f"the engine reported: {_message(text.encode())}")
    choices = chunk.get("choices") or [{}]
    reason = choices[0].get("finish_reason") or ""
    if reason in _BROKEN_OFF:
        raise EngineError(f"the engine ended the answer with finish_reason {reason}")
    said, reasoning = _text(choices[0].get("delta") or {})
    usage = chunk.get("usage") or {}
    return Delta(
        at=at,
        text=said,
        reasoning=reasoning,
        finish_reason=reason,
        input_tokens=usage.get("prompt_tokens"),
        output_tokens=usage.get("completion_tokens"),
    )


def _text(part: dict[str, Any]) -> tuple[str, bool]:
    """All that the model said in a message or delta, and whether it was reasoning only.

    vLLM calls reasoning `reasoning`, older versions and llama.cpp `reasoning_content`; some send both.
    """
    content = part.get("content") or ""
    calls = "".join(
        (call.get("function") or {}).get("arguments") or "" for call in part.get("tool_calls") or ()
    )
    if content or calls:
        return content + calls, False
    thought = part.get("reasoning") or part.get("reasoning_content") or ""
    return thought, bool(thought)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as cause:
        raise EngineError(f"not JSON from the engine: {text[:_LONGEST_MESSAGE]}") from cause
    if not isinstance(value, dict):
        raise EngineError(f"not an object from the engine: {text[:_LONGEST_MESSAGE]}")
    return value


def _message(body: bytes) -> str:
    """The server's own words, in one line, from the error shapes that engines use."""
    text = body.decode("utf-8", errors="replace").strip()
    try:
        value: object = json.loads(text)
    except ValueError:
        value = text
    for key in ("error", "message", "detail"):
        if isinstance(value, dict) and value.get(key):
            value = value[key]
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(said.split())[:_LONGEST_MESSAGE] or "(no message)"
