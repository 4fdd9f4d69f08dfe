"""A root's wheels and models over HTTP, read-only: plain pip, uv and huggingface_hub take them from here.

Index: PEP 503 (HTML) and PEP 691 (JSON). Hub: what huggingface_hub's client asks for: model information, file tree,
`resolve` with ranges, and the error codes in the headers (huggingface_hub/hf_api.py, file_download.py, utils/_http.py).
Only what the shelf lists can be asked for: a request's path is looked up and never joined to a folder.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from html import escape
from urllib.parse import quote

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bundler.domain.shelf import Shelf, ShelfFile, ShelfModel, project_of
from bundler.errors import PortInUseError

_JSON = "application/vnd.pypi.simple.v1+json"
_API_VERSION = "1.0"
_BRANCHES = ("main", "HEAD")
_REPO = r"{repo:[\w][\w.-]*/[\w][\w.-]*}"


def serve_shelf(shelf: Shelf, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        shelf: what there is.
        host: IP address to listen on.
        port: TCP port.
        say: told the addresses once it listens, then a line for each request.

    Raises:
        PortInUseError: it cannot listen there.
    """
    app = web.Application(middlewares=[_telling(say)])
    server = _Server(shelf)
    app.add_routes(
        [
            web.get("/simple/", server.projects),
            web.get("/simple/{project}/", server.project),
            web.get("/files/{sha256}/{name}", server.wheel),
            web.get(f"/api/models/{_REPO}", server.model),
            web.get(f"/api/models/{_REPO}/revision/{{revision:.+}}", server.model),
            web.get(f"/api/models/{_REPO}/tree/{{revision}}", server.tree),
            web.get(f"/{_REPO}/resolve/{{revision}}/{{path:.+}}", server.resolve),
        ]
    )
    app.on_startup.append(_announcing(shelf, host, port, say))
    try:
        web.run_app(app, host=host, port=port, print=None, access_log=None)
    except OSError as cause:
        raise PortInUseError(
            f"port {port} on {host}: cannot be listened on: {cause.strerror}",
            hint="Give another --port.",
        ) from cause


def _announcing(
    shelf: Shelf, host: str, port: int, say: Callable[[str], None]
) -> Callable[[web.Application], Awaitable[None]]:
    async def announce(app: web.Application) -> None:
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        say(f"{len(shelf.wheels)} packages: pip install --index-url {url}/simple/ NAME")
        for repo in shelf.models:
            say(f"HF_ENDPOINT={url} hf download {repo}")

    return announce


def _telling(say: Callable[[str], None]) -> Middleware:
    @web.middleware
    async def tell(request: web.Request, handler: Handler) -> web.StreamResponse:
        status = 500
        try:
            response = await handler(request)
            status = response.status
            return response
        except web.HTTPException as error:
            status = error.status
            raise
        finally:
            say(f"{request.remote} {request.method} {request.path} {status}")

    return tell


class _Server:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._by_digest = {
            (file.sha256, name): file
            for project in shelf.wheels.values()
            for name, file in project.items()
        }

    async def projects(self, request: web.Request) -> web.Response:
        names = sorted(self._shelf.wheels)
        if _wants_json(request):
            return _index({"projects": [{"name": name} for name in names]})
        return _page("Simple index", [(f"/simple/{name}/", name) for name in names])

    async def project(self, request: web.Request) -> web.Response:
        name = request.match_info["project"]
        files = self._shelf.wheels.get(project_of(name.replace("-", "_")))
        if files is None:
            raise web.HTTPNotFound(text=f"{name}: no wheel of it was imported here")
        if _wants_json(request):
            listed = [
                {
                    "filename": wheel,
                    "url": _address(wheel, file),
                    "size": file.size,
                    "hashes": {"sha256": file.sha256},
                }
                for wheel, file in sorted(files.items())
            ]
            return _index({"name": name, "files": listed})
        links = [
            (f"{_address(wheel, file)}#sha256={file.sha256}", wheel)
            for wheel, file in sorted(files.items())
        ]
        return _page(f"Links for {name}", links)

    async def wheel(self, request: web.Request) -> web.StreamResponse:
        file = self._by_digest.get((request.match_info["sha256"], request.match_info["name"]))
        if file is None:
            raise web.HTTPNotFound
        return web.FileResponse(file.path, headers={"Content-Type": "application/octet-stream"})

    async def model(self, request: web.Request) -> web.Response:
        repo, model = self._model(request)
        return web.json_response(
            {
                "_id": model.commit[:24],
                "id": repo,
                "modelId": repo,
                "sha": model.commit,
                "private": False,
                "gated": False,
                "disabled": False,
                "downloads": 0,
                "likes": 0,
                "tags": [],
                "siblings": [
                    {"rfilename": name, "size": file.size}
                    for name, file in sorted(model.files.items())
                ],
            }
        )

    async def tree(self, request: web.Request) -> web.Response:
        _, model = self._model(request)
        return web.json_response(
            [
                {
                    "type": "file",
                    "path": name,
                    "size": file.size,
                    "oid": file.sha256[:40],
                    "lfs": {"oid": file.sha256, "size": file.size, "pointerSize": 134},
                }
                for name, file in sorted(model.files.items())
            ]
        )

    async def resolve(self, request: web.Request) -> web.StreamResponse:
        _, model = self._model(request)
        file = model.files.get(request.match_info["path"])
        known = {"X-Repo-Commit": model.commit}
        if file is None:
            raise web.HTTPNotFound(headers={**known, "X-Error-Code": "EntryNotFound"})
        headers = {
            **known,
            "X-Linked-Etag": f'"{file.sha256}"',
            "X-Linked-Size": str(file.size),
            "Content-Type": "application/octet-stream",
        }
        return web.FileResponse(file.path, headers=headers)

    def _model(self, request: web.Request) -> tuple[str, ShelfModel]:
        repo, revision = request.match_info["repo"], request.match_info.get("revision", "main")
        revisions = self._shelf.models.get(repo)
        if not revisions:
            raise web.HTTPNotFound(headers={"X-Error-Code": "RepoNotFound"})
        if revision in _BRANCHES:
            return repo, revisions[0]
        for model in revisions:
            if model.commit == revision:
                return repo, model
        raise web.HTTPNotFound(headers={"X-Error-Code": "RevisionNotFound"})


def _wants_json(request: web.Request) -> bool:
    return _JSON in request.headers.get("Accept", "")


def _address(wheel: str, file: ShelfFile) -> str:
    return f"/files/{file.sha256}/{quote(wheel)}"


def _index(content: dict[str, object]) -> web.Response:
    text = json.dumps({"meta": {"api-version": _API_VERSION}, **content})
    return web.Response(text=text, content_type=_JSON)


def _page(title: str, links: list[tuple[str, str]]) -> web.Response:
    lines = "\n".join(f'<a href="{escape(to)}">{escape(text)}</a><br>' for to, text in links)
    text = (
        f'<!DOCTYPE html>\n<html><head><meta name="pypi:repository-version" content="{_API_VERSION}">'
        f"<title>{escape(title)}</title></head><body>\n{lines}\n</body></html>\n"
    )
    return web.Response(text=text, content_type="text/html")
