"""OpenAI's chat and completions API as vLLM, llama.cpp and Ollama serve it.

Server-sent events are parsed here rather than by a client library, so that each delta carries the time
at which its bytes arrived and nothing is retried behind the measurement's back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from bundler.adapters.chat_openai.chunks import completion_of, delta_of
from bundler.adapters.chat_openai.events import DONE, Events
from bundler.adapters.chat_openai.exchange import Answer, Sink, exchange
from bundler.adapters.chat_openai.inbox import Inbox
from bundler.adapters.chat_openai.safe_text import failure, message
from bundler.adapters.chat_openai.template import Template
from bundler.errors import EngineError
from bundler.ports import ChatRequest, Delta

_ROUTES = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}
_HEALTH_TIMEOUT_S = 5.0
# An answer that never ends must not fill the memory: a token's event takes some hundred bytes.
_MOST_WORDS = 2**20
_MOST_ANSWER = 16 * 2**20
_MOST_PER_TOKEN = 4096
_MOST_TEXT = 4 * 2**20
_OK = 200
# What a server that reads its requests strictly says to a field that it does not know.
_REFUSES_A_FIELD = (400, 422)


class OpenAIChat:
    """Speaks to one engine or another; holds no connection of its own."""

    def __init__(self, key_for: Callable[[str], str] = lambda url: "") -> None:
        """`key_for` gives the API key of an address; empty when it asks for none."""
        self._key_for = key_for

    def healthy(self, url: str, path: str) -> bool:
        """Whether the health address answers 200; False also when nothing listens there."""
        answer = asyncio.run(_get(url, path, self._key_for(url)))
        return answer is not None and answer.status == _OK

    def read(self, url: str, path: str) -> str:
        """What an address answers with 200; empty when nothing does, or something else."""
        return _text(asyncio.run(_get(url, path, self._key_for(url))))

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
        self._inbox: Inbox | None = None
        self._counts_chunks = True

    async def __aenter__(self) -> OpenAISession:
        """Open."""
        self._inbox = Inbox()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close."""
        if self._inbox is not None:
            self._inbox.close()
        self._inbox = None

    async def listen(self, request: ChatRequest, take: Callable[[Delta], None]) -> bool:
        """Stream one completion into `take`, called as the bytes arrive; whether `[DONE]` came.

        Times are `time.monotonic`, the clock of the `Clock` port, read before the bytes are parsed.
        Events without text, finish reason or usage (such as the role) are left out.

        Raises:
            EngineError: any failure or timeout, and a stream that ends without a finish reason.
        """
        if self._inbox is None:
            raise EngineError("the chat session is not open")
        stream = _Stream(request, take)
        answer = await self._post(request, stream)
        if answer.status in _REFUSES_A_FIELD and self._counts_chunks:
            # Asked again without the one field that is not OpenAI's, and never with it from then on.
            self._counts_chunks = False
            answer = await self._post(request, stream)
        _refuse_error(answer)
        if not stream.finished:
            raise EngineError(
                "the stream ended without a finish_reason"
                if stream.events.done
                else f"the stream broke off without a finish_reason and without {DONE}"
            )
        return stream.events.done

    async def stream(self, request: ChatRequest) -> AsyncIterator[Delta]:
        """The same for `async for`; what is measured goes through `listen`, which wakes no task.

        Raises:
            EngineError: as `listen`.
        """
        queue: asyncio.Queue[Delta | None] = asyncio.Queue()
        listening = asyncio.ensure_future(self.listen(request, queue.put_nowait))
        listening.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (delta := await queue.get()) is not None:
                yield delta
            await listening
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def page(self, path: str) -> str:
        """What an address of the engine answers with 200; empty when it does not."""
        return _text(await _get(self._url, path, self._key))

    async def _post(self, request: ChatRequest, sink: Sink) -> Answer:
        options = {"include_usage": True}
        if self._counts_chunks:
            # vLLM and SGLang then say after each chunk how many tokens there were; others ignore it.
            options["continuous_usage_stats"] = True
        body = _body(request) | {"stream": True, "stream_options": options}
        return await exchange(
            self._url, "POST", _ROUTES[request.api], key=self._key, timeout_s=request.timeout_s,
            most=_MOST_WORDS, body=json.dumps(body).encode(), sink=sink, inbox=self._inbox,
        )  # fmt: skip


class _Stream:
    """Turns the bytes of one answer into deltas."""

    def __init__(self, request: ChatRequest, take: Callable[[Delta], None]) -> None:
        self.events = Events(_MOST_ANSWER + _MOST_PER_TOKEN * request.max_tokens)
        self.finished = False
        self._take = take
        self._template = Template()

    def known(self, data: bytes, at: float, chunked: bool) -> int:
        """Take the events at the beginning of `data` that are like earlier ones; how many bytes they took."""
        if self.events.inside:
            return 0
        deltas: list[Delta] = []
        taken = self._template.read(data, at, chunked, deltas)
        if taken:
            self.events.count(taken)
            for delta in deltas:
                self._take(delta)
        return taken

    def feed(self, data: bytes, at: float) -> bool:
        """Bytes that arrived at `at`; whether the answer is complete."""
        for text in self.events.feed(data):
            delta = delta_of(text, at)
            self._template.learn(text, delta)
            if delta.finish_reason:
                self.finished = True
            if delta.text or delta.finish_reason or delta.output_tokens is not None:
                self._take(delta)
        return self.events.done


def _body(request: ChatRequest) -> dict[str, Any]:
    asked: dict[str, Any] = {"model": request.model}
    if request.api == "chat":
        asked["messages"] = [{"role": "user", "content": request.prompt}]
    else:
        asked["prompt"] = request.prompt
    return asked | {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "ignore_eos": request.ignore_eos,
    }


async def _get(url: str, path: str, key: str) -> Answer | None:
    """An answer of any status; None when there is none."""
    try:
        return await exchange(
            url, "GET", path, key=key, timeout_s=_HEALTH_TIMEOUT_S, most=_MOST_TEXT
        )
    except EngineError:
        return None


def _text(answer: Answer | None) -> str:
    if answer is None or answer.status != _OK or len(answer.body) > _MOST_TEXT:
        return ""
    return answer.body.decode(errors="replace")


async def _complete(url: str, request: ChatRequest, key: str) -> str:
    body = json.dumps(_body(request)).encode()
    answer = await exchange(
        url, "POST", _ROUTES["chat"], key=key, timeout_s=request.timeout_s, most=_MOST_ANSWER, body=body
    )  # fmt: skip
    _refuse_error(answer)
    if len(answer.body) > _MOST_ANSWER:
        raise failure(f"an answer of over {_MOST_ANSWER // 2**20} MiB")
    return completion_of(answer.body.decode(errors="replace"))


def _refuse_error(answer: Answer) -> None:
    if answer.status != _OK:
        raise failure(f"HTTP {answer.status}: {message(answer.body[:_MOST_WORDS])}")
