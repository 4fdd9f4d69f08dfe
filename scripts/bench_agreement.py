"""Do our figures agree with other load tools' on a real engine? `python -m scripts.bench_agreement`.

A real llama-server (of the demo's wheel, or --llama) and a real vLLM on the CPU (--vllm-server PYTHON) serve the
demo's tiny random models. Ours, `vllm bench serve` (--vllm PYTHON) and guidellm (--guidellm PYTHON) send the same
load, one after another, there and back (ABBA): as many requests, tokens in and out and users, who all start at once.
A figure agrees when the medians differ by no more than the noise: the widest spread of either tool between its own
runs. Where it does not, our own run is worked out again by the other's definition, from the same bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bundler.accept.load import Level, run_level
from bundler.accept.metrics import level_metrics
from bundler.accept.prompts import prompt
from bundler.adapters.chat_openai.client import OpenAISession
from bundler.adapters.chat_openai.exchange import Answer, Sink
from bundler.adapters.clock_system import SystemClock
from bundler.cli.console import SilentProgress
from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.demo.tiny_qwen35moe import write_tiny_qwen35_moe
from bundler.domain.spec import Acceptance
from bundler.ports import ChatRequest
from scripts.bench_agreement_engines import (
    demo_server,
    environment,
    llama,
    name_vllm,
    served,
    vllm_server,
)  # fmt: skip

INPUT, OUTPUT, REQUESTS = 128, 64, 60
TEMPLATE = (
    20  # what the tiny models' chat template adds; each tool's prompts are said with its figures
)
NAMES = ("output tok/s", "median TTFT ms", "median TPOT ms")
Figures = dict[str, float]
Tool = Callable[[str, int, Path], Figures]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--llama", type=Path, help="llama-server; else the demo's wheel is installed"
    )
    parser.add_argument("--vllm-server", type=Path, help="python that has vllm for CPUs, to serve")
    parser.add_argument("--vllm", type=Path, help="python that has vllm, to measure")
    parser.add_argument("--guidellm", type=Path, help="python that has guidellm 0.8 or later")
    parser.add_argument("--users", type=int, nargs="*", default=[4, 8])
    parser.add_argument("--rounds", type=int, default=2, help="ABBA so often: twice as many runs")
    parser.add_argument("--only", choices=["llama", "vllm"], help="one engine only")
    parser.add_argument("--ours", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ours:
        print(json.dumps(asyncio.run(_ours(options.ours[0], int(options.ours[1])))))
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-agreement-") as name:
        work = Path(name)
        write_tiny_gguf(work / "tiny.gguf")
        write_tiny_qwen35_moe(work / "tiny")
        tools: dict[str, Tool] = {"airbundle": _our_run}
        if options.vllm:
            tools["vllm bench serve"] = _vllm(options.vllm, work)
        if options.guidellm:
            tools["guidellm"] = _guidellm(options.guidellm)
        engines = {}
        if options.only != "vllm":
            engines["llama-server"] = llama(options.llama or demo_server(work), work)
        if options.vllm_server and options.only != "llama":
            engines["vLLM on the CPU"] = vllm_server(options.vllm_server, work)
        unexplained = 0
        for engine, argv in engines.items():
            with served(argv, work) as url:
                for users in options.users:
                    print(
                        f"{engine}, {users} users, {REQUESTS} requests of {INPUT} in and {OUTPUT} out"
                    )
                    unexplained += _compare(tools, url, users, options.rounds, work)
    print(f"{unexplained} differences are not explained by definition")
    return 1 if unexplained or len(tools) == 1 else 0


def _compare(tools: dict[str, Tool], url: str, users: int, rounds: int, work: Path) -> int:
    """Run ABBA, print, and count the differences that no definition explains."""
    runs: dict[str, list[Figures]] = {name: [] for name in tools}
    tools["airbundle"](url, users, work)  # what the engine does only once is nobody's figure
    for name in [*tools, *reversed(tools)] * rounds:
        runs[name].append(tools[name](url, users, work))
    for name, seen in runs.items():
        row = "   ".join(
            f"{what} {_middle(seen, what):.2f} ({_range(seen, what)})" for what in NAMES
        )
        print(
            f"  {name:<17}{row}   {_middle(seen, 'input'):.0f} tokens in, {_least(seen)} answered"
        )
    ours, unexplained = runs["airbundle"], 0
    for name, theirs in runs.items():
        for what in NAMES if name != "airbundle" else ():
            noise = max(_spread(ours, what), _spread(theirs, what))
            ratio = _middle(theirs, what) / _middle(ours, what)
            says = f"    {name}, {what}: {ratio:.3f} x ours, noise {noise:.3f}: "
            if abs(ratio - 1) <= noise:
                print(f"{says}agree")
                continue
            alike = f"{name}: {what}"
            ratio = _middle(theirs, what) / _middle(ours, alike)
            noise = max(_spread(ours, alike), _spread(theirs, what))
            held = abs(ratio - 1) <= noise
            unexplained += not held
            print(
                f"{says}differ: {'because' if held else 'NOT only because'} it is defined otherwise; our run by"
                f" that definition gives {_middle(ours, alike):.2f}: {ratio:.3f} x, noise {noise:.3f}"
            )
    sys.stdout.flush()
    return unexplained


def _middle(runs: list[Figures], what: str) -> float:
    return median(one[what] for one in runs)


def _range(runs: list[Figures], what: str) -> str:
    return f"{min(one[what] for one in runs):.2f}-{max(one[what] for one in runs):.2f}"


def _spread(runs: list[Figures], what: str) -> float:
    values = [one[what] for one in runs]
    return (max(values) - min(values)) / median(values)


def _least(runs: list[Figures]) -> int:
    return min(int(one["ok"]) for one in runs)


class _Tee:
    """Notes when the first and the last chunk with choices came, whatever was in it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.sent, self.first, self.last = time.monotonic(), 0.0, 0.0

    def feed(self, data: bytes, at: float) -> bool:
        if b'"choices":[{' in data:
            self.first, self.last = self.first or at, at
        return self._sink.feed(data, at)

    def known(self, data: bytes, at: float, chunked: bool) -> int:
        taken = self._sink.known(data, at, chunked)
        if taken:
            self.first, self.last = self.first or at, at
        return taken


