#!/usr/bin/env python3
"""A loopback server that speaks Ollama's documented API from Ollama's documented file layout.

It stands in for `ollama serve`, whose program no package registry has. It is strict where the real one is trusting:
a model is served only when manifest, media types, digests and sizes are all right. Documented at
https://github.com/ollama/ollama: docs/api.md, docs/openai.md, docs/faq.mdx, manifest/, types/model/.
"""

import hashlib
import json
import os
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

VERSION = "0.33.0"
MEDIA = "application/vnd.ollama.image."
# The server's variables, as envconfig names them.
ENV = {name: os.environ.get(name, "") for name in (
    "OLLAMA_HOST", "OLLAMA_MODELS", "OLLAMA_KEEP_ALIVE", "OLLAMA_NUM_PARALLEL", "OLLAMA_CONTEXT_LENGTH",
    "OLLAMA_KV_CACHE_TYPE", "OLLAMA_FLASH_ATTENTION", "OLLAMA_NO_CLOUD", "OLLAMA_NOPRUNE",
    "OLLAMA_MAX_LOADED_MODELS", "OLLAMA_MAX_QUEUE", "OLLAMA_LOAD_TIMEOUT", "OLLAMA_NOHISTORY", "OLLAMA_DEBUG",
)}  # fmt: skip
MODELS = Path(ENV["OLLAMA_MODELS"] or Path.home() / ".ollama" / "models")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
LOADED = set()


class RefusedError(Exception):
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def log(level, text, **more):
    extra = "".join(f' {key}="{value}"' for key, value in more.items())
    print(
        f'time=2026-06-01T10:00:00.000Z level={level} source=toy.py:1 msg="{text}"{extra}',
        flush=True,
    )


def blob(layer):
    """A layer's path, after everything that is stated of it was found true."""
    assert set(layer) == {"mediaType", "digest", "size"}, f"a layer with {sorted(layer)}"
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", layer["digest"]), layer["digest"]
    path = MODELS / "blobs" / layer["digest"].replace(":", "-")
    data = path.read_bytes()
    assert len(data) == layer["size"], f"{path.name}: {len(data)} bytes"
    assert hashlib.sha256(data).hexdigest() == layer["digest"][7:], f"{path.name}: digest mismatch"
    return path


