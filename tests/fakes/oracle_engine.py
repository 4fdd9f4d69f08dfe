"""A deterministic server with the OpenAI API, vLLM's or llama.cpp's further routes, and ways to be wrong.

It runs in a thread of the test on a port of its own. `modes` are switched on and off while it runs:
wrong-under-load, drift-under-load (right tokens, other probabilities), garbage, bang ('!!!!' under load), nan,
bad-json, no-logprobs, no-tools, no-likelihood, no-thought-end, lost-needle, failing, english.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = [
    "the",
    "server",
    "was",
    "checked",
    "and",
    "every",
    "box",
    "had",
    "been",
    "counted",
    "before",
    "the",
    "team",
    "went",
    "home",
]
KOREAN = (
    "재택근무의 장점은 출퇴근 시간이 들지 않고 집중하기 쉽다는 점입니다. 단점은 동료와 바로 의논하기 어렵고"
    " 일과 생활의 경계가 흐려진다는 점입니다."
)


class Oracle:
    """State and answers."""

    def __init__(self, like: str = "vllm") -> None:
        self.like = like
        self.modes: set[str] = set()
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.streaming = 0
        self.most_streaming = 0
        self.lock = threading.Lock()
        self.url = ""

    @property
    def loaded(self) -> bool:
        return self.streaming > 0

    def token(self, prompt: str, place: int) -> tuple[str, float]:
        seed = hashlib.sha256(f"{prompt}/{place}".encode()).digest()
        return WORDS[seed[0] % len(WORDS)] + " ", -0.1 - seed[1] / 500

    def steps(self, prompt: str, count: int) -> list[dict[str, Any]]:
        found = []
        for place in range(count):
            token, logprob = self.token(prompt, place)
            if self.loaded and "drift-under-load" in self.modes:
                logprob -= 0.6
            if self.loaded and "wrong-under-load" in self.modes and place == 5:
                token = "wrong "
            if "garbage" in self.modes or (self.loaded and "bang" in self.modes):
                token = "!"
            top = [{"token": token, "logprob": logprob}]
            top += [{"token": f"other{n} ", "logprob": logprob - n} for n in range(1, 5)]
            value = float("nan") if "nan" in self.modes else logprob
            found.append({"token": token, "logprob": value, "top_logprobs": top})
        return found

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt = body["messages"][0]["content"]
        count = body["max_tokens"]
        steps = self.steps(prompt, min(count, 48))
        message: dict[str, Any] = {"content": "".join(step["token"] for step in steps)}
        finish = "length"
        code = re.search(r"northern archive is (\d+-\d+)", prompt)
        if "no-thought-end" in self.modes and not body.get("logprobs"):
            message = {"content": None, "reasoning": "hmm " * 40}
        elif "tools" in body:
            message, finish = self.call(), "tool_calls"
        elif "response_format" in body:
            good = {"priority": "high", "floor": 7, "urgent": True}
            text = '{"priority": "urgent!"}' if "bad-json" in self.modes else json.dumps(good)
            message, finish = {"content": text}, "stop"
        elif code:
            lost = "lost-needle" in self.modes
            message, finish = {"content": "I do not know." if lost else code[1]}, "stop"
        elif "재택근무" in prompt:
            english = "Working from home saves time but makes it harder to talk to colleagues."
            message, finish = {"content": english if "english" in self.modes else KOREAN}, "stop"
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish}
        if body.get("logprobs") and "no-logprobs" not in self.modes:
            choice["logprobs"] = {"content": steps}
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(steps)}
        return {"choices": [choice], "usage": usage}

    def call(self) -> dict[str, Any]:
        arguments = '{"item": "paper", "warehouse": "busan"}'
        if "bad-json" in self.modes:
            arguments = '{"item": "stone"}'
        function = {"name": "stock_level", "arguments": arguments}
        return {"content": None, "tool_calls": [{"type": "function", "function": function}]}

    def refusal(self, path: str, body: dict[str, Any]) -> tuple[int, str] | None:
        if "failing" in self.modes:
            return 500, "CUDA error: an illegal memory access was encountered"
        if "tools" in body and "no-tools" in self.modes:
            return 400, '"auto" tool choice requires --enable-auto-tool-choice'
        known = {"/v1/chat/completions"}
        if "no-likelihood" not in self.modes:
            known |= {"/v1/completions"} if self.like == "vllm" else {"/tokenize", "/completion"}
        return None if path in known else (404, "Not Found")

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        shift = 0.6 if self.loaded and "drift-under-load" in self.modes else 0.0
        if path == "/v1/completions":
            words = body["prompt"].split()
            listed = [{"7": {"logprob": self.token(word, 0)[1] - shift}} for word in words]
            return {"choices": [{"text": "x", "prompt_logprobs": [None, *listed]}]}
        if path == "/tokenize":
            pieces = body["content"].split()
            # The third is a half of a character.
            tokens = [
                {"id": n, "piece": piece if n != 2 else [236]} for n, piece in enumerate(pieces)
            ]
            return {"tokens": tokens}
        if path == "/completion":
            [[token, _]] = body["logit_bias"]
            logprob = self.token(str(token), 0)[1] - shift
            return {"completion_probabilities": [{"id": token, "logprob": logprob}]}
        return self.chat(body)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    oracle: Oracle

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        text = ""
        if self.path == "/metrics":
            labels = '{engine="0",model_name="a \\"b\\" } c"}'
            text = (
                "# TYPE vllm:num_requests_running gauge\n"
                f"vllm:num_requests_running{labels} {self.oracle.streaming}\n"
                f"vllm:kv_cache_usage_perc{labels} 0.25\nvllm:generation_tokens_total{labels} 7\n"
            )
        self._send(200, text.encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.oracle.asked.append((self.path, body))
        refused = self.oracle.refusal(self.path, body)
        if refused:
            self._send(refused[0], json.dumps({"error": {"message": refused[1]}}).encode())
        elif body.get("stream"):
            self._stream(body)
        else:
            self._send(200, json.dumps(self.oracle.answer(self.path, body)).encode())

    def _stream(self, body: dict[str, Any]) -> None:
        oracle = self.oracle
        with oracle.lock:
            oracle.streaming += 1
            oracle.most_streaming = max(oracle.most_streaming, oracle.streaming)
        try:
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            for step in oracle.steps(body["messages"][0]["content"], body["max_tokens"]):
                time.sleep(0.01)
                self._event({"choices": [{"delta": {"content": step["token"]}}]})
            self._event({"choices": [{"delta": {}, "finish_reason": "length"}]})
            prompt = len(body["messages"][0]["content"].split())
            usage = {"prompt_tokens": prompt, "completion_tokens": body["max_tokens"]}
            self._event({"choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            pass  # the client was ended
        finally:
            with oracle.lock:
                oracle.streaming -= 1
            self.close_connection = True

    def _event(self, value: object) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()

    def _send(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving(like: str = "vllm") -> Any:
    """An oracle that listens on loopback until the block ends."""
    oracle = Oracle(like)
    handler = type("Handler", (_Handler,), {"oracle": oracle})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    oracle.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield oracle
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
