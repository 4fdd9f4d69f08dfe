"""Processor time and timer lag of our load client against others': `python -m scripts.bench_client`.

All drive the same loopback server (tests/fakes/known_server.py) with the same number of streams, one after
another in one run. A `sitecustomize` ticks every 10 ms on each process's event loop, ours too, and notes the
processor time so far (user and system, all threads) and how late the tick was. What counts is what lies between the
first request's arrival and the last token's sending, as the server notes them: no start-up, no imports.
`vllm bench serve` comes from --vllm PYTHON, such as the release of `airbundle demo --engine vllm --keep DIR`;
guidellm comes from --guidellm PYTHON, such as a venv of its own. A tool that fails is said to be absent, and why.
AIPerf is not driven yet: 0.13.0 installs, but got no tokenizer without a network in what was tried.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.known_server import Plan, Running, known_server

ROOT = Path(__file__).parent.parent
TOKENS = 200
SERVER = Plan(ttft_s=0.2, gap_s=0.02)
Command = Callable[[str, int, int, Path], list[str]]
# Found before the tool's own modules: asyncio.run then ticks beside whatever the tool runs.
_TICKER = """
import asyncio, os, time
_run = asyncio.Runner.run
def _ticking(self, coro, **more):
    async def both():
        seen = []
        async def tick():
            while True:
                due = time.monotonic() + 0.01
                await asyncio.sleep(0.01)
                now = time.monotonic()
                seen.append((now, time.process_time(), now - due))
        task = asyncio.ensure_future(tick())
        try:
            return await coro
        finally:
            task.cancel()
            with open(os.path.join(os.environ["BENCH_TICKS"], str(os.getpid())), "a") as out:
                out.writelines(" ".join(map(repr, one)) + "\\n" for one in seen)
    return _run(self, both(), **more)
