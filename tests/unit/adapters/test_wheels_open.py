"""Wheels are looked into where they lie: a real server on loopback, with and without ranges."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.adapters.fetch_http import session, wheels
from bundler.adapters.fetch_http.wheels import WheelArchives
from bundler.domain.hostindex import HostIndex
from bundler.domain.lock import LockedWheel
from bundler.errors import SourceError

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


def shifted(handler: Handler, start: int, end: int) -> bool:
    """As long as was asked for, but from elsewhere, and it says so."""
    if handler.server.requests == 1:
        return False
    data, size = handler.server.data, end + 1 - start
    handler.answer(206, data[1000 : 1000 + size], f"bytes 1000-{999 + size}/{len(data)}")
    return True


def babbling(handler: Handler, start: int, end: int) -> bool:
    body = handler.server.data[start : end + 1]
    handler.answer(206, body, f"bytes {start}-{end}/{'9' * 5000}")
    return True


def cut_without_length(handler: Handler, start: int, end: int) -> bool:
    data = handler.server.data
    handler.send_response(206)
    handler.send_header("ETag", '"1"')
    handler.send_header("Content-Range", f"bytes {start}-{end}/{len(data)}")
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(data[start:end])
    handler.close_connection = True
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
        (shifted, "another range than asked"),
        (babbling, "states no size"),
        (cut_without_length, "the connection ended after"),
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


def test_a_range_that_is_cut_short_is_asked_for_again(big: bytes) -> None:
    def cut_once(handler: Handler, start: int, end: int) -> bool:
        return handler.server.requests in (1, 3) and cut_without_length(handler, start, end)

    with serving(big) as server:
        server.spoil = cut_once
        with reader().open(wheel(server.url)) as archive:
            assert archive.read("big/first.py") == b"FIRST = 1\n"
            assert server.requests == 4


def test_blocks_in_use_stay_and_memory_is_bounded(
    big: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels, "_KEPT_BLOCKS", 3)
    with serving(big) as server:
        file = wheels.RangeFile(session.IndexSession(HostIndex()), server.url)
        for block in (0, 1, 0, 2, 0, 3, 0, 4, 0):
            file.seek(block * wheels._BLOCK)
            assert len(file.read(10)) == 10
        # The end, and each block once: the one that is used again and again was never let go.
        assert server.requests == 6


def test_a_wheel_that_would_be_brought_whole_is_left(
    big: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheels, "_MOST", 2_000_000)
    with serving(big) as server:
        refused = pytest.raises(SourceError, match="to look into one wheel")
        with refused, reader().open(wheel(server.url)) as archive:
            archive.read("big/noise2.bin")
        assert server.sent < 3_000_000


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://[bad]/x.whl", "http://h:99999/x", "self", ""]
)
def test_an_address_that_is_none_is_an_error(url: str) -> None:
    with pytest.raises(SourceError), reader().open(wheel(url)):
        pass


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_packing_that_no_wheel_has_is_refused(tmp_path: Path, packing: int) -> None:
    with zipfile.ZipFile(tmp_path / "odd", "w", packing) as archive:
        archive.writestr("a.py", "A = 1")
    refused = pytest.raises(SourceError, match=r"a\.py is packed as no wheel is")
    with refused, reader(lambda _: tmp_path / "odd").open(wheel("self")):
        pass


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4)
)
def test_a_bent_archive_ends_in_its_members_or_in_one_error(
    changes: list[tuple[int, int]],
) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"f{number}.py", f"x = {number}\n" * 30)
    data = bytearray(buffer.getvalue())
    for at, value in changes:
        data[at % len(data)] = value
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "bent.whl")
        place.write_bytes(data)
        with (
            contextlib.suppress(SourceError),
            reader(lambda _: place).open(wheel("self")) as opened,
        ):
            for name in opened.namelist():
                opened.read(name)


def test_an_error_of_the_code_that_reads_stays_its_own(big: bytes, tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(big)
    with pytest.raises(ZeroDivisionError), reader(lambda _: tmp_path / "blob").open(wheel("self")):
        raise ZeroDivisionError


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
