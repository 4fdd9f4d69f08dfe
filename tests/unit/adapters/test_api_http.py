"""JSON over HTTP: answers, refusals, and servers with bad manners."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bundler.adapters.api_http import HttpApi
from bundler.errors import EngineError
from bundler.instruments import Answered


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    keys: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            keys.append(self.headers.get("Authorization", ""))
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", keys
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def post(url: str, key: str = "") -> Answered:
    async def ask() -> Answered:
        async with HttpApi(lambda _: key).session(url) as session:
            return await session.post("/x", {"a": 1}, 10)

    return asyncio.run(ask())


def test_an_object_comes_back_and_the_key_is_sent() -> None:
    with answering(200, b'{"b": [1]}') as (url, keys):
        assert post(url, "secret") == Answered(200, {"b": [1]})
        post(url)
    assert keys == ["Bearer secret", ""]


@pytest.mark.parametrize(
    ("status", "body", "expected", "message"),
    [
        (400, b'{"error": {"message": "no tools here", "code": 400}}', 400, "no tools here"),
        (422, b'{"detail": [{"msg": "bad"}]}', 422, '[{"msg": "bad"}]'),
        (404, b"", 404, "HTTP 404"),
        (500, b"<h1>oops</h1>", 500, "<h1>oops</h1>"),
        (200, b'{"error": "out of slots"}', 500, "out of slots"),
        (501, b'{"message": "not \\u001b[31mthere\\nyet"}', 501, "not [31mthere yet"),
    ],
)
def test_a_refusal_keeps_the_servers_words_in_one_line(
    status: int, body: bytes, expected: int, message: str
) -> None:
    with answering(status, body) as (url, _):
        assert post(url) == Answered(expected, {}, message)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[1]", "not an object"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'"' + b"x" * (17 * 2**20), "an answer of over 16 MiB"),
    ],
)
def test_what_is_no_answer_is_an_error(body: bytes, words: str) -> None:
    with answering(200, body) as (url, _), pytest.raises(EngineError, match=words) as caught:
        post(url)
    assert len(str(caught.value)) < 300


def test_nobody_there() -> None:
    with answering(200, b"{}") as (url, _):
        pass
    with pytest.raises(EngineError, match="cannot connect: Connection refused"):
        post(url)
