"""Fuzz the parsers with atheris: `python -m tests.fuzz [TARGET ...] [--seconds 600]`.

Each target runs in a process of its own. A find ends it with its input saved under `--finds`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

MEGABYTES = 1024
SLOWEST_S = 10


def main() -> int:
    """Run targets one after the other, and say what each has done; 1 when something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--finds", type=Path, default=Path("fuzz-finds"))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return _inside(options.inside, options.targets)
    from tests.fuzz.seeds import seeds
    from tests.fuzz.targets import TARGETS

    bad = 0
    for name in options.targets or TARGETS:
        with tempfile.TemporaryDirectory(prefix="airbundle-corpus-") as folder:
            corpus = Path(folder) / "corpus"
            corpus.mkdir()
            for number, data in enumerate(seeds(name, Path(folder))):
                (corpus / str(number)).write_bytes(data)
            bad += _run(name, corpus, options.seconds, options.finds)
    return bool(bad)


def _run(name: str, corpus: Path, seconds: int, finds: Path) -> bool:
    finds.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--inside", name, "--", str(corpus),
         f"-max_total_time={seconds}", f"-rss_limit_mb={MEGABYTES}", f"-timeout={SLOWEST_S}",
         "-max_len=200000", f"-artifact_prefix={finds}/{name}-", "-print_final_stats=1"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )  # fmt: skip
    stats = dict(
        line.removeprefix("stat::").split(":", 1)
        for line in done.stdout.splitlines()
        if line.startswith("stat::")
    )
    runs, peak = (
        stats.get(key, "?").strip() for key in ("number_of_executed_units", "peak_rss_mb")
    )
    sys.stdout.write(f"{name}: {runs} inputs, peak {peak} MB, rc {done.returncode}\n")
    if done.returncode:
        told = [line for line in done.stdout.splitlines() if not line.startswith("INFO:")]
        sys.stdout.write("\n".join(told[-60:]) + "\n")
    sys.stdout.flush()
    return done.returncode != 0


def _inside(name: str, words: list[str]) -> int:
    import atheris

    with atheris.instrument_imports(include=["bundler", "elftools"]):
        from tests.fuzz.targets import TARGETS
    target, promised = TARGETS[name]

    def one(data: bytes) -> None:
        try:
            target(data)
        except promised:
            return

    atheris.Setup([sys.argv[0], *words], one)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
