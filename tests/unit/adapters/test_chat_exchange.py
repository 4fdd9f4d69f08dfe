"""HTTP as servers send it: cut anywhere, chunked or not, and badly."""

from __future__ import annotations

import asyncio
import errno
import json
import resource
import socket
from typing import Any

import pytest

from bundler.adapters.chat_openai import OpenAIChat
from bundler.errors import EngineError
from bundler.ports import ChatRequest, Delta
from tests.unit.adapters.test_chat_openai import (
    DONE,
    END,
    HEAD,
    REQUEST,
    Script,
    event,
    http,
    scripts,
    stream,
    texts,
)  # fmt: skip

__all__ = ["scripts"]
CHUNKED = HEAD.replace(b"Connection: close", b"Transfer-Encoding: chunked")


def chunked(*parts: bytes) -> bytes:
    return b"".join(f"{len(part):X};x=y\r\n".encode() + part + b"\r\n" for part in parts)


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10_000])
def test_an_answer_may_be_cut_anywhere(scripts: list[Script], size: int) -> None:
    data = CHUNKED + chunked(event({"content": "한국"}), event({"content": "어"}) + END)
    steps: list[bytes | float] = []
    for at in range(0, len(data), size):
        steps += [data[at : at + size], 0.0005]
    scripts.append(Script(*steps))
    assert texts(stream(scripts[0].url)) == ["한국", "어"]


def test_a_100_continue_comes_before_the_answer(scripts: list[Script]) -> None:
    scripts.append(
        Script(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD, event({"content": "a"}), 0.01, END)
    )
    assert texts(stream(scripts[0].url)) == ["a"]


def test_as_many_of_them_as_a_server_likes_may_come(scripts: list[Script]) -> None:
    scripts.append(
        Script(b"HTTP/1.1 100 Continue\r\n\r\n" * 2500 + HEAD, event({"content": "a"}), 0.01, END)
    )
    assert texts(stream(scripts[0].url)) == ["a"]


def test_a_host_whose_kernel_has_no_ipv6_is_not_running_rather_than_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = socket.socket

    def without_ipv6(family: int = -1, *of: int, **more: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return made(family, *of, **more)

    with made() as unheard:
        unheard.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unheard.getsockname()[1]}"
        monkeypatch.setattr("bundler.adapters.chat_openai.exchange.socket.socket", without_ipv6)
        assert not OpenAIChat().healthy(url, "/health")
        with pytest.raises(EngineError, match=r"^cannot connect: Connection refused$"):
            stream(url)


def test_a_name_that_nobody_knows_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match=r"^cannot connect: "):
        stream(f"http://{'x' * 70}.invalid:1")  # no label is as long

    def unknown(*of: object, **more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(EngineError, match=r"^cannot connect: Name or service not known$"):
        stream("http://no-such-host.invalid:1")


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999", "http://127.0.0.1:-1", "http://[::1"])
def test_an_address_that_is_none_is_an_error_of_the_engine(url: str) -> None:
    assert not OpenAIChat().healthy(url, "/health")
    with pytest.raises(EngineError, match=r"^cannot connect to http"):
        stream(url)


def test_a_process_that_may_open_no_more_files_gets_an_error_of_the_engine() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def run() -> None:
        async with OpenAIChat().session("http://127.0.0.1:1") as session:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            try:
                await session.listen(REQUEST, lambda delta: None)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    with pytest.raises(EngineError, match=r"^cannot connect: Too many open files$"):
        asyncio.run(run())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "no HTTP from the server: SSH-2.0"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "no HTTP from the server"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, "HTTP head is endless"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", "Content-Length is no number"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", "compresses"),
        (CHUNKED + b"-1\r\nabc", "chunks have no size"),
        (CHUNKED + b"1_0\r\nabc", "chunks have no size"),
        (CHUNKED + b"f" * 2000, "chunks have no size"),
        (http("200 OK", b"x" * 50)[:-10], "closed in the middle"),
    ],
)
def test_what_is_no_http_is_an_error(scripts: list[Script], answer: bytes, said: str) -> None:
    scripts.append(Script(answer))
    with pytest.raises(EngineError, match=said):
        stream(scripts[0].url)


def test_a_server_that_says_nothing_times_out(scripts: list[Script]) -> None:
    scripts.append(Script(30.0))
    hasty = ChatRequest(model="chat", prompt="x", max_tokens=4, timeout_s=0.2)
    with pytest.raises(EngineError, match=r"no whole answer within 0\.2 s"):
        stream(scripts[0].url, hasty)


def listen(url: str, request: ChatRequest, times: int = 1) -> list[Delta]:
    got: list[Delta] = []

    async def run() -> None:
        async with OpenAIChat().session(url) as session:
            for _ in range(times):
                await session.listen(request, got.append)

    asyncio.run(run())
    return got


