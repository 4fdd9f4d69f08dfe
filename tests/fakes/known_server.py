"""A server whose every figure is known: it answers by a plan and notes when it really sent each token.

Started as a process of its own, so that it and the client disturb each other no more than a real engine
would. Times are CLOCK_MONOTONIC, which all processes of a host share. `GET /truth` gives what was sent,
`GET /metrics` counters named as vLLM's. Run by hand: `python -m tests.fakes.known_server '{"ttft_s": 0.1}'`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

_END = "length"


@dataclass(frozen=True)
class Plan:
    """How it answers. `every` counts requests in the order in which they come, from 1."""

    ttft_s: float = 0.1
    gap_s: float = 0.02
    chunk_tokens: int = 1
    first_chunk_tokens: int = 0
    """0: as `chunk_tokens`."""
    reasoning_chunks: int = 0
    tool_calls: bool = False
    role_first: bool = False
    """The role comes when the request is accepted, long before the first token."""
    progress_chunks: int = 0
    continuous: bool = False
    refuses_continuous: bool = False
    usage: bool = True
    done: bool = True
    stall_s: float = 0.0
    """A pause in the middle of each answer."""
    late_every: int = 0
    late_s: float = 0.5
    """So many requests get their first token so much later."""
    error_every: int = 0
    cut_every: int = 0
    short_every: int = 0
    cached_share: float = 0.0
    hidden_s: float = 0.0
    """Time that its own TTFT histogram does not know of: something between it and the client."""
    others: int = 0
    """Requests that its counters show and that were not ours."""
    slow_until: int = 0
    """The first so many requests take three times as long."""
    unsettled: bool = False
    """Each wave's first token is later than the last one's."""
    metrics: bool = True


@dataclass
class Sent:
    """The truth of one request."""

    number: int
    received: float
    tokens_at: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    answer_at: float | None = None
    failed: bool = False


class KnownServer:
    """The server's side."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sent: list[Sent] = []
        self.running = 0
        self.queries = self.hits = 0.0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length")), 0
            )  # fmt: skip
            body = await reader.readexactly(length)
            received = time.monotonic()
            if head.startswith(b"GET /truth"):
                page(writer, json.dumps([asdict(one) for one in self.sent]))
            elif head.startswith(b"GET /metrics") and self.plan.metrics:
                page(writer, self.counters())
            elif head.startswith(b"POST"):
                await self.answer(writer, json.loads(body), received)
            else:
                page(writer, "", "404 Not Found")
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def counters(self) -> str:
        first = [
            one.tokens_at[0] - one.received - self.plan.hidden_s
            for one in self.sent
            if one.tokens_at
        ]
        label = '{engine="0",model_name="m"}'
        return "".join(
            f"# TYPE {name} counter\n{name}{label} {value!r}\n"
            for name, value in (
                ("vllm:time_to_first_token_seconds_sum", sum(first)),
                ("vllm:time_to_first_token_seconds_count", float(len(first) + self.plan.others * (len(first) > 7))),
                ("vllm:prefix_cache_queries_total", self.queries),
                ("vllm:prefix_cache_hits_total", self.hits),
                ("vllm:num_requests_running", float(self.running)),
            )
        )  # fmt: skip

    async def answer(
        self, writer: asyncio.StreamWriter, asked: dict[str, Any], received: float
    ) -> None:
        plan = self.plan
        if plan.refuses_continuous and "continuous_usage_stats" in asked["stream_options"]:
            page(writer, '{"error": "unknown field continuous_usage_stats"}', "400 Bad Request")
            return
        one = Sent(len(self.sent) + 1, received)
        self.sent.append(one)
        if hits(plan.error_every, one.number):
            one.failed = True
            page(writer, '{"error": {"message": "boom"}}', "500 Internal Server Error")
            return
        prompt = asked["prompt"] if "prompt" in asked else asked["messages"][0]["content"]
        if not isinstance(prompt, str):
            prompt = "".join(part["text"] for part in prompt)
        words = 12 + 2 * (len(prompt.split()) - 1)
        self.queries += words
        self.hits += plan.cached_share * words
        self.running += 1
        try:
            await self.stream(writer, one, asked, words)
        finally:
            self.running -= 1

    async def stream(
        self, writer: asyncio.StreamWriter, one: Sent, asked: dict[str, Any], words: int
    ) -> None:
        plan = self.plan
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        chat = "messages" in asked
        if plan.role_first:
            event(writer, chunk({"role": "assistant", "content": ""}))
        slow = 3.0 if one.number <= plan.slow_until else 1.0
        wait = plan.ttft_s * slow + plan.late_s * hits(plan.late_every, one.number)
        if plan.unsettled:
            wait += 0.02 * one.number
        for place in range(plan.progress_chunks):
            share = (place + 0.5) / plan.progress_chunks
            await until(one.received + wait * share)
            progress = {"total": words, "processed": int(words * share)}
            event(writer, chunk({"role": "assistant", "content": None}, prompt_progress=progress))
        wanted = asked.get("max_tokens") or asked["max_completion_tokens"]
        total = wanted - 3 * hits(plan.short_every, one.number)
        counted = {"prompt_tokens": words, "completion_tokens": 0}
        told = plan.continuous and asked["stream_options"].get("continuous_usage_stats")
        due, made, place = one.received + wait, 0, 0
        while made < total:
            if place and plan.stall_s and made >= total // 2 > made - one.tokens[-1]:
                due += plan.stall_s
            await until(due)
            size = (
                plan.first_chunk_tokens
                if not place and plan.first_chunk_tokens
                else plan.chunk_tokens
            )
            size = min(size, total - made)
            made += size
            thinks = place < plan.reasoning_chunks
            more = {"usage": counted | {"completion_tokens": made}} if told else {}
            now = time.monotonic()
            event(writer, chunk(self.delta(place, size, thinks), chat=chat, **more))
            one.tokens_at.append(now)
            one.tokens.append(size)
            if not thinks and one.answer_at is None:
                one.answer_at = now
            if hits(plan.cut_every, one.number) and made > total // 2:
                one.failed = True
                return
            due, place = max(due, now - 0.005) + plan.gap_s * slow, place + 1
        event(writer, chunk({}, _END, chat=chat))
        if plan.usage:
            event(
                writer, json.dumps({"choices": [], "usage": counted | {"completion_tokens": total}})
            )
        if plan.done:
            event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")

    def delta(self, place: int, size: int, thinks: bool) -> dict[str, Any]:
        text = "토큰 " * size
        if thinks:
            return {"reasoning": text}
        if self.plan.tool_calls:
            return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}
        return {"content": text}


