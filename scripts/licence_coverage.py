"""Of how many packages of an engine's closure the licence is known, and which are not.

Reads METADATA and licence files of each wheel by ranges from the index, some megabytes in all:

    .venv/bin/python -m scripts.licence_coverage manifests/qwen35-35b-a3b-h200.yaml
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bundler import connecting
from bundler.build.pipeline import make_lock
from bundler.build.specfile import load_spec
from bundler.build.toolwheel import write_tool_wheel
from bundler.cli.console import progress
from bundler.domain.inventory import LicenceFacts
from bundler.domain.lock import LockedWheel
from bundler.review.wheelcontents import licence_in


def main(path: Path, cache: Path) -> float:
    """Print the coverage; gives it, from 0 to 1."""
    spec = load_spec(path)
    tools = connecting.build_tools(spec.engine, progress(quiet=True), cache)
    with tempfile.TemporaryDirectory() as folder:
        tool = write_tool_wheel(Path(folder))
        lock = make_lock(spec, path.parent, tool, tools, engine_only=True)

    def look(wheel: LockedWheel) -> tuple[LockedWheel, LicenceFacts]:
        with tools.wheels.open(wheel) as archive:
            return wheel, licence_in(archive)

    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(look, lock.engine_wheels))
    known = [row for row in rows if row[1].known]
    share = len(known) / len(rows)
    print(f"{len(known)} of {len(rows)} licences known ({share:.1%})")
    for wheel, facts in rows:
        if not facts.known:
            said = "; ".join(f"{one.source}: {one.said}" for one in facts.evidence)
            print(f"unknown   {wheel.name} {wheel.version}: {said or 'nothing is stated'}")
        elif facts.conflict:
            said = "; ".join(f"{one.source}: {one.spdx or one.said}" for one in facts.evidence)
            print(f"conflict  {wheel.name} {wheel.version}: {facts.expression}; {said[:300]}")
    for name, count in Counter(facts.expression for _, facts in known).most_common():
        print(f"{count:5} {name}")
    return share


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found = main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else ".coverage-cache"))
    sys.exit(0 if found >= 0.95 else 10)