asyncio.Runner.run = _ticking
"""


class AbsentError(Exception):
    """A tool that could not be measured."""


@dataclass(frozen=True)
class Cost:
    """What one run took."""

    cpu_s: float
    lag_ms: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vllm", type=Path, help="python that has vllm")
    parser.add_argument("--guidellm", type=Path, help="python that has guidellm 0.8 or later")
    parser.add_argument("--streams", type=int, nargs="*", default=[100, 400])
    parser.add_argument("--ours", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ours:
        url, streams, tokens = options.ours
        asyncio.run(_ours(url, int(streams), int(tokens)))
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-client-") as name:
        work = Path(name)
        (work / "sitecustomize.py").write_text(_TICKER)
        tools: dict[str, Command] = {"airbundle": _our_command}
        if options.vllm:
            tools["vllm bench serve"] = _vllm(options.vllm, work)
        if options.guidellm:
            tools["guidellm"] = _guidellm(options.guidellm, work)
        return _compare(tools, options.streams, work)


def _compare(tools: dict[str, Command], levels: list[int], work: Path) -> int:
    held, compared = True, False
    with known_server(SERVER) as server:
        for streams in levels:
            costs = {}
            for name, command in tools.items():
                argv = command(server.url, streams, TOKENS, work)
                try:
                    costs[name] = _run(argv, work, server, streams)
                except AbsentError as cause:
                    print(f"{name}: absent: {cause}", flush=True)
            if "airbundle" not in costs:
                return 1
            ours = costs["airbundle"]
            print(f"{streams} streams of {TOKENS} chunks, 50 a second each", flush=True)
            for name, cost in costs.items():
                print(
                    f"  {name:<18}{1000 * cost.cpu_s / streams:>8.2f} ms of processor a stream"
                    f"{cost.cpu_s / ours.cpu_s:>7.2f} x ours   timer lag p99 {cost.lag_ms:.1f} ms"
                )
                below = cost.cpu_s > ours.cpu_s and cost.lag_ms > ours.lag_ms
                held = held and (name == "airbundle" or below)
                compared = compared or name != "airbundle"
    if not compared:
        print("nothing to compare with")
        return 1
    print(f"ours {'below' if held else 'NOT below'} every other in processor time and timer lag")
    return 0 if held else 1


def _run(argv: list[str], work: Path, server: Running, streams: int) -> Cost:
    ticks = work / "ticks"
    shutil.rmtree(ticks, ignore_errors=True)
    ticks.mkdir()
    env = os.environ | {
        "BENCH_TICKS": str(ticks), "PYTHONPATH": f"{work}:{ROOT}", "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }  # fmt: skip
    known = len(server.truth())
    done = subprocess.run(argv, env=env, cwd=work, capture_output=True, text=True, check=False)
    # Probes that a tool sends before are not the load.
    sent = [one for one in server.truth()[known:] if sum(one.tokens) == TOKENS][-streams:]
    if done.returncode or len(sent) != streams:
        said = f"{done.stdout[-500:]}{done.stderr[-1500:]}"
        raise AbsentError(f"{' '.join(argv[:6])}: {len(sent)} of {streams} streams\n{said}")
    began = min(one.received for one in sent)
    ended = max(one.tokens_at[-1] for one in sent)
    cpu_s, lags = 0.0, []
    for file in ticks.iterdir():
        rows = [tuple(map(float, line.split())) for line in file.read_text().splitlines()]
        inside = [row for row in rows if began <= row[0] <= ended]
        if inside:
            cpu_s += inside[-1][1] - inside[0][1]
            lags += [row[2] for row in inside]
    lags.sort()
    return Cost(cpu_s, 1000 * lags[int(0.99 * len(lags))])


def _our_command(url: str, streams: int, tokens: int, work: Path) -> list[str]:
    return [
        sys.executable, "-m", "scripts.bench_client", "--ours", url, str(streams), str(tokens),
    ]  # fmt: skip


async def _ours(url: str, streams: int, tokens: int) -> None:
    from bundler.accept.measuring import measure
    from bundler.adapters.chat_openai import OpenAIChat
    from bundler.adapters.clock_system import SystemClock
    from bundler.ports import ChatRequest

    clock = SystemClock()
    async with OpenAIChat().session(url) as session:
        requests = [
            ChatRequest(
                model="m", prompt=f"{place} word" * 20, max_tokens=tokens, timeout_s=600
            )
            for place in range(streams)
        ]  # fmt: skip
        began = clock.monotonic()
        samples = await asyncio.gather(*[measure(session, one, clock, began) for one in requests])
    wrong = [one for one in samples if not one.ok or one.output_tokens != tokens]
    if wrong:
        raise SystemExit(f"{len(wrong)} requests went wrong: {wrong[0].error}")


def _vllm(python: Path, work: Path) -> Command:
    # It asks for a distribution named vllm, which the wheel for CPUs is not.
    named = work / "vllm-0.32.0.dist-info"
    named.mkdir()
    (named / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n")
    # Its custom prompts are read with pandas, which serving does not need.
    subprocess.run(
        [sys.executable, "-m", "uv", "pip", "install", "-q", "--python", str(python), "--no-deps",
         "--target", str(work), "pandas", "python-dateutil", "six", "pytz", "tzdata"],
        check=True,
    )  # fmt: skip
    start = (
        "import argparse; from vllm.benchmarks import serve; p = argparse.ArgumentParser();"
        " serve.add_cli_args(p); serve.main(p.parse_args())"
    )

    def command(url: str, streams: int, tokens: int, work: Path) -> list[str]:
        prompts = work / "prompts.jsonl"
        prompts.write_text(
            "".join(
                json.dumps({"prompt": f"{place} word " * 20, "output_tokens": tokens}) + "\n"
                for place in range(streams)
            )
        )
        return [
            str(python), "-c", start, "--extra-body", json.dumps({"max_tokens": tokens}), "--backend", "openai-chat", "--base-url", url, "--endpoint",
            "/v1/chat/completions", "--model", "m", "--skip-tokenizer-init", "--dataset-name", "custom",
            "--dataset-path", str(prompts), "--custom-output-len", str(tokens), "--num-prompts", str(streams),
            "--max-concurrency", str(streams), "--disable-tqdm", "--ignore-eos", "--ready-check-timeout-sec",
            "0",
        ]  # fmt: skip

    return command


def _guidellm(python: Path, work: Path) -> Command:
    def command(url: str, streams: int, tokens: int, work: Path) -> list[str]:
        data = work / "guide.jsonl"
        data.write_text(
            "".join(
                json.dumps({"prompt": f"{place} word " * 20, "output_tokens_count": tokens}) + "\n"
                for place in range(streams)
            )
        )
        return [
            str(python.parent / "guidellm"), "run",
            "--backend", f"kind=openai_http,target={url},model=m,validate_backend=false",
            "--data", f"kind=json_file,path={data}", "--profile", f"kind=concurrent,streams={streams}",
            "--constraint", f"kind=max_requests,count={streams}",
            "--output", f"kind=json,path={work / 'guide.json'}", "--disable-console",
        ]  # fmt: skip

    return command


if __name__ == "__main__":
    sys.exit(main())
