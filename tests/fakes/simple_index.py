"""A package index on loopback: the simple API as JSON (PEP 691), files with sizes and upload times."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

UPLOADED = "2026-01-02T03:04:05.000000Z"


class SimpleIndex:
    """Serves every file of `folder`; `asked` lists the projects whose page was fetched."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.asked: list[str] = []
        self.uploaded: dict[str, str] = {}
        self.stated_sha256: str | None = "true"

    def page(self, project: str) -> bytes | None:
        files = [
            self._file(path)
            for path in sorted(self.folder.iterdir())
            if path.name.split("-")[0].replace("_", "-").lower() == project
        ]
        if not files:
            return None
        document = {"meta": {"api-version": "1.1"}, "name": project, "versions": [], "files": files}
        return json.dumps(document).encode()

    def _file(self, path: Path) -> dict[str, Any]:
        data = path.read_bytes()
        sha256 = self.stated_sha256
        if sha256 == "true":
            sha256 = hashlib.sha256(data).hexdigest()
        return {
            "filename": path.name,
            "url": f"{self.url.removesuffix('/simple')}/files/{path.name}",
            "hashes": {} if sha256 is None else {"sha256": sha256},
            "size": len(data),
            "upload-time": self.uploaded.get(path.name, UPLOADED),
        }


@contextmanager
def serving(folder: Path) -> Iterator[SimpleIndex]:
    """Serve `folder` until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, _, rest = self.path.strip("/").partition("/")
            body: bytes | None = None
            if kind == "simple":
                index.asked.append(rest)
                body = index.page(rest)
            elif kind == "files" and (folder / rest).is_file():
                body = (folder / rest).read_bytes()
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json"
                             if kind == "simple" else "application/octet-stream")  # fmt: skip
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def do_HEAD(self) -> None:
            self.send_response(405)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index = SimpleIndex(folder, f"http://127.0.0.1:{server.server_address[1]}/simple")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