def load(model):
    name, _, tag = model.partition(":")
    path = MODELS / "manifests" / "registry.ollama.ai" / "library" / name / (tag or "latest")
    if not NAME.fullmatch(name) or not path.is_file():
        raise RefusedError(404, f'model "{model}" not found, try pulling it first')
    if path in LOADED:
        return
    try:
        manifest = json.loads(path.read_bytes())
        assert set(manifest) == {"schemaVersion", "mediaType", "config", "layers"}, sorted(manifest)
        assert manifest["schemaVersion"] == 2
        assert manifest["mediaType"] == "application/vnd.docker.distribution.manifest.v2+json"
        assert manifest["config"]["mediaType"] == "application/vnd.docker.container.image.v1+json"
        config = json.loads(blob(manifest["config"]).read_bytes())
        assert config["model_format"] == "gguf"
        assert isinstance(config["model_families"], list)
        params, weights = {}, []
        for layer in manifest["layers"]:
            kind = layer["mediaType"].removeprefix(MEDIA)
            data = blob(layer)
            if kind == "model":
                weights.append(data)
            elif kind == "params":
                params = json.loads(data.read_bytes())
            else:
                assert kind in ("template", "system", "license", "projector"), layer["mediaType"]
        assert len(weights) == 1, f"{len(weights)} model layers"
        with weights[0].open("rb") as file:
            assert file.read(4) == b"GGUF", "invalid magic"
    except (AssertionError, OSError, ValueError, KeyError) as error:
        log("ERROR", "error loading llama server", error=f"failed to load model: {error}")
        raise RefusedError(500, f"failed to load model: {error}") from error
    slots = int(ENV["OLLAMA_NUM_PARALLEL"] or 1)
    context = int(params.get("num_ctx") or ENV["OLLAMA_CONTEXT_LENGTH"] or 4096)
    flash = ENV["OLLAMA_FLASH_ATTENTION"] == "1"
    kv = ENV["OLLAMA_KV_CACHE_TYPE"]
    if kv in ("q8_0", "q4_0") and not flash:
        log(
            "WARN", "OLLAMA_FLASH_ATTENTION must be enabled to use a quantized OLLAMA_KV_CACHE_TYPE"
        )
        kv = ""
    request = (
        f"{{Operation:commit LoraPath:[] Parallel:{slots} BatchSize:512 FlashAttention:"
        f"{'Enabled' if flash else 'Disabled'} KvSize:{context * slots} KvCacheType:{kv} NumThreads:2 GPULayers:[]"
        " MultiUserCache:false ProjectorPath: MainGPU:0 UseMmap:false}"
    )
    print(
        f'time=2026-06-01T10:00:00.000Z level=INFO source=runner.go:1 msg=load request="{request}"',
        flush=True,
    )
    log("INFO", "llama runner started in 0.05 seconds")
    LOADED.add(path)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, value, status=200):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/":
            self.answer(b"Ollama is running")
        elif self.path == "/api/version":
            self.answer({"version": VERSION})
        elif self.path == "/api/tags":
            found = sorted(MODELS.glob("manifests/*/*/*/*"))
            self.answer({"models": [{"name": f"{p.parent.name}:{p.name}"} for p in found]})
        else:
            self.answer(b"404 page not found", 404)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self.answer(b"404 page not found", 404)
            return
        try:
            load(body["model"])
        except RefusedError as refused:
            self.answer({"error": {"message": str(refused), "type": "api_error"}}, refused.status)
            return
        if body.get("stream"):
            self.stream(body)
            return
        self.answer({
            "object": "chat.completion", "model": body["model"],
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "pong"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        })  # fmt: skip

    def stream(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        prompt = sum(len(message["content"].split()) for message in body["messages"])
        count = body["max_tokens"]
        for number in range(count):
            # Slow enough that the client's own time per request does not count.
            time.sleep(0.01)
            last = number == count - 1
            choice = {"index": 0, "delta": {"role": "assistant", "content": "a "},
                      "finish_reason": "length" if last else None}  # fmt: skip
            self.event(
                {"object": "chat.completion.chunk", "model": body["model"], "choices": [choice]}
            )
        if (body.get("stream_options") or {}).get("include_usage"):
            self.event(
                {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": count}}
            )
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def event(self, value):
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()


def main():
    if sys.argv[1:] != ["serve"]:
        raise SystemExit(f"Error: unknown command {' '.join(sys.argv[1:])!r} for ollama")
    libraries = Path(__file__).resolve().parent.parent / "lib" / "ollama"
    for name in ("llama-server", "libtoy.so.1", "copy.txt"):
        if not (libraries / name).is_file():
            raise SystemExit(f"Error: {name} not found in {libraries}")
    if not os.access(libraries / "llama-server", os.X_OK):
        raise SystemExit("Error: llama-server cannot be run")
    server_json = Path.home() / ".ollama" / "server.json"
    config = json.loads(server_json.read_bytes()) if server_json.is_file() else {}
    disabled = ENV["OLLAMA_NO_CLOUD"] == "1" and config.get("disable_ollama_cloud") is True
    proxies = [name for name in os.environ if name.lower().endswith("_proxy")]
    log(
        "INFO",
        "server config",
        env=" ".join(f"{name}:{value}" for name, value in ENV.items()),
        proxies=proxies,
    )
    log("INFO", f"Ollama cloud disabled: {str(disabled).lower()}")
    host, _, port = (ENV["OLLAMA_HOST"] or "127.0.0.1:11434").rpartition(":")
    ThreadingHTTPServer.daemon_threads = True
    server = ThreadingHTTPServer((host.strip("[]"), int(port)), Handler)
    log("INFO", f"Listening on {host}:{port} (version {VERSION})")
    server.serve_forever()


if __name__ == "__main__":
    main()
