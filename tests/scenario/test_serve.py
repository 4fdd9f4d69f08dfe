"""A root's store over HTTP, taken by the real pip, uv and huggingface_hub."""

import hashlib
import http.client
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bundler.deploy.root import Root
from bundler.wiring import uv_program

pytestmark = pytest.mark.slow


@contextmanager
def served(here: Any, port: int) -> Iterator[str]:
    argv = [sys.executable, "-m", "bundler", "serve", "--root", str(here.root), "--port", str(port)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as server:
        try:
            for _ in range(100):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/simple/").close()
                    break
                except urllib.error.URLError:
                    assert server.poll() is None, server.communicate()
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.communicate(timeout=10)
    assert server.returncode == 0


def clean() -> dict[str, str]:
    """No configuration of this host reaches the clients."""
    left_out = ("PIP_", "UV_", "HF_", "HUGGING")
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(left_out) and not name.lower().endswith("_proxy")
    }
    return {**env, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}


def test_pip_and_uv_take_wheels_from_it(site: Any, free_port: int, tmp_path: Path) -> None:
    here = site()
    here.bring()
    with served(here, free_port) as url:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--index-url", f"{url}/simple/", "--no-cache-dir",
             "--dest", str(tmp_path / "pip"), "Toy.Engine"],
            env=clean(), capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert len(list((tmp_path / "pip").glob("*.whl"))) == 2  # with its dependency
        done = subprocess.run(
            [uv_program(), "pip", "install", "--index-url", f"{url}/simple/", "--no-cache",
             "--target", str(tmp_path / "uv"), "toy-engine"],
            env=clean(), capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "uv" / "toy_dependency.py").is_file()


FETCH = """
import sys
from huggingface_hub import hf_hub_download, snapshot_download
print(snapshot_download("local/toy", cache_dir=sys.argv[1]))
print(hf_hub_download("local/toy", "toy.gguf", cache_dir=sys.argv[1]))
"""


def test_huggingface_hub_takes_models_from_it(site: Any, free_port: int, tmp_path: Path) -> None:
    here = site()
    here.bring()
    with served(here, free_port) as url:
        done = subprocess.run(
            [sys.executable, "-c", FETCH, str(tmp_path / "cache")],
            env={**clean(), "HF_ENDPOINT": url, "HF_HUB_DISABLE_XET": "1"},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.splitlines()[0])
    wanted = here.small.folder / "model"
    for path in wanted.iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes()


def get(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def test_ranges_revisions_and_what_is_not_there(site: Any, free_port: int) -> None:
    here = site()
    here.bring()
    data = (here.small.folder / "model" / "toy.gguf").read_bytes()
    with served(here, free_port) as url:
        _, _, body = get(f"{url}/api/models/local/toy")
        commit = json.loads(body)["sha"]
        file = f"{url}/local/toy/resolve/{commit}/toy.gguf"
        status, headers, body = get(file, Range="bytes=100-199")
        assert (status, body) == (206, data[100:200])
        assert headers["X-Repo-Commit"] == commit
        assert headers["X-Linked-Etag"].strip('"') == hashlib.sha256(data).hexdigest()
        for path, code in (
            ("/local/toy/resolve/main/none.bin", "EntryNotFound"),
            ("/local/toy/resolve/other/toy.gguf", "RevisionNotFound"),
            ("/api/models/local/none", "RepoNotFound"),
        ):
            status, headers, _ = get(url + path)
            assert (status, headers["X-Error-Code"]) == (404, code)
        json_form = "application/vnd.pypi.simple.v1+json"
        _, headers, body = get(f"{url}/simple/toy-engine/", Accept=json_form)
        assert headers["Content-Type"].startswith(json_form)
        [wheel] = json.loads(body)["files"]
        assert hashlib.sha256(get(url + wheel["url"])[2]).hexdigest() == wheel["hashes"]["sha256"]


def ask(port: int, method: str, path: str) -> int:
    """As written: urllib would tidy the path."""
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request(method, path)
        with connection.getresponse() as answer:
            return answer.status


@pytest.mark.parametrize(
    "path",
    [
        "/../../../etc/passwd",
        "/local/toy/resolve/main/../../../../etc/passwd",
        "/local/toy/resolve/main/%2e%2e/%2e%2e/manifest.json",
        "/files/{0}/..%2f..%2fmanifest.json",
        "/simple/..%2f..%2f/",
        "/files/x/y",
    ],
)
def test_nothing_but_what_the_shelf_lists(site: Any, free_port: int, path: str) -> None:
    here = site()
    here.bring()
    with served(here, free_port):
        assert ask(free_port, "GET", path.replace("{0}", "a" * 64)) in (400, 404)
        assert ask(free_port, "PUT", "/simple/") == 405


def test_what_is_not_wholly_there_is_not_served(site: Any) -> None:
    here = site()
    here.bring()
    stored = next(path for path in Root(here.root).path.glob("store/??/*") if path.is_file())
    stored.unlink()
    said = here.do("serve", code=17)
    assert "not served: small" in said
    assert "no bundle that may be served" in said
