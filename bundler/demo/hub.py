"""A model hub on this machine's loopback: folders, served as the public Hub serves repositories.

With it the demo and the tests use the real client library without a network.    root/<owner>/<name>/<files>      one repository with one branch, `main`
What it knows of the protocol is what the client library sends and reads: model information, file
tree, `resolve` with ranges, and the error codes in the headers.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import yaml

from bundler.format.digests import git_blob_sha1, read_chunks, sha256_file, sha256_hex

BRANCH = "main"
_OTHER_BYTES = bytes(range(255, -1, -1))
_LFS_FROM = 1024
_LFS_SUFFIXES = {".safetensors", ".gguf", ".bin"}
_REPO = r"(?P<repo>\w[\w.-]*/\w[\w.-]*)"
_ROUTES = {
    "info": re.compile(rf"^/api/models/{_REPO}(?:/revision/(?P<rev>[^/]+))?$"),
    "access": re.compile(rf"^/api/models/{_REPO}/auth-check$"),
    "tree": re.compile(rf"^/api/models/{_REPO}/tree/(?P<rev>[^/]+)(?:/(?P<path>.+))?$"),
    "file": re.compile(rf"^/{_REPO}/resolve/(?P<rev>[^/]+)/(?P<path>.+)$"),
}


@dataclass
class Fault:
    """Something that goes wrong with the next GET requests for a path.

    Args:
        path: how the request's path ends.
        status: answer with this HTTP status.
        cut_after: close the connection after this many bytes of the body.
        wrong_bytes: send as many bytes as promised, but others.
        no_ranges: answer a range with the whole file, as some proxies do.
        shifted: answer a range with one that begins so many bytes later.
        times: how often, then the fault is over.
    """

    path: str
    status: int | None = None
    cut_after: int | None = None
    wrong_bytes: bool = False
    no_ranges: bool = False
    shifted: int = 0
    times: int = 1


@dataclass
class Request:
    """One request: `range` is its header, `sent` the bytes of the answer's body."""

    method: str
    path: str
    range: str | None = None
    sent: int = 0


@dataclass(frozen=True)
class HubFile:
    """A file as the Hub describes it. Only files in LFS have a `sha256`."""

    path: str
    disk: Path
    size: int
    oid: str
    sha256: str | None

    @property
    def etag(self) -> str:
        """What identifies the content."""
        return self.sha256 or self.oid

    def lfs(self, digest_key: str) -> dict[str, Any]:
        """The LFS part of a description; two interfaces name the digest differently."""
        if self.sha256 is None:
            return {}
        return {"lfs": {digest_key: self.sha256, "size": self.size, "pointerSize": 134}}


class LoopbackHub:
    """Serves repositories while the `with` block runs; gives the base address.

    Args:
        root: folder of the repositories.
        tokens: for each gated repository the bearer token that opens it.
        page: entries on one page of the tree.
        xet: say of every file in LFS that it is to be had in the chunk protocol as well, and refuse
            the token for it: there is no chunk server here.
    """

    def __init__(
        self,
        root: Path,
        *,
        tokens: Mapping[str, str] | None = None,
        page: int = 1000,
        xet: bool = False,
    ) -> None:
        self.root = root
        self.tokens = dict(tokens or {})
        self.page = page
        self.xet = xet
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> str:
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        # A short poll keeps the end of the block quick.
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *exc: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def files(self, repo: str) -> list[HubFile] | None:
        """The files of a repository, sorted; None when there is no such repository."""
        folder = self.root / repo
        if not folder.is_dir():
            return None
        found = [(path, path.stat()) for path in folder.rglob("*") if path.is_file()]
        files = (_describe(folder, path, at.st_size, at.st_mtime_ns) for path, at in found)
        return sorted(files, key=lambda file: file.path)

    def commit(self, repo: str) -> str:
        """The commit of `main`: made from the content, so that equal folders have equal commits."""
        listing = [(file.path, file.etag) for file in self.files(repo) or ()]
        return sha256_hex(json.dumps([repo, listing]).encode())[:40]

    def fault_for(self, path: str) -> Fault:
        """Use up one turn of the first fault that applies; a fault that does nothing otherwise."""
        with self._lock:
            for fault in self.faults:
                if fault.times > 0 and path.endswith(fault.path):
                    fault.times -= 1
                    return fault
        return Fault(path)