class _Session(OpenAISession):
    """The product's session, which also keeps what the others' definitions need."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.heard: list[_Tee] = []

    async def _post(self, request: ChatRequest, sink: Sink) -> Answer:
        self.heard.append(_Tee(sink))
        return await super()._post(request, self.heard[-1])


async def _ours(url: str, users: int) -> Figures:
    plan = Acceptance(
        concurrency=(users,), requests=REQUESTS, input_tokens=INPUT, output_tokens=OUTPUT, ramp_s=0
    )
    level = Level("m", users, plan, f"{time.time_ns()}")
    session = _Session(url)
    async with session:
        run = await run_level(
            session=session, level=level, clock=SystemClock(), progress=SilentProgress()
        )
    seen = level_metrics("m", users, run, plan)
    heard = session.heard[-REQUESTS:]
    window_s = max(one.last for one in heard) - min(one.sent for one in heard)
    good = [one for one in run.samples if one.ok]
    rate, first, later = NAMES
    return {
        rate: seen.output_tokens_per_s,
        first: seen.ttft.p50 or 0,
        later: seen.tpot.p50 or 0,
        "input": seen.input_tokens_p50 or 0,
        "ok": len(good),
        # serve.py and endpoint_request_func.py of vllm.benchmarks 0.32.0: any chunk with choices counts.
        f"vllm bench serve: {rate}": seen.output_tokens / window_s,
        f"vllm bench serve: {first}": 1000 * median(one.first - one.sent for one in heard),
        f"vllm bench serve: {later}": 1000 * median(o.last - o.first for o in heard) / (OUTPUT - 1),
        # schemas/base/request_stats.py of guidellm 0.8.1: time_per_output_token_ms has TTFT in it.
        f"guidellm: {rate}": seen.output_tokens / window_s,
        f"guidellm: {first}": seen.ttft.p50 or 0,
        f"guidellm: {later}": median(one.e2e_ms / one.output_tokens for one in good),
    }


def _our_run(url: str, users: int, work: Path) -> Figures:
    argv = [sys.executable, "-m", "scripts.bench_agreement", "--ours", url, str(users)]
    return dict(json.loads(_said(argv, work).splitlines()[-1]))


def _vllm(python: Path, work: Path) -> Tool:
    name_vllm(work)
    start = (
        "import argparse; from vllm.benchmarks import serve; p = argparse.ArgumentParser();"
        " serve.add_cli_args(p); serve.main(p.parse_args())"
    )

    def run(url: str, users: int, work: Path) -> Figures:
        argv = [
            str(python), "-c", start, "--backend", "openai-chat", "--base-url", url, "--endpoint",
            "/v1/chat/completions", "--model", "m", "--tokenizer", str(work / "tiny"), "--dataset-name",
            "random", "--random-input-len", str(INPUT - TEMPLATE), "--random-output-len", str(OUTPUT),
            "--num-prompts", str(REQUESTS), "--max-concurrency", str(users), "--ignore-eos",
            "--temperature", "0", "--seed", _seed(), "--ready-check-timeout-sec", "0", "--disable-tqdm",
            "--save-result", "--result-dir", str(work), "--result-filename", "vllm.json",
        ]  # fmt: skip
        _said(argv, work)
        seen = json.loads((work / "vllm.json").read_text())
        figures = [seen[key] for key in ("output_throughput", "median_ttft_ms", "median_tpot_ms")]
        done = seen["completed"]
        return dict(zip(NAMES, figures, strict=True)) | {
            "input": seen["total_input_tokens"] / done, "ok": done,
        }  # fmt: skip

    return run


def _guidellm(python: Path) -> Tool:
    def run(url: str, users: int, work: Path) -> Figures:
        data = work / "guide.jsonl"
        lines = [
            {"prompt": prompt(f"{_seed()}/{number}", 40, "english"), "output_tokens_count": OUTPUT}
            for number in range(REQUESTS)
        ]
        data.write_text("".join(json.dumps(line) + "\n" for line in lines))
        argv = [
            str(python.parent / "guidellm"), "run",
            "--backend", f"kind=openai_http,target={url},model=m,validate_backend=false",
            "--data", f"kind=json_file,path={data}", "--profile", f"kind=concurrent,streams={users}",
            "--constraint", f"kind=max_requests,count={REQUESTS}",
            "--output", f"kind=json,path={work / 'guide.json'}", "--disable-console",
        ]  # fmt: skip
        _said(argv, work)
        all_of = json.loads((work / "guide.json").read_text())["benchmarks"][0]
        good = all_of["requests"]["successful"]
        return {
            NAMES[0]: all_of["metrics"]["output_tokens_per_second"]["successful"]["mean"],
            NAMES[1]: median(one["time_to_first_token_ms"] for one in good),
            NAMES[2]: median(one["time_per_output_token_ms"] for one in good),
            "input": median(one["prompt_tokens"] for one in good),
            "ok": len(good),
        }

    return run


def _seed() -> str:
    """New prompts each time: none is answered from a prefix cache."""
    return str(random.SystemRandom().randrange(2**31))


def _said(argv: list[str], work: Path) -> str:
    done = subprocess.run(
        argv, env=environment(work), cwd=work, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(argv[:4])}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
