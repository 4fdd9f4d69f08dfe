"""Time `airbundle install` against bare uv on the same wheels: `python -m scripts.bench_install`.

One run, in turns of which each way begins half (a disk that slows down under the writing must not count for one of
them alone), both in a network namespace without network (where this system permits one), both from a
folder without a warm cache, both compiling bytecode. Bare uv is what a careful user would type: `uv venv` and
`uv pip install --no-index --require-hashes`. Ours also checks every stored file for drift and records what it did.
The bundle is the one of `airbundle demo --engine vllm`, made first unless --demo names one that is kept.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bundler.deploy.root import Root
from bundler.format.blocks import content_id
from bundler.format.codec import parse_manifest
from bundler.wiring import uv_program

LIMIT = 1.2
_ISOLATION = ("unshare", "--net")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demo", type=Path, help="folder of `airbundle demo --engine vllm --keep`")
    parser.add_argument(
        "--rounds", type=int, default=4, help="an even number, so that each is first as often"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-install-") as name:
        demo = options.demo or _demo(Path(name) / "demo")
        return _compare(demo, Path(name), options.rounds)


def _demo(folder: Path) -> Path:
    argv = [sys.executable, "-m", "bundler", "demo", "--engine", "vllm", "--keep", str(folder)]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return folder


def _compare(demo: Path, work: Path, rounds: int) -> int:
    root = Root(demo / "root")
    [record] = root.bundles()
    manifest = parse_manifest((record / "manifest.json").read_bytes())
    files = work / "files"
    for entry in manifest.payload:
        target = files / entry.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root.object(content_id(entry)), target)
    excludes = work / "excludes"
    excludes.write_text("\n".join((*manifest.engine.exclude, "")))
    release = root.release(record.name)
    uv = [uv_program(), "--quiet", "--no-config", "--cache-dir", str(work / "cache")]

    def bare() -> float:
        _fresh(work / "venv", work / "cache", release)
        return _timed(
            [*uv, "venv", "--python", sys.executable, str(work / "venv")],
            [*uv, "pip", "install", "--python", str(work / "venv/bin/python"), "--offline", "--no-index",
             "--compile-bytecode", "--require-hashes", "--excludes", str(excludes),
             "--find-links", str(files / "wheels"), "-r", str(files / manifest.engine.requirements)],
        )  # fmt: skip

    def ours() -> float:
        _fresh(work / "venv", work / "cache", release)
        return _timed(
            [sys.executable, "-m", "bundler", "install", "--quiet", "--root", str(root.path)]
        )

    ways = {"bare uv": bare, "airbundle install": ours}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in sorted(ways, reverse=bool(number % 2)):
            times[name].append(ways[name]())
    return _show(times)


def _fresh(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["sync"], check=True)


def _timed(*commands: Sequence[str]) -> float:
    permitted = subprocess.run([*_ISOLATION, "true"], capture_output=True, check=False)
    isolation = _ISOLATION if permitted.returncode == 0 else ()
    env = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    start = time.monotonic()
    for command in commands:
        subprocess.run([*isolation, *command], check=True, env=env, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def _show(times: dict[str, list[float]]) -> int:
    for name, all_of_it in times.items():
        print(f"  {name:<20}" + "".join(f"{seconds:>8.2f} s" for seconds in all_of_it))
    # All of it: the best of each would be the first, before the disk slows down.
    ratio = sum(times["airbundle install"]) / sum(times["bare uv"])
    held = ratio <= LIMIT
    print(
        f"  airbundle install over bare uv: {ratio:.2f}x  {'at most' if held else 'NOT'} {LIMIT}x"
    )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
