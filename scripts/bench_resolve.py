"""Time airbundle's resolve against plain uv and pip-compile: `python -m scripts.bench_resolve`.

Every figure is the wall time of a whole new process, so airbundle's includes Python's start, the imports,
reading pip's configuration and choosing the wheels. Rounds are interleaved: what else the machine and the
index do hits all alike. Warm: the tools' caches hold the metadata; cold: new, empty caches. pip-compile
resolves for this host alone, and where the index serves no metadata files it downloads whole wheels.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bundler import wiring
from bundler.adapters.host_index import read_host_index
from bundler.domain.target import Target

LIMIT = 1.3
# What a caller of the resolver does, and nothing else.
OURS = """
import sys
from pathlib import Path
from bundler import connecting, wiring
host = connecting.reading_host()
from bundler.domain.sources import EngineRef
from bundler.domain.target import Target
from bundler.ports import WheelRequest
class Silent:
    def note(self, line): pass
python, glibc, arch, *requirements = sys.argv[1:]
target = Target(python=python, glibc=glibc, arch=arch)
tools = connecting.build_tools(EngineRef(name="vllm", version="1"), Silent(), Path("."), host)
closure = tools.resolver.resolve(WheelRequest(tuple(requirements), target))
print(len(closure), sum(wheel.size or 0 for wheel in closure))
"""


@dataclass(frozen=True)
class Runner:
    name: str
    argv: Callable[[Path], Sequence[str]]


def main() -> int:
    options = _options()
    target = Target(python=options.python, glibc=options.glibc, arch=options.arch)
    runners = [
        Runner("uv", lambda folder: _uv(options.requirements, target, folder)),
        Runner("airbundle", lambda folder: _ours(options.requirements, target)),
    ]
    print(f"{', '.join(options.requirements)} for {target.arch}, CPython {target.python},"
          f" glibc {target.glibc}")  # fmt: skip
    kinds = [("cold", options.cold), ("warm", options.warm)]
    slow = Runner("pip-compile", lambda folder: _pip_compile(options.requirements, folder))
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="bench-resolve-") as name:
        work = Path(name)
        for kind, rounds in kinds:
            if not rounds:
                continue
            times = _measure(runners, kind, rounds, work)
            times |= _measure([slow], kind, min(rounds, options.pip_compile), work)
            ratio = _show(kind, times)
            worst = ratio if kind == "warm" else worst
    if worst:
        verdict = "under" if worst < LIMIT else "NOT under"
        print(f"warm overhead over uv: {worst:.2f}x, {verdict} {LIMIT}x")
    return 0 if worst < LIMIT else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("requirements", nargs="*", default=["vllm==0.17.1"])
    parser.add_argument("--python", default="3.12")
    parser.add_argument("--glibc", default="2.31")
    parser.add_argument("--arch", default="x86_64")
    parser.add_argument("--warm", type=int, default=7, help="warm rounds")
    parser.add_argument("--cold", type=int, default=2, help="cold rounds")
    parser.add_argument("--pip-compile", type=int, default=1, help="rounds of pip-compile; 0: none")
    return parser.parse_args()


def _uv(requirements: Sequence[str], target: Target, folder: Path) -> list[str]:
    source = folder / "in.txt"
    source.write_text("\n".join(requirements) + "\n")
    index = read_host_index(wiring.runner())
    argv = [wiring.uv_program(), "pip", "compile", str(source), "--format", "pylock.toml",
            "-o", str(folder / "pylock.bench.toml"), "--python", sys.executable, "--quiet",
            "--python-version", target.python, "--no-build", "--python-platform",
            f"{target.arch}-manylinux_{target.glibc.replace('.', '_')}"]  # fmt: skip
    if index.default_index:
        argv += ["--default-index", index.default_index]
    for url in index.extra_indexes:
        argv += ["--index", url]
    for url in index.find_links:
        argv += ["--find-links", url]
    return [*argv, *(("--index-strategy", "unsafe-best-match") if index.extra_indexes else ())]


def _ours(requirements: Sequence[str], target: Target) -> list[str]:
    return [sys.executable, "-c", OURS, target.python, target.glibc, target.arch, *requirements]


def _pip_compile(requirements: Sequence[str], folder: Path) -> list[str]:
    source = folder / "in.txt"
    source.write_text("\n".join(requirements) + "\n")
    return [sys.executable, "-m", "piptools", "compile", str(source), "--quiet", "--no-config",
            "-o", str(folder / "out.txt"), "--strip-extras", "--allow-unsafe"]  # fmt: skip


def _measure(
    runners: Sequence[Runner], kind: str, rounds: int, work: Path
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {runner.name: [] for runner in runners}
    skip = 1 if kind == "warm" else 0
    for round_ in range(rounds + (skip if rounds else 0)):
        for runner in runners:
            with tempfile.TemporaryDirectory(dir=work) as folder:
                argv = runner.argv(Path(folder))
                cache = Path(folder if kind == "cold" else work, "cache")
                took = _run(runner.name, argv, cache)
            if round_ >= skip:
                times[runner.name].append(took)
    return times


def _run(name: str, argv: Sequence[str], cache: Path) -> float:
    env = {**os.environ, "UV_CACHE_DIR": str(cache / "uv"), "PIP_CACHE_DIR": str(cache / "pip"),
           "PIP_TOOLS_CACHE_DIR": str(cache / "pip-tools")}  # fmt: skip
    start = time.monotonic()
    done = subprocess.run(argv, env=env, capture_output=True, text=True)
    took = time.monotonic() - start
    if done.returncode != 0:
        sys.exit(f"{name}: {done.stderr.strip()[-2000:]}")
    return took


def _show(kind: str, times: dict[str, list[float]]) -> float:
    base = statistics.median(times["uv"])
    print(f"{kind:<6}{'':<14}{'median s':>10}{'min s':>9}{'max s':>9}{'n':>4}{'x uv':>8}")
    for name, taken in times.items():
        if taken:
            middle = statistics.median(taken)
            print(f"      {name:<14}{middle:>10.2f}{min(taken):>9.2f}{max(taken):>9.2f}"
                  f"{len(taken):>4}{middle / base:>8.2f}")  # fmt: skip
    return statistics.median(times["airbundle"]) / base


if __name__ == "__main__":
    sys.exit(main())
