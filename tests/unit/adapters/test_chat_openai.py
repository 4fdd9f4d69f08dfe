from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from bundler.adapters.chat_openai import OpenAIChat
from bundler.errors import EngineError
from bundler.ports import ChatRequest, Delta

REQUEST = ChatRequest(model="chat", prompt="안녕", max_tokens=4, timeout_s=5)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
RESET = "reset"


class Script:
    """A server on loopback that answers every connection with the same bytes, pauses and end."""

    def __init__(self, *steps: bytes | float | str) -> None:
        self.steps = steps
        self.asked: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                if self._stop.is_set():
                    return
                try:
                    self.asked.append(self._read(connection))
                    self._answer(connection)
                except OSError:
                    continue

    @staticmethod
    def _read(connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        lengths = [
            x.split(b":")[1] for x in head.split(b"\r\n") if x.lower().startswith(b"content-length")
        ]
        while lengths and len(body) < int(lengths[0]):
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body

    def _answer(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for step in self.steps:
            if isinstance(step, bytes):
                connection.sendall(step)
            elif step == RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                self._stop.wait(float(step))

    def close(self) -> None:
        self._stop.set()
        socket.create_connection(self._listener.getsockname()).close()
        self._thread.join(5)
        self._listener.close()


@pytest.fixture
def scripts() -> Iterator[list[Script]]:
    made: list[Script] = []
    yield made
    for script in made:
        script.close()


def event(
    delta: dict[str, object] | None = None, finish: str | None = None, **more: object
) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    chunk = json.dumps({"choices": choices, **more}, ensure_ascii=False)
    return f"data: {chunk}\n\n".encode()


USAGE = event(None, usage={"prompt_tokens": 7, "completion_tokens": 4})
DONE = b"data: [DONE]\n\n"
END = event({}, "length") + USAGE + DONE


def http(status: str, body: bytes) -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    ).encode() + body


def stream(url: str, request: ChatRequest = REQUEST) -> list[Delta]:
    async def all_of_it() -> list[Delta]:
        async with OpenAIChat().session(url) as session:
            return [delta async for delta in session.stream(request)]

    return asyncio.run(all_of_it())


def streamed(scripts: list[Script], *steps: bytes | float | str) -> list[Delta]:
    scripts.append(Script(HEAD, *steps))
    return stream(scripts[-1].url)


def texts(deltas: Sequence[Delta]) -> list[str]:
    return [delta.text for delta in deltas if delta.text]


def test_text_finish_reason_and_usage_are_read(scripts: list[Script]) -> None:
    deltas = streamed(scripts, event({"content": "a"}), event({"content": "b"}), END)
    assert texts(deltas) == ["a", "b"]
    assert [d.finish_reason for d in deltas] == ["", "", "length", ""]
    assert (deltas[-1].input_tokens, deltas[-1].output_tokens) == (7, 4)


def test_the_request_asks_for_usage_and_a_fixed_length(scripts: list[Script]) -> None:
    streamed(scripts, event({"content": "a"}), END)
    head, _, body = scripts[0].asked[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1")
    assert json.loads(body) == {
        "model": "chat",
        "messages": [{"role": "user", "content": "안녕"}],
        "max_tokens": 4,
        "temperature": 0.0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }


def test_a_role_only_or_empty_chunk_is_no_token(scripts: list[Script]) -> None:
    role = event({"role": "assistant", "content": ""})
    nothing = event({"content": None}) + event({}) + b": keep-alive\n\n" + b"event: message\n"
    deltas = streamed(scripts, role, 0.15, nothing, event({"content": "a"}), END)
    assert texts(deltas) == ["a"]
    assert len(deltas) == 3


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_counts_as_tokens(scripts: list[Script], name: str) -> None:
    both = {"reasoning": "생각", "reasoning_content": "생각"}
    deltas = streamed(
        scripts, event({name: "음"}), event(dict(both)), event({"content": "답"}), END
    )
    assert texts(deltas) == ["음", "생각", "답"]
    assert [d.reasoning for d in deltas if d.text] == [True, True, False]


def test_arguments_of_tool_calls_count_as_tokens(scripts: list[Script]) -> None:
    named = {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}]}
    piece = {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]}
    assert texts(streamed(scripts, event(named), event(piece), END)) == ['{"a":']


def test_several_events_in_one_read_share_its_time(scripts: list[Script]) -> None:
    deltas = streamed(
        scripts,
        event({"content": "a"}) + event({"content": "b c d"}),
        0.1,
        event({"content": "e"}),
        END,
    )
    first, second, third = [d.at for d in deltas if d.text]
    assert first == second
    assert third - second >= 0.08


def test_times_are_on_the_clock_of_the_clock_port(scripts: list[Script]) -> None:
    before = time.monotonic()
    deltas = streamed(scripts, event({"content": "a"}), END)
    assert before < deltas[0].at < time.monotonic()


