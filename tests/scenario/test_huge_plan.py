"""A bundle of 1 TB, without its data."""

import json
import subprocess
import sys
from pathlib import Path


def test_a_terabyte_is_planned_and_listed_in_little_memory() -> None:
    done = subprocess.check_output(
        [sys.executable, "-m", "scripts.bench_plan", "--json"], cwd=Path(__file__).parents[2]
    )
    found = json.loads(done)
    assert found["volumes"] >= 295
    assert found["bytes"] >= 10**12
    assert found["peak memory bytes"] < 500 * 2**20
