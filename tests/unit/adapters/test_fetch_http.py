"""Downloads over a real loopback server: resume, broken lines, errors."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bundler.adapters.fetch_http.download import HttpDownloader
from bundler.domain.hostindex import HostIndex
from bundler.errors import SourceError
from tests.fakes.ports import Count

DATA = bytes(range(256)) * 4000


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.log: list[tuple[str, str | None, str | None]] = []
        self.cuts: list[int] = []
        self.busy = 0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.log.append((self.path, wanted, self.headers.get("Authorization")))
        if self.path == "/missing":
            self.send_error(404)
            return
        if self.server.busy:
            self.server.busy -= 1
            self.send_error(503)
            return
        start = int(wanted.split("=")[1].rstrip("-")) if wanted and self.path != "/norange" else 0
        if start >= len(DATA):
            self.send_error(416)
            return
        body = DATA[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.cuts:
            self.wfile.write(body[: self.server.cuts.pop(0)])
            self.wfile.flush()
            self.connection.close()
            return
        self.wfile.write(body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with Server() as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.shutdown()


def url(server: Server, path: str = "/x") -> str:
    return f"http://127.0.0.1:{server.server_address[1]}{path}"


def test_a_whole_file(server: Server, tmp_path: Path) -> None:
    count = Count()
    HttpDownloader(HostIndex()).download(url(server), tmp_path / "f", count)
    assert (tmp_path / "f").read_bytes() == DATA
    assert count.total == len(DATA)


def test_a_partial_file_is_continued_from_its_end(server: Server, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(DATA[:1000])
    HttpDownloader(HostIndex()).download(url(server), tmp_path / "f", Count())
    assert (tmp_path / "f").read_bytes() == DATA
    assert server.log == [("/x", "bytes=1000-", None)]


def test_a_connection_that_breaks_is_taken_up_where_it_broke(
    server: Server, tmp_path: Path
) -> None:
    server.cuts = [5000, 7000]
    HttpDownloader(HostIndex()).download(url(server), tmp_path / "f", Count())
    assert (tmp_path / "f").read_bytes() == DATA
    assert [entry[1] for entry in server.log] == [None, "bytes=5000-", "bytes=12000-"]


def test_a_server_without_ranges_starts_over(server: Server, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"stale")
    HttpDownloader(HostIndex()).download(url(server, "/norange"), tmp_path / "f", Count())
    assert (tmp_path / "f").read_bytes() == DATA


def test_a_complete_file_is_left_to_the_digest(server: Server, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(DATA)
    HttpDownloader(HostIndex()).download(url(server), tmp_path / "f", Count())
    assert (tmp_path / "f").read_bytes() == DATA


def test_a_busy_server_is_asked_again_and_then_named(server: Server, tmp_path: Path) -> None:
    server.busy = 2
    HttpDownloader(HostIndex()).download(url(server), tmp_path / "f", Count())
    server.busy = 99
    with pytest.raises(SourceError, match="busy"):
        HttpDownloader(HostIndex()).download(url(server), tmp_path / "g", Count())


def test_a_missing_file_is_one_line(server: Server, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"/missing: HTTP 404"):
        HttpDownloader(HostIndex()).download(url(server, "/missing"), tmp_path / "f", Count())
    assert len(server.log) == 1


def test_credentials_of_an_index_go_to_its_host_and_stay_out_of_messages(
    server: Server, tmp_path: Path
) -> None:
    port = server.server_address[1]
    index = HostIndex(extra_indexes=(f"http://me:se%40cret@127.0.0.1:{port}/simple",))
    HttpDownloader(index).download(url(server), tmp_path / "f", Count())
    assert server.log[0][2] == "Basic bWU6c2VAY3JldA=="
    with pytest.raises(SourceError) as caught:
        HttpDownloader(HostIndex()).download(
            f"http://me:secret@127.0.0.1:{port}/missing", tmp_path / "g", Count()
        )
    assert "secret" not in str(caught.value)


def test_an_unreachable_server_is_one_line(
    tmp_path: Path, free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    with pytest.raises(SourceError, match=f"127.0.0.1:{free_port}"):
        HttpDownloader(HostIndex()).download(
            f"http://127.0.0.1:{free_port}/x", tmp_path / "f", Count()
        )


def test_a_file_address_is_copied(tmp_path: Path) -> None:
    (tmp_path / "a b").write_bytes(DATA)
    (tmp_path / "f").write_bytes(DATA[:10])
    HttpDownloader(HostIndex()).download((tmp_path / "a b").as_uri(), tmp_path / "f", Count())
    assert (tmp_path / "f").read_bytes() == DATA
    with pytest.raises(SourceError, match="no such file"):
        HttpDownloader(HostIndex()).download((tmp_path / "no").as_uri(), tmp_path / "g", Count())


def test_what_is_no_address_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is no address"):
        HttpDownloader(HostIndex()).download("http://[bad", tmp_path / "f", Count())