def test_korean_split_inside_a_character_arrives_whole(scripts: list[Script]) -> None:
    data = event({"content": "한국어 토큰"})
    cuts = [data[:40], data[40:41], data[41:44], data[44:]]
    steps: list[bytes | float] = []
    for cut in cuts:
        steps += [cut, 0.02]
    assert texts(streamed(scripts, *steps, END)) == ["한국어 토큰"]


def test_lines_may_end_in_carriage_returns_and_lack_the_space(scripts: list[Script]) -> None:
    data = (event({"content": "a"}) + END).replace(b"\n", b"\r\n").replace(b"data: ", b"data:")
    assert texts(streamed(scripts, data)) == ["a"]


def test_usage_may_come_with_the_last_choice_or_not_at_all(scripts: list[Script]) -> None:
    last = event({}, "stop", usage={"prompt_tokens": 3, "completion_tokens": 1})
    deltas = streamed(scripts, event({"content": "a"}), last, DONE)
    assert deltas[-1] == Delta(deltas[-1].at, finish_reason="stop", input_tokens=3, output_tokens=1)
    bare = streamed(scripts, event({"content": "a"}), event({}, "length"), DONE)
    assert [d.output_tokens for d in bare] == [None, None]


def test_a_stream_that_ends_without_reason_and_done_is_an_error(scripts: list[Script]) -> None:
    with pytest.raises(
        EngineError, match=r"broke off without a finish_reason and without \[DONE\]"
    ):
        streamed(scripts, event({"content": "a"}), USAGE)


@pytest.mark.parametrize(("end", "proper"), [(DONE, True), (b"", False)])
def test_an_answer_without_done_is_whole_but_not_properly_ended(
    scripts: list[Script], end: bytes, proper: bool
) -> None:
    scripts.append(Script(HEAD, event({"content": "a"}), event({}, "length"), USAGE, end))

    async def ended() -> bool:
        async with OpenAIChat().session(scripts[0].url) as session:
            return await session.listen(REQUEST, lambda _: None)

    assert asyncio.run(ended()) is proper


def test_a_stream_without_finish_reason_is_an_error(scripts: list[Script]) -> None:
    with pytest.raises(EngineError, match="without a finish_reason"):
        streamed(scripts, event({"content": "a"}), USAGE, DONE)


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_an_answer_that_the_engine_gave_up_is_an_error(scripts: list[Script], reason: str) -> None:
    with pytest.raises(EngineError, match=f"finish_reason {reason}"):
        streamed(scripts, event({"content": "a"}), event({}, reason), DONE)


@pytest.mark.parametrize(
    "data",
    [
        b'data: {"error": {"message": "CUDA out\\nof memory", "code": 500}}\n\n',
        b'error: {"message": "CUDA out of memory"}\n\n',
        b'data: {"error": "CUDA out of memory"}\n\n',
    ],
)
def test_an_error_inside_the_stream_is_told_in_one_line(scripts: list[Script], data: bytes) -> None:
    with pytest.raises(EngineError) as caught:
        streamed(scripts, event({"content": "a"}), data, DONE)
    assert str(caught.value) == "the engine reported: CUDA out of memory"


@pytest.mark.parametrize(
    "data", [b"data: {oops\n\n", b"data: 3\n\n", b'data: {"choices": [1]}\n\n']
)
def test_an_event_that_is_not_a_chunk_is_an_error(scripts: list[Script], data: bytes) -> None:
    with pytest.raises(EngineError):
        streamed(scripts, data, DONE)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "the context\\nis full", "type": "x"}}', "the context is full"),
        (b'{"error": "no such model"}', "no such model"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"object": "error", "message": "too long"}', "too long"),
        (b"<h1>Bad</h1>", "<h1>Bad</h1>"),
        (b"", "(no message)"),
    ],
)
def test_an_http_error_carries_status_and_the_servers_words(
    scripts: list[Script], body: bytes, said: str
) -> None:
    scripts.append(Script(http("500 Internal Server Error", body)))
    with pytest.raises(EngineError) as caught:
        stream(scripts[0].url)
    assert str(caught.value) == f"HTTP 500: {said}"


def test_a_connection_cut_midway_is_an_error(scripts: list[Script]) -> None:
    chunked = HEAD.replace(b"Connection: close", b"Transfer-Encoding: chunked")
    data = event({"content": "a"})
    scripts.append(Script(chunked, f"{len(data):x}\r\n".encode() + data + b"\r\n"))
    with pytest.raises(EngineError, match="the connection broke"):
        stream(scripts[0].url)


