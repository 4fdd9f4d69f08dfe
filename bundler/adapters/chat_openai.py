"""ChatClient: the OpenAI chat API over HTTP, as vLLM and llama.cpp serve it.

Server-sent events are parsed here rather than by a client library, so that each delta carries the time
at which its bytes arrived and nothing is retried behind the measurement's back.

An engine is not trusted to keep to the API: a field of another type than documented counts as missing,
sizes are bounded, and text loses what could not be stored as UTF-8 or would steer a terminal.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from bundler.errors import EngineError
from bundler.ports import ChatRequest, Delta

_ROUTE = "/v1/chat/completions"
# aiohttp pauses a stream at 64 KiB by default, which throttled fast engines (vllm issue 39963).
_READ_BUFFER = 4 * 2**20
_HEALTH_TIMEOUT_S = 5.0
_LONGEST_MESSAGE = 300
_LONGEST_REASON = 40
# An answer that never ends must not fill the memory: a token's event takes some hundred bytes.
_MOST_LINE = 2**20
_MOST_ANSWER = 16 * 2**20
_MOST_PER_TOKEN = 4096
_MOST_TEXT = 4 * 2**20
_MOST_TOKENS = 2**31
_DONE = "[DONE]"
_BROKEN_OFF = ("abort", "error")  # vLLM ends a request so when the engine itself gave up on it
# Control characters but tab and newline, marks that reorder a line, and halves of surrogate pairs.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class OpenAIChat:
    """Speaks to one engine or another; holds no connection of its own."""

    def __init__(self, key_for: Callable[[str], str] = lambda url: "") -> None:
        """`key_for` gives the API key of an address; empty when it asks for none."""
        self._key_for = key_for

    def healthy(self, url: str, path: str) -> bool:
        """Whether the health address answers 200; False also when nothing listens there."""
        return asyncio.run(_healthy(url, path, self._key_for(url)))

    def read(self, url: str, path: str) -> str:
        """What an address answers with 200; empty when nothing does, or something else."""
        return asyncio.run(_get(url, path, self._key_for(url)))

    def complete(self, url: str, request: ChatRequest) -> str:
        """One whole completion, not streamed: the content, or the reasoning when it is all there is.

        Raises:
            EngineError: any failure or timeout, and an answer without any text.
        """
        return asyncio.run(_complete(url, request, self._key_for(url)))

    def session(self, url: str) -> OpenAISession:
        """A session to measure with."""
        return OpenAISession(url, self._key_for(url))


class OpenAISession:
    """Any number of streams to one engine, inside `async with`."""

    def __init__(self, url: str, key: str = "") -> None:
        self._url, self._key = url, key
        self._client: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> OpenAISession:
        """Open."""
        self._client = _client(self._key)
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
        events = _Events(_MOST_ANSWER + _MOST_PER_TOKEN * request.max_tokens)
        finished = False
        async with _answer(self._client, "POST", self._url + _ROUTE, request, body) as response:
            async for data in response.content.iter_any():
                at = time.monotonic()
                for text in events.feed(data):
                    if text == _DONE:
                        break
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

    def __init__(self, most: int) -> None:
        self._rest = b""
        self._left = most
        self.done = False

    def feed(self, data: bytes) -> Iterator[str]:
        """The events that are complete with these bytes.

        Raises:
            EngineError: an error event, or more bytes than an answer can need.
        """
        self._left -= len(data)
        if self._left < 0:
            raise _failure("the engine streams far more than was asked for")
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MOST_LINE or any(len(line) > _MOST_LINE for line in lines):
            raise _failure(f"an event of over {_MOST_LINE // 2**20} MiB")
        for line in lines:
            name, _, value = line.strip(b"\r").partition(b":")
            if name == b"error":  # llama.cpp has sent failures in a field of this name
                raise _failure(f"the engine reported: {_message(value)}")
            if name != b"data":
                continue
            text = value.decode("utf-8", errors="replace").strip()
            self.done = self.done or text == _DONE
            yield text


def _client(key: str) -> aiohttp.ClientSession:
    # No limit: the default of 100 connections would queue requests unseen. A connection each: a server
    # that closes an idle one as we write would be counted as a failed request. No proxy from the
    # environment: engines are on this host.
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True),
        read_bufsize=_READ_BUFFER,
        trust_env=False,
        headers={"Authorization": f"Bearer {key}"} if key else None,
    )


def _body(request: ChatRequest) -> dict[str, Any]:
    return {
        "model": request.model,
        "messages": [{"role": "user", "content": request.prompt}],
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "ignore_eos": request.ignore_eos,
    }


async def _healthy(url: str, path: str, key: str) -> bool:
    timeout = aiohttp.ClientTimeout(total=_HEALTH_TIMEOUT_S)
    try:
        async with _client(key) as client, client.get(url + path, timeout=timeout) as response:
            return response.status == 200
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError):
        return False


async def _get(url: str, path: str, key: str) -> str:
    timeout = aiohttp.ClientTimeout(total=_HEALTH_TIMEOUT_S)
    try:
        async with _client(key) as client, client.get(url + path, timeout=timeout) as response:
            body = await _read(response, _MOST_TEXT)
            known = response.status == 200 and len(body) <= _MOST_TEXT
            return body.decode(errors="replace") if known else ""
    except (aiohttp.ClientError, asyncio.TimeoutError, OSError):
        return ""


async def _complete(url: str, request: ChatRequest, key: str) -> str:
    async with _client(key) as client:
        answering = _answer(client, "POST", url + _ROUTE, request, _body(request))
        async with answering as response:
            body = await _read(response, _MOST_ANSWER)
    if len(body) > _MOST_ANSWER:
        raise _failure(f"an answer of over {_MOST_ANSWER // 2**20} MiB")
    choice = _choice(_object(body.decode(errors="replace")))
    if choice is None:
        raise _failure("the engine answered without choices")
    text, _ = _text(_part(choice, "message"))
    if not text:
        reason = _reason(choice)
        raise _failure(
            f"answered with no text ({f'finish_reason {reason}' if reason else 'no finish_reason'})"
        )
    return text


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The body; of one that is longer than `most`, its beginning and at least one byte more."""
    body = bytearray()
    async for data in response.content.iter_any():
        body += data
        if len(body) > most:
            break
    return bytes(body)


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
                words = await _read(response, _MOST_LINE)
                raise _failure(f"HTTP {response.status}: {_message(words[:_MOST_LINE])}")
            yield response
    except asyncio.TimeoutError as cause:
        raise EngineError(f"no whole answer within {request.timeout_s:g} s") from cause
    except aiohttp.ClientConnectorError as cause:
        raise _failure(f"cannot connect: {_strerror(cause.os_error)}") from cause
    except (aiohttp.ClientError, OSError) as cause:
        raise _failure(f"the connection broke: {str(cause) or type(cause).__name__}") from cause