@lru_cache(4096)
def _describe(folder: Path, disk: Path, size: int, changed_ns: int) -> HubFile:
    """Hashed once for each state of the file that `changed_ns` tells apart."""
    large = size >= _LFS_FROM or disk.suffix in _LFS_SUFFIXES
    sha256 = sha256_file(disk) if large else None
    # In LFS the id is that of the pointer file; any id will do for it.
    oid = sha256[:40] if sha256 else git_blob_sha1(disk)
    return HubFile(disk.relative_to(folder).as_posix(), disk, size, oid, sha256)


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal: `requests` is the log."""

    def do_GET(self) -> None:
        """Answer one request."""
        parts = urlsplit(self.path)
        path = unquote(parts.path)
        self._entry = Request(self.command, path, self.headers.get("Range"))
        self.hub.requests.append(self._entry)
        self._fault = self.hub.fault_for(path) if self.command == "GET" else Fault(path)
        if self._fault.status is not None:
            self._refuse(self._fault.status)
            return
        for name, route in _ROUTES.items():
            # Matched before unquoting: the client quotes the `/` of a branch name, not of a path.
            match = route.match(parts.path)
            if match:
                asked = {key: unquote(value or "") for key, value in match.groupdict().items()}
                self._route(name, asked, parse_qs(parts.query))
                return
        self._refuse(404)

    do_HEAD = do_GET  # noqa: N815 - the standard library's name

    def _route(self, name: str, asked: dict[str, str], query: dict[str, list[str]]) -> None:
        repo = asked["repo"]
        files = self.hub.files(repo)
        token = self.hub.tokens.get(repo)
        sent = self.headers.get("Authorization")
        commit = self.hub.commit(repo)
        if files is None:
            # The Hub does not tell a stranger what exists.
            self._refuse(404 if sent else 401, "RepoNotFound", "Repository not found")
        elif asked.get("rev", "") not in ("", BRANCH, commit):
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {asked['rev']}")
        elif name in ("access", "file") and token and sent != f"Bearer {token}":
            # Descriptions of gated repositories are public, their files are not.
            self._refuse(403 if sent else 401, "GatedRepo", f"Access to {repo} is restricted")
        elif name == "access":
            self._json({})
        elif name == "info":
            self._json(_info(repo, commit, files, bool(token), "blobs" in query))
        elif name == "tree":
            recursive = query.get("recursive", [""])[0].lower() in ("true", "1")
            self._tree(_tree(files, asked["path"], recursive), query)
        else:
            self._file(next((file for file in files if file.path == asked["path"]), None), commit)

    def _tree(self, entries: list[dict[str, Any]], query: dict[str, list[str]]) -> None:
        start = int(query.get("cursor", ["0"])[0])
        end = start + self.hub.page
        headers = {}
        if end < len(entries):
            following = urlencode({**query, "cursor": [end]}, doseq=True)
            address = f"http://{self.headers['Host']}{urlsplit(self.path).path}?{following}"
            headers["Link"] = f'<{address}>; rel="next"'
        self._json(entries[start:end], headers)

    def _file(self, file: HubFile | None, commit: str) -> None:
        if file is None:
            self._refuse(404, "EntryNotFound", "Entry not found")
            return
        headers = {"X-Repo-Commit": commit, "ETag": f'"{file.etag}"', "Accept-Ranges": "bytes"}
        if file.sha256:
            headers |= {"X-Linked-Etag": f'"{file.sha256}"', "X-Linked-Size": str(file.size)}
            if self.hub.xet:
                route = urlsplit(self.path).path.partition("/resolve/")[0]
                address = f"http://{self.headers['Host']}/api/models{route}/xet-read-token/{commit}"
                headers |= {"X-Xet-Hash": file.sha256, "X-Xet-Refresh-Route": address}
        start, end, status = 0, file.size, 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self._entry.range or "")
        if asked and not self._fault.no_ranges:
            start = int(asked[1]) + self._fault.shifted
            end = min(int(asked[2]) + 1, file.size) if asked[2] else file.size
            if start >= end:
                self._refuse(416)
                return
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{file.size}"
            status = 206
        self._begin(status, end - start, headers)
        if self.command == "GET":
            self._send(file.disk, start, end - start)

    def _send(self, disk: Path, start: int, size: int) -> None:
        cut = self._fault.cut_after
        for chunk in read_chunks(disk, start, size if cut is None else min(cut, size)):
            # Counted before it is on the way, so that whoever has the last byte finds all counted.
            self._entry.sent += len(chunk)
            body = chunk.translate(_OTHER_BYTES) if self._fault.wrong_bytes else chunk
            try:
                self.wfile.write(body)
            except ConnectionError:
                return

    def _json(self, value: object, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        body = json.dumps(value).encode()
        self._begin(200, len(body), {"Content-Type": "application/json", **headers})
        if self.command == "GET":
            self._entry.sent += len(body)
            self.wfile.write(body)

    def _refuse(self, status: int, code: str = "", text: str = "") -> None:
        self._begin(status, 0, {"X-Error-Code": code, "X-Error-Message": text} if code else {})

    def _begin(self, status: int, size: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(size)}.items():
            self.send_header(key, value)
        self.end_headers()


def _info(repo: str, commit: str, files: list[HubFile], gated: bool, blobs: bool) -> dict[str, Any]:
    def sibling(file: HubFile) -> dict[str, Any]:
        details = {"size": file.size, "blobId": file.oid, **file.lfs("sha256")}
        return {"rfilename": file.path, **(details if blobs else {})}

    card = next((file.disk for file in files if file.path == "README.md"), None)
    return {
        "id": repo,
        "sha": commit,
        "gated": "manual" if gated else False,
        "cardData": _front_matter(card.read_text()) if card else {},
        "siblings": list(map(sibling, files)),
    }


def _front_matter(card: str) -> dict[str, Any]:
    match = re.match(r"---\n(.*?\n)---", card, re.DOTALL)
    data = yaml.safe_load(match[1]) if match else None
    return data if isinstance(data, dict) else {}


def _tree(files: list[HubFile], below: str, recursive: bool) -> list[dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = {}
    prefix = f"{below}/" if below else ""
    for file in (file for file in files if file.path.startswith(prefix)):
        parts = file.path[len(prefix) :].split("/")
        for depth in range(1, len(parts) if recursive else min(len(parts), 2)):
            folder = prefix + "/".join(parts[:depth])
            entries[folder] = {"type": "directory", "path": folder, "oid": "0" * 40, "size": 0}
        if recursive or len(parts) == 1:
            details = {"oid": file.oid, "size": file.size, **file.lfs("oid")}
            entries[file.path] = {"type": "file", "path": file.path, **details}
    return [entries[path] for path in sorted(entries)]