def hits(every: int, number: int) -> bool:
    return bool(every) and number % every == 0


async def until(due: float) -> None:
    left = due - time.monotonic()
    if left > 0:
        await asyncio.sleep(left)


def chunk(
    delta: dict[str, Any], finish: str | None = None, *, chat: bool = True, **more: Any
) -> str:
    choice: dict[str, Any] = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    if not chat:
        choice = {"index": 0, "text": delta.get("content", ""), "finish_reason": finish}
    head = {"id": "chatcmpl-0123456789abcdef0123456789abcdef", "object": "chat.completion.chunk",
            "created": 1_790_000_000, "model": "m"}  # fmt: skip
    return json.dumps(
        head | {"choices": [choice]} | more, ensure_ascii=False, separators=(",", ":")
    )


def event(writer: asyncio.StreamWriter, text: str) -> None:
    data = f"data: {text}\n\n".encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def page(writer: asyncio.StreamWriter, text: str, status: str = "200 OK") -> None:
    body = text.encode()
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


async def serve(plan: Plan) -> None:
    server = await asyncio.start_server(
        KnownServer(plan).connected, "127.0.0.1", 0, backlog=1024, limit=2**24
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@dataclass(frozen=True)
class Running:
    """A server that runs."""

    url: str

    def truth(self) -> list[Sent]:
        """What was sent so far, in the order of the requests."""
        with urllib.request.urlopen(f"{self.url}/truth", timeout=60) as answer:
            return [Sent(**one) for one in json.load(answer)]


@contextmanager
def known_server(plan: Plan) -> Iterator[Running]:
    """Run one until the end of the `with`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.known_server", json.dumps(asdict(plan))],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield Running(f"http://127.0.0.1:{int(process.stdout.readline())}")
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


if __name__ == "__main__":
    asyncio.run(serve(Plan(**json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}"))))