def _strerror(error: OSError) -> str:
    """The system's words: asyncio puts address and port into its own, which differ between services."""
    return os.strerror(error.errno) if error.errno else str(error)


def _delta(text: str, at: float) -> Delta:
    chunk = _object(text)
    choice = _choice(chunk) or {}
    reason = _reason(choice)
    said, reasoning = _text(_part(choice, "delta"))
    usage = chunk.get("usage")
    return Delta(
        at=at,
        text=said,
        reasoning=reasoning,
        finish_reason=reason,
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
    )


def _object(text: str) -> dict[str, Any]:
    """An answer or a chunk that is an object and reports no error."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise _failure(f"not JSON from the engine: {text}") from cause
    if not isinstance(value, dict):
        raise _failure(f"not an object from the engine: {text}")
    if value.get("error"):
        raise _failure(f"the engine reported: {_message(text.encode(errors='replace'))}")
    return value


def _choice(answer: dict[str, Any]) -> dict[str, Any] | None:
    """The first choice; None when there is none, as in the chunk that carries usage."""
    choices = answer.get("choices")
    if not choices:
        return None
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        raise _failure("the engine's choices are not a list of objects")
    return choices[0]


def _part(choice: dict[str, Any], name: str) -> dict[str, Any]:
    part = choice.get(name)
    if part is not None and not isinstance(part, dict):
        raise _failure(f"the engine's {name} is not an object")
    return part or {}


def _reason(choice: dict[str, Any]) -> str:
    """Why the answer ended; empty while it has not."""
    reason = _one_line(_string(choice, "finish_reason"), _LONGEST_REASON)
    if reason in _BROKEN_OFF:
        raise _failure(f"the engine ended the answer with finish_reason {reason}")
    return reason


def _text(part: dict[str, Any]) -> tuple[str, bool]:
    """All that the model said in a message or delta, and whether it was reasoning only.

    vLLM calls reasoning `reasoning`, older versions and llama.cpp `reasoning_content`; some send both.
    """
    calls = part.get("tool_calls")
    said = _string(part, "content") + "".join(
        _string(call.get("function"), "arguments")
        for call in (calls if isinstance(calls, list) else ())
        if isinstance(call, dict)
    )
    if said:
        return said, False
    thought = _string(part, "reasoning") or _string(part, "reasoning_content")
    return thought, bool(thought)


def _string(part: object, name: str) -> str:
    """A field's text. Unsafe characters are replaced, not left out: one alone is still a token."""
    value = part.get(name) if isinstance(part, dict) else None
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else ""


def _count(usage: object, name: str) -> int | None:
    """A field's number of tokens, when it can be one."""
    value = usage.get(name) if isinstance(usage, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < _MOST_TOKENS else None


def _message(body: bytes) -> str:
    """The server's own words, in one line, from the error shapes that engines use."""
    text = body.decode("utf-8", errors="replace").strip()
    try:
        value: object = json.loads(text)
        for key in ("error", "message", "detail"):
            if isinstance(value, dict) and value.get(key):
                value = value[key]
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        said = text
    return _one_line(said, _LONGEST_MESSAGE) or "(no message)"


def _one_line(text: str, longest: int) -> str:
    # Cut before and after: no need to sift megabytes, and a space less may come of it.
    words = " ".join(_UNSAFE.sub(" ", text[: 4 * longest]).split())
    return words[:longest]


def _failure(text: str) -> EngineError:
    """An error whose text can be shown, stored and counted, whatever the engine put into it."""
    return EngineError(_one_line(text, _LONGEST_MESSAGE))