def test_plain_completions_have_a_prompt_and_text(scripts: list[Script]) -> None:
    said = b'data: {"choices": [{"text": "hi", "finish_reason": "length"}]}\n\n'
    scripts.append(Script(HEAD, said, DONE))
    got = listen(scripts[0].url, _completions())
    head, _, body = scripts[0].asked[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/completions HTTP/1.1")
    assert json.loads(body)["prompt"] == "안녕"
    assert "messages" not in json.loads(body)
    assert texts(got) == ["hi"]


def _completions() -> ChatRequest:
    return ChatRequest(model="chat", prompt="안녕", max_tokens=4, timeout_s=5, api="completions")


@pytest.mark.parametrize(
    "usage",
    [
        {"usage": {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 5}}},
        {"usage": {"prompt_tokens": 9}, "timings": {"cache_n": 5, "prompt_n": 4}},
    ],
)
def test_cached_prompt_tokens_are_read(scripts: list[Script], usage: dict[str, object]) -> None:
    scripts.append(Script(HEAD, event({"content": "a"}), event({}, "length", **usage), DONE))
    assert listen(scripts[0].url, REQUEST)[-1].cached_tokens == 5


def test_a_field_that_the_server_refuses_is_asked_for_once(scripts: list[Script]) -> None:
    scripts.append(Script(http("400 Bad Request", b'{"error": "unknown field"}')))
    with pytest.raises(EngineError, match="HTTP 400: unknown field"):
        listen(scripts[0].url, REQUEST)
    asked = [
        json.loads(one.partition(b"\r\n\r\n")[2])["stream_options"] for one in scripts[0].asked
    ]
    assert asked == [
        {"include_usage": True, "continuous_usage_stats": True}, {"include_usage": True},
    ]  # fmt: skip


def test_chunks_that_differ_in_their_text_alone_are_read_as_any_other(
    scripts: list[Script],
) -> None:
    said = ["a", "b", 'c"d', "e\\f", "\n", "한국", "a", "\x1b", ""]
    parts = [event({"content": text}) for text in said]
    thinks = [event({"reasoning": "a"}), event({"reasoning": "b"})]
    twice = [event({"content": text, "reasoning": text}) for text in "ab"]
    counted = event({"content": "b"}, usage={"completion_tokens": 9, "prompt_tokens": 1})
    ends = event({"content": "z"}, "length")
    scripts.append(Script(HEAD, *parts, *thinks, *parts[:2], *twice, counted, ends, DONE))
    got = stream(scripts[0].url)
    assert texts(got) == [
        *said[:7], "\ufffd", "a", "b", "a", "b", "a", "b", "b", "z",
    ]  # fmt: skip
    assert [one.text for one in got if one.reasoning] == ["a", "b"]
    assert [one.output_tokens for one in got][-2:] == [9, None]
    assert got[-1].finish_reason == "length"


@pytest.mark.parametrize("head", [HEAD, CHUNKED])
def test_chunks_that_differ_in_text_and_numbers_are_read_as_any_other(
    scripts: list[Script], head: bytes
) -> None:
    """As vLLM counts in each chunk and llama.cpp writes the time into each; numbers may be odd, too."""

    def counted(text: str, tokens: object, created: int) -> bytes:
        usage = {"prompt_tokens": 5, "total_tokens": 9, "completion_tokens": tokens}
        return event({"content": text}, created=created, usage=usage)

    parts = [
        counted("a", 1, 1), counted("b", 2, 1_790_000_000), counted("한", 3, 0), counted("d\x7f", 4, 1),
        counted('"', 5, 1), counted("e", -6, 1), counted("f", 7.5, 1), counted("g", 2**40, 1),
        counted("h", 8, 1), counted("i", 9, 1) + counted("j", 10, 2), event({"content": "k"}, "length"),
    ]  # fmt: skip
    steps: list[bytes | float] = [head]
    for part in parts:
        steps += [0.01, chunked(part).replace(b";x=y", b"") if head is CHUNKED else part]
    scripts.append(Script(*steps, chunked(DONE) if head is CHUNKED else DONE))
    got = stream(scripts[0].url)
    assert [(one.text, one.output_tokens) for one in got] == [
        ("a", 1), ("b", 2), ("한", 3), ("d\ufffd", 4), ('"', 5), ("e", None), ("f", None), ("g", None),
        ("h", 8), ("i", 9), ("j", 10), ("k", None),
    ]  # fmt: skip
    assert all(one.input_tokens == 5 for one in got[:-1])
    assert [one.at for one in got] == sorted(one.at for one in got)


def test_a_known_event_in_a_chunk_of_another_size_is_an_error(scripts: list[Script]) -> None:
    one = event({"content": "a"})
    wrong = chunked(one).replace(b";x=y", b"").replace(f"{len(one):X}".encode(), b"FFFF", 1)
    whole = chunked(one).replace(b";x=y", b"")
    scripts.append(Script(CHUNKED, 0.01, whole, 0.01, whole, 0.01, wrong))
    with pytest.raises(EngineError, match="closed in the middle"):
        stream(scripts[0].url)


def test_a_request_larger_than_the_system_takes_at_once_is_sent_whole(
    scripts: list[Script],
) -> None:
    scripts.append(Script(HEAD, event({"content": "a"}), END))
    long = ChatRequest(model="chat", prompt="x" * 8_000_000, max_tokens=4, timeout_s=20)
    assert texts(stream(scripts[0].url, long)) == ["a"]