def test_a_connection_reset_midway_is_an_error(scripts: list[Script]) -> None:
    with pytest.raises(EngineError, match=r"the connection broke|broke off"):
        streamed(scripts, event({"content": "a"}), 0.05, RESET)


def test_a_server_that_closes_before_answering_is_an_error(scripts: list[Script]) -> None:
    scripts.append(Script())
    with pytest.raises(EngineError, match="the connection broke"):
        stream(scripts[0].url)


def test_nothing_listening_is_an_error(free_port: int) -> None:
    with pytest.raises(EngineError, match="cannot connect: "):
        stream(f"http://127.0.0.1:{free_port}")
    with pytest.raises(EngineError, match="cannot connect: "):
        OpenAIChat().complete(f"http://127.0.0.1:{free_port}", REQUEST)


def test_the_timeout_is_for_the_whole_answer_however_lively_it_is(scripts: list[Script]) -> None:
    drip: list[bytes | float] = []
    for _ in range(30):
        drip += [event({"content": "a"}), 0.05]
    scripts.append(Script(HEAD, *drip, END))
    hasty = ChatRequest(model="chat", prompt="x", max_tokens=4, timeout_s=0.3)
    with pytest.raises(EngineError, match=r"no whole answer within 0\.3 s"):
        stream(scripts[0].url, hasty)


def test_a_proxy_in_the_environment_is_ignored(
    scripts: list[Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert texts(streamed(scripts, event({"content": "a"}), END)) == ["a"]
    assert scripts[0].asked[0].startswith(b"POST /v1/")


def test_health_is_status_200_and_nothing_else(scripts: list[Script], free_port: int) -> None:
    scripts += [Script(http("200 OK", b"{}")), Script(http("503 Loading", b"{}")), Script()]
    chat = OpenAIChat()
    assert [chat.healthy(script.url, "/health") for script in scripts] == [True, False, False]
    assert not chat.healthy(f"http://127.0.0.1:{free_port}", "/health")
    assert scripts[0].asked[0].startswith(b"GET /health ")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"content": "pong"}, "pong"),
        ({"content": None, "reasoning_content": "음"}, "음"),
        ({"content": "", "reasoning": "음"}, "음"),
        ({"content": "a\x1b[31m\n\ud83d\u202e"}, "a\ufffd[31m\n\ufffd\ufffd"),
        ({"content": "pong", "reasoning": 5, "tool_calls": 5}, "pong"),
        (
            {
                "content": "pong",
                "tool_calls": [5, {"function": 5}, {"function": {"arguments": {}}}],
            },
            "pong",
        ),
        ({"content": ["x"], "reasoning": {}, "reasoning_content": "음"}, "음"),
    ],
)
def test_a_completion_gives_its_text(
    scripts: list[Script], message: dict[str, object], said: str
) -> None:
    body = json.dumps({"choices": [{"message": message, "finish_reason": "length"}]}).encode()
    scripts.append(Script(http("200 OK", body)))
    assert OpenAIChat().complete(scripts[0].url, REQUEST) == said
    assert "stream" not in json.loads(scripts[0].asked[0].partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize(
    "body", [b"not json", b'{"choices": []}', b'{"choices": [3]}', b"[]", b"\xff"]
)
def test_a_completion_that_cannot_be_read_is_an_error(scripts: list[Script], body: bytes) -> None:
    scripts.append(Script(http("200 OK", body)))
    with pytest.raises(EngineError):
        OpenAIChat().complete(scripts[0].url, REQUEST)


DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]}, "answered with no text (finish_reason stop)"),
        ({"choices": [{"message": None}]}, "answered with no text (no finish_reason)"),
        ({"choices": [{"message": {"reasoning": 5}, "finish_reason": 5}]}, "answered with no text (no finish_reason)"),
        ({"choices": [{"message": {"reasoning": {}}}]}, "answered with no text (no finish_reason)"),
        ({"choices": [{"message": "x"}]}, "the engine's message is not an object"),
        ({"choices": {"a": 1}}, "the engine's choices are not a list of objects"),
        ({"choices": "abc"}, "the engine's choices are not a list of objects"),
        ({"choices": 5}, "the engine's choices are not a list of objects"),
        ({"choices": None}, "the engine answered without choices"),
        ({"error": {"message": "bo\x1b[2Jom \ud83d"}}, "the engine reported: bo [2Jom"),
    ],
)  # fmt: skip
def test_an_answer_of_another_shape_is_an_error(
    scripts: list[Script], answer: dict[str, object], said: str
) -> None:
    scripts.append(Script(http("200 OK", json.dumps(answer).encode())))
    with pytest.raises(EngineError) as caught:
        OpenAIChat().complete(scripts[0].url, REQUEST)
    assert str(caught.value) == said


def one_short_line(error: BaseException) -> bool:
    text = str(error)
    text.encode()
    return text.isprintable() and len(text) <= 300


