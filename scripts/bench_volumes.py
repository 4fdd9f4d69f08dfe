"""Time build, verify and import against what a user would otherwise run: `python -m scripts.bench_volumes`.

One run, one machine, the same files: shards of random bytes. Every figure is the wall time of a whole
new process, with what is written brought to the disk (`sync -f`) within the time. The page cache is
warm for all alike, so that tools are compared and not the disk's reading; `--cold` drops it before
each step (root). Ratios are what counts: seconds vary with the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import xxhash
from cryptography.hazmat.primitives import hashes
from zlib_ng import zlib_ng

from bundler.domain.sizes import human, parse_size

VOLUME = 2 * 10**9


@dataclass
class Took:
    """Seconds of wall time, user and system CPU, and peak resident memory in bytes."""

    wall: float
    user: float
    system: float
    rss: int


@dataclass
class Bench:
    work: Path
    size: int
    shards: int
    cold: bool
    times: dict[str, list[Took]] = field(default_factory=dict)

    @property
    def source(self) -> Path:
        return self.work / "source"

    def run(self, name: str, *commands: Sequence[str], cwd: Path | None = None) -> None:
        """Time commands one after the other as one step."""
        if self.cold:
            subprocess.run(["sync"], check=True)
            Path("/proc/sys/vm/drop_caches").write_text("3")
        start = time.monotonic()
        user = system = 0.0
        rss = 0
        for command in commands:
            child = subprocess.Popen(command, cwd=cwd or self.work, stdout=subprocess.DEVNULL)
            with ThreadPoolExecutor(1) as pool:
                watched = pool.submit(_peak, child.pid)
                _, status, usage = os.wait4(child.pid, 0)
                rss = max(rss, watched.result())
            if status:
                sys.exit(f"{name}: {' '.join(map(str, command))[:200]} ended with {status}")
            user, system = user + usage.ru_utime, system + usage.ru_stime
        took = Took(time.monotonic() - start, user, system, rss)
        self.times.setdefault(name, []).append(took)
        print(
            f"  {name:<34}{took.wall:>8.2f} s{self.size / took.wall / 1e9:>7.2f} GB/s"
            f"  cpu {took.user:.1f}+{took.system:.1f} s  peak {human(took.rss)}",
            flush=True,
        )

    def warm(self, folder: str) -> None:
        """Bring what was written past the page cache into it, unless the disk is to be measured."""
        if not self.cold:
            subprocess.run(["sh", "-c", f"find {folder} -type f -exec cat {{}} + > /dev/null"],
                           cwd=self.work, check=True)  # fmt: skip

    def best(self, name: str) -> float:
        return min(took.wall for took in self.times[name])


def _peak(pid: int) -> int:
    """Peak resident memory of a process until it ends; getrusage would count ours before its exec."""
    peak = 0
    while True:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return peak
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        if found is None:
            return peak
        peak = max(peak, int(found[1]) * 1024)
        time.sleep(0.02)


def main() -> int:
    options = _options()
    work = options.dir.absolute() / "bench-volumes"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    bench = Bench(work, options.size, options.shards, options.cold)
    try:
        _make_source(bench)
        _components()
        for round_ in range(options.rounds):
            print(f"round {round_ + 1}: {human(bench.size)} in {bench.shards} files")
            _one_round(bench)
        return _show(bench)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=parse_size, default=6 * 10**9)
    parser.add_argument("--shards", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--dir", type=Path, default=Path("build"), help="needs 5 times the size")
    parser.add_argument("--cold", action="store_true")
    return parser.parse_args()


def _make_source(bench: Bench) -> None:
    bench.source.mkdir()
    for number in range(bench.shards):
        with (bench.source / f"model-{number:05d}.safetensors").open("wb") as file:
            left = bench.size // bench.shards
            while left:
                chunk = os.urandom(min(left, 2**24))
                file.write(chunk)
                left -= len(chunk)
    subprocess.run(["sync", "-f", bench.source], check=True)


def _one_round(bench: Bench) -> None:
    for name in ("zip", "tar", "bundle", "root", "unzip", "cp"):
        shutil.rmtree(bench.work / name, ignore_errors=True)
    for name in ("zip", "tar", "unzip", "cp"):
        (bench.work / name).mkdir()
    shell = ["sh", "-ec"]
    size = str(VOLUME)
    me = [sys.executable, "-m", "scripts.bench_volumes_steps"]
    repo = Path(__file__).parent.parent
    volumes = "../bundle"
    bench.run("zip -0 -s 2g + sha256sum", [*shell,
              "zip -q -0 -s 2g zip/a.zip -r source && cd zip && sha256sum a.* > SHA256SUMS && sync -f ."])  # fmt: skip
    bench.run("tar | split + sha256sum", [*shell,
              f"tar c source | split -b {size} - tar/a. && cd tar && sha256sum a.* > SHA256SUMS && sync -f ."])  # fmt: skip
    bench.run("airbundle build", [*me, "build", str(bench.work), size], cwd=repo)
    bench.warm("bundle")
    bench.run("sha256sum -c", [*shell, "cd bundle && sha256sum -c --quiet SHA256SUMS"])
    key = str(bench.work / "k.pub.pem")
    ours = [sys.executable, "-m", "bundler"]
    bundle, root = str(bench.work / "bundle"), str(bench.work / "root")
    # These two are near to each other: in turns, so that a machine that slows down slows both.
    for _ in range(3):
        bench.run("SHA-256 of it, all cores", [*me, "sha256", bundle, "0"], cwd=repo)
        bench.run("airbundle verify", [*ours, "verify", bundle, "--key", key, "--quiet"], cwd=repo)
    bench.run("cp + fsync", [*shell, "cp bundle/*.zip cp && sync -f cp"])
    shutil.rmtree(bench.work / "cp")
    bench.run("unzip + sha256sum -c", [*shell,
              f"cd unzip && for v in {volumes}/*.zip; do unzip -q -o $v; done"
              f" && sync -f . && cd {volumes} && sha256sum -c --quiet SHA256SUMS"])  # fmt: skip
    shutil.rmtree(bench.work / "unzip")
    bench.run(
        "airbundle import",
        [*ours, "import", bundle, "--root", root, "--key", key, "--quiet"],
        ["sync", "-f", root], cwd=repo,
    )  # fmt: skip
    bench.warm("root")
    for _ in range(3):
        bench.run("airbundle verify --quick", [*ours, "verify", "--quick", "--root", root, "--quiet"],
                  cwd=repo)  # fmt: skip


def _components() -> None:
    """Print what this machine's cores can do: the ceiling of every figure below."""
    buffer = os.urandom(2**20)

    def sha256() -> None:
        hashes.Hash(hashes.SHA256()).update(buffer)

    def crc32() -> None:
        zlib_ng.crc32(buffer)

    def xxh3() -> None:
        xxhash.xxh3_128(buffer)

    cores = os.cpu_count() or 1
    found = {
        "SHA-256, 1 core": _speed(sha256, 1),
        f"SHA-256, {cores} cores": _speed(sha256, cores),
        "xxh3-128, 1 core": _speed(xxh3, 1),
        "CRC-32, 1 core": _speed(crc32, 1),
    }
    print("in memory: " + ", ".join(f"{name} {speed:.2f} GB/s" for name, speed in found.items()))


