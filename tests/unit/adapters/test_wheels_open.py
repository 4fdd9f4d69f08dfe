"""Wheels are looked into where they lie: a real server on loopback, with and without ranges."""

from __future__ import annotations

import re
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bundler.adapters.fetch_http import session
from bundler.adapters.fetch_http.wheels import WheelArchives
from bundler.domain.lock import LockedWheel
from bundler.errors import SourceError
from bundler.ports import HostIndex

SHA = "0" * 64


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "pause_s", lambda attempt: 0.0)
    monkeypatch.setattr("bundler.adapters.fetch_http.wheels.pause_s", lambda attempt: 0.0)


class Server(ThreadingHTTPServer):
    """Serves one file; `sent` counts its bytes, `spoil` may change an answer."""

    def __init__(self, data: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.data = data
        self.sent = 0
        self.requests = 0
        self.spoil: Callable[[Handler, int, int], bool] = lambda handler, start, end: False

    def handle_error(self, request: object, address: object) -> None:
        """A connection that a test cuts is no news."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/big-1.0-py3-none-any.whl"


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.requests += 1
        data = self.server.data
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        assert match
        start = int(match[1]) if match[1] else max(0, len(data) - int(match[2]))
        end = min(int(match[2]) if match[1] and match[2] else len(data) - 1, len(data) - 1)
        if self.server.spoil(self, start, end):
            return
        self.answer(206, data[start : end + 1], f"bytes {start}-{end}/{len(data)}")

    def answer(self, status: int, body: bytes, content_range: str = "", etag: str = '"1"') -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", etag)
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        self.server.sent += len(body)
        self.wfile.write(body)


@contextmanager
def serving(data: bytes) -> Iterator[Server]:
    server = Server(data)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """20 MB of noise with a small source at its beginning and one at its end."""
    path = tmp_path_factory.mktemp("big") / "big.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("big/first.py", "FIRST = 1\n")
        for at in range(4):
            archive.writestr(f"big/noise{at}.bin", bytes(5_000_000))
        archive.writestr("big/last.py", "LAST = 1\n")
    return path.read_bytes()


def wheel(url: str) -> LockedWheel:
    return LockedWheel(name="big", version="1.0", filename="big-1.0.whl", url=url, sha256=SHA)


def reader(stored: Callable[[str], Path | None] = lambda sha: None) -> WheelArchives:
    return WheelArchives(HostIndex(), stored)


def test_only_what_is_read_is_brought(big: bytes) -> None:
    with serving(big) as server, reader().open(wheel(server.url)) as archive:
        assert archive.read("big/first.py") == b"FIRST = 1\n"
        assert archive.read("big/last.py") == b"LAST = 1\n"
        assert len(archive.namelist()) == 6
        assert server.sent < 1_000_000
        assert server.requests <= 3


def test_a_whole_member_is_right_to_the_byte(big: bytes) -> None:
    with serving(big) as server, reader().open(wheel(server.url)) as archive:
        assert archive.read("big/noise2.bin") == bytes(5_000_000)


def test_a_file_that_is_smaller_than_a_block(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "s", "w") as archive:
        archive.writestr("a.py", "A = 1")
    data = (tmp_path / "s").read_bytes()
    with serving(data) as server, reader().open(wheel(server.url)) as archive:
        assert archive.read("a.py") == b"A = 1"


def test_the_store_is_asked_before_the_index(tmp_path: Path, big: bytes) -> None:
    (tmp_path / "blob").write_bytes(big)
    stored = {SHA: tmp_path / "blob"}
    with reader(stored.get).open(wheel("http://127.0.0.1:9/nowhere.whl")) as archive:
        assert archive.read("big/first.py") == b"FIRST = 1\n"


def test_a_local_wheel_is_read_where_it_lies(tmp_path: Path, big: bytes) -> None:
    place = tmp_path / "with space.whl"
    place.write_bytes(big)
    with reader().open(wheel(place.as_uri())) as archive:
        assert "big/last.py" in archive.namelist()
    with pytest.raises(SourceError, match="no such file"), reader().open(wheel("file:///none.whl")):
        pass


def refuse(handler: Handler, start: int, end: int) -> bool:
    handler.answer(404, b"no")
    return True


def whole(handler: Handler, start: int, end: int) -> bool:
    handler.answer(200, handler.server.data)
    return True


def changed(handler: Handler, start: int, end: int) -> bool:
    if handler.server.requests == 1:
        return False
    total = len(handler.server.data)
    handler.answer(206, handler.server.data[start : end + 1], f"bytes {start}-{end}/{total}", '"2"')
    return True


def endless(handler: Handler, start: int, end: int) -> bool:
    total = len(handler.server.data)
    handler.answer(206, bytes(4_000_000), f"bytes {start}-{end}/{total}")
    return True


def sizeless(handler: Handler, start: int, end: int) -> bool:
    handler.answer(206, handler.server.data[start : end + 1], f"bytes {start}-{end}/*")
    return True


def other(handler: Handler, start: int, end: int) -> bool:
    if handler.server.requests == 1:
        return False
    total = len(handler.server.data)
    handler.answer(
        206, handler.server.data[start : start + 10], f"bytes {start}-{start + 9}/{total}"
    )
    return True


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (refuse, "HTTP 404"),
        (whole, "gives no ranges"),
        (changed, "changed while it was read"),
        (endless, "more than was asked for"),
        (sizeless, "states no size"),
        (other, "another range than asked"),
    ],
)
def test_a_server_that_does_otherwise_is_an_error(
    big: bytes, spoil: Callable[[Handler, int, int], bool], words: str
) -> None:
    with serving(big) as server:
        server.spoil = spoil
        with pytest.raises(SourceError, match=words), reader().open(wheel(server.url)) as archive:
            archive.read("big/first.py")


def test_a_busy_server_and_a_cut_line_are_tried_again(big: bytes) -> None:
    def busy_then_cut(handler: Handler, start: int, end: int) -> bool:
        if handler.server.requests == 1:
            handler.answer(503, b"")
            return True
        if handler.server.requests == 2:
            handler.close_connection = True
            handler.connection.close()
            return True
        return False

    with serving(big) as server:
        server.spoil = busy_then_cut
        with reader().open(wheel(server.url)) as archive:
            assert archive.read("big/first.py") == b"FIRST = 1\n"


def test_no_archive_is_an_error() -> None:
    refused = pytest.raises(SourceError, match="is no wheel")
    with serving(b"<html>" * 100) as server, refused, reader().open(wheel(server.url)):
        pass


def test_credentials_are_in_no_message() -> None:
    with serving(b"x") as server:
        server.spoil = refuse
        url = server.url.replace("http://", "http://user:secret@")
        with pytest.raises(SourceError) as caught, reader().open(wheel(url)):
            pass
    assert "secret" not in str(caught.value)