@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error"])
@pytest.mark.parametrize("body", [DEEP, b'{"a":' * 50_000, b"x\x1b[31m\r\n" * 1000, b"9" * 5000])
def test_a_hostile_body_is_an_error_in_one_short_line(
    scripts: list[Script], status: str, body: bytes
) -> None:
    scripts.append(Script(http(status, body)))
    with pytest.raises(EngineError) as caught:
        OpenAIChat().complete(scripts[0].url, REQUEST)
    assert one_short_line(caught.value)


@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error"])
def test_an_answer_without_end_is_cut_off(
    scripts: list[Script], status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bundler.adapters.chat_openai.client._MOST_ANSWER", 2**20)
    head = f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n".encode()
    scripts.append(Script(head, *[b"x" * 2**20] * 3, 30.0))
    with pytest.raises(EngineError, match=r"an answer of over 1 MiB|HTTP 500: xxx") as caught:
        OpenAIChat().complete(scripts[0].url, REQUEST)
    assert one_short_line(caught.value)


@pytest.mark.parametrize("data", [b"data: " + b"x" * (2**20 + 1), b"data: x\n" * 2**18])
def test_a_stream_without_end_is_cut_off(
    scripts: list[Script], data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bundler.adapters.chat_openai.client._MOST_ANSWER", 2**20)
    hit = "over 1 MiB|far more than was asked for|not JSON"
    with pytest.raises(EngineError, match=hit):
        streamed(scripts, data, 30.0)


def test_a_stream_is_bounded_as_a_whole(
    scripts: list[Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bundler.adapters.chat_openai.client._MOST_ANSWER", 1000)
    with pytest.raises(EngineError, match="far more than was asked for"):
        streamed(scripts, event({"content": "a"}) * 2000, 30.0)


@pytest.mark.parametrize("usage", ["x", 1.5, [1], True, {}, {"completion_tokens": "4"},
                                   {"completion_tokens": 4.0, "prompt_tokens": -1},
                                   {"completion_tokens": 10**400, "prompt_tokens": True},
                                   {"completion_tokens": {}, "prompt_tokens": None}])  # fmt: skip
def test_usage_that_is_no_count_is_no_usage(scripts: list[Script], usage: object) -> None:
    deltas = streamed(
        scripts, event({"content": "a"}, usage=usage), event({}, "length", usage=usage), DONE
    )
    assert [(d.input_tokens, d.output_tokens) for d in deltas] == [(None, None)] * 2


@pytest.mark.parametrize(
    ("chunk", "said"),
    [
        ({"choices": [{"delta": {}, "finish_reason": 5}]}, "without a finish_reason"),
        ({"choices": [{"delta": {}, "finish_reason": {}}]}, "without a finish_reason"),
        ({"choices": [{"delta": 5}]}, "delta is not an object"),
        ({"choices": {"x": 1}}, "not a list of objects"),
        ({"choices": [None]}, "not a list of objects"),
        ({"error": "\ud83d\u202e\x1bboom " + "x" * 900}, "the engine reported: boom x+$"),
        ({"error": 5}, "the engine reported: 5"),
    ],
)
def test_a_chunk_of_another_shape_is_an_error(
    scripts: list[Script], chunk: object, said: str
) -> None:
    data = f"data: {json.dumps(chunk)}\n\n".encode()
    with pytest.raises(EngineError, match=said) as caught:
        streamed(scripts, data, DONE)
    assert one_short_line(caught.value)


def test_a_deep_event_is_an_error(scripts: list[Script]) -> None:
    for data in (b"data: " + DEEP, b"error: " + DEEP, b'data: {"error": ' + DEEP):
        with pytest.raises(EngineError) as caught:
            streamed(scripts, data + b"\n\n", DONE)
        assert one_short_line(caught.value)


def test_streamed_text_can_be_stored_and_still_counts(scripts: list[Script]) -> None:
    half = b'data: {"choices": [{"delta": {"content": "\\ud83d"}}]}\n\n'
    escape = event({"content": "\x1b"})
    assert texts(streamed(scripts, half, escape, event({"content": "a\nb\tc"}), END)) == [
        "\ufffd", "\ufffd", "a\nb\tc",
    ]  # fmt: skip


def test_a_finish_reason_is_short_and_safe(scripts: list[Script]) -> None:
    deltas = streamed(scripts, event({"content": "a"}, "\x1b" + "x" * 900), DONE)
    assert deltas[-1].finish_reason == "\ufffd" + "x" * 39


def test_a_session_that_is_not_open_refuses() -> None:
    async def early() -> None:
        async for _ in OpenAIChat().session("http://127.0.0.1:1").stream(REQUEST):
            pass

    with pytest.raises(EngineError, match="not open"):
        asyncio.run(early())