def _speed(work: Callable[[], None], cores: int, rounds: int = 1500) -> float:
    def many(_: int) -> None:
        for _ in range(rounds):
            work()

    start = time.monotonic()
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(many, range(cores)))
    return cores * rounds * 2**20 / (time.monotonic() - start) / 1e9


def _show(bench: Bench) -> int:
    def times(slow: str, fast: str) -> float:
        return bench.best(slow) / bench.best(fast)

    rows = [
        ("build over zip -0 + sha256sum", times("zip -0 -s 2g + sha256sum", "airbundle build"), 2.0),
        ("build over tar | split + sha256sum", times("tar | split + sha256sum", "airbundle build"), 2.0),
        ("verify over sha256sum -c", times("sha256sum -c", "airbundle verify"), 4.0),
        ("SHA-256 on all cores over verify", times("SHA-256 of it, all cores", "airbundle verify"), 0.9),
        ("verify --quick over verify", times("airbundle verify", "airbundle verify --quick"), 4.0),
        ("import over unzip + sha256sum -c", times("unzip + sha256sum -c", "airbundle import"), 2.0),
        ("cp + fsync over import", times("cp + fsync", "airbundle import"), 1 / 1.3),
    ]  # fmt: skip
    print("best of each:")
    missed = 0
    for name, ratio, wanted in rows:
        good = ratio >= wanted
        missed += not good
        print(f"  {name:<38}{ratio:>6.2f}x  {'at least' if good else 'NOT'} {wanted:.2f}x")
    steps = bench.work / "steps.json"
    if steps.is_file():
        print("where the time of a build goes: " + json.loads(steps.read_text()))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
