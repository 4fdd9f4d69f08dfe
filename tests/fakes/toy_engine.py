"""A server with llama-server's command line and the OpenAI API, for the closed half's quick tests.

It is installed from a wheel and started as a process like any engine. Switches make it fail as real
engines do: --die-at-start, --die-saying TEXT, --die-on-first-request, --never-healthy, --slow-start, --ignore-sigterm,
--ignores-kv (its KV cache is f16 whatever was asked), --silent (it says nothing of it), --most-at-once N (it refuses a
request while N others are being answered). --logprobs has it give log-probabilities and /metrics. TOY_TOKEN_S: seconds for each token.
"""

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEGAN = time.monotonic()


def option(name, default=None):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


SLOTS = threading.Semaphore(int(option("--most-at-once", 10**6)))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path == "/metrics" and "--logprobs" in sys.argv:
            data = b"llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\n"
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            return
        waiting = "--slow-start" in sys.argv and time.monotonic() - BEGAN < 4
        self.send_response(503 if waiting or "--never-healthy" in sys.argv else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = os.environ.get("LLAMA_API_KEY")
        if key and self.headers.get("Authorization") != f"Bearer {key}":
            self.send_error(401, "Invalid API Key")
            return
        if "--die-on-first-request" in sys.argv:
            print("RuntimeError: Unexpected head dim size, 32", flush=True)
            os._exit(1)
        if body.get("stream"):
            if not SLOTS.acquire(blocking=False):
                time.sleep(0.04)  # about as long as an answer takes, so that it counts as often
                self.send_error(503, "all slots are taken")
                return
            self.stream(body)
            return
        answer = {
            "choices": [{"message": {"content": "pong"}, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1},
        }
        if "--logprobs" in sys.argv and body.get("logprobs"):
            steps = [{"token": t, "logprob": -0.5, "top_logprobs": [{"token": t, "logprob": -0.5}]}
                     for t in body["messages"][0]["content"].split()]  # fmt: skip
            answer["choices"][0]["logprobs"] = {"content": steps}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        prompt = sum(len(m["content"].split()) for m in body["messages"])
        count = body["max_tokens"]
        for number in range(count):
            # Slow enough that the client's own time per request does not count.
            time.sleep(float(os.environ.get("TOY_TOKEN_S", "0.01")))
            last = number == count - 1
            choice = {"delta": {"content": "a "}, "finish_reason": "length" if last else None}
            self.event({"choices": [choice]})
        # Before the client knows that it is over and sends the next one.
        SLOTS.release()
        usage = {"prompt_tokens": prompt, "completion_tokens": count}
        self.event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def event(self, value):
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()


def main():
    if "--die-at-start" in sys.argv:
        print("ValueError: unknown model architecture: 'nope'", flush=True)
        raise SystemExit(1)
    if "--die-saying" in sys.argv:
        print("(EngineCore pid=7) ERROR 12-02 10:00:01 [core.py:866]", option("--die-saying"))
        print("RuntimeError: Engine core initialization failed. See root cause above.", flush=True)
        raise SystemExit(1)
    if "--ignore-sigterm" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not os.path.isfile(option("-m", "")):
        raise SystemExit("no model")
    print(
        "toy engine: proxies", [k for k in os.environ if k.lower().endswith("_proxy")], flush=True
    )
    if "--silent" not in sys.argv:
        kv = "f16" if "--ignores-kv" in sys.argv else option("-ctk", "f16")
        print(f"llama_kv_cache: size =    1.00 MiB (  4096 cells,   2 layers,  8/1 seqs), K ({kv}):"
              f"    0.50 MiB, V ({kv}):    0.50 MiB", flush=True)  # fmt: skip
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer((option("--host"), int(option("--port"))), Handler).serve_forever()
