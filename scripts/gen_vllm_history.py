"""Write bundler/adapters/engine_vllm/history.json from real wheels on the package index.

`python -m scripts.gen_vllm_history` looks into one wheel of each version (by ranges: a few MB each)
and notes when each architecture, variable, flag and choice was first and last known. A name's first
version is exact among the versions read; add new ones to VERSIONS when they appear.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import tomli

import bundler.adapters.engine_vllm as package
from bundler import wiring
from bundler.adapters.engine_vllm.wheel import read_facts
from bundler.adapters.fetch_http.wheels import WheelArchives
from bundler.adapters.host_index import read_host_index
from bundler.domain.engine_facts import EngineFacts
from bundler.domain.lock import LockedWheel

PAGE = Path(package.__file__).parent / "history.json"
VERSIONS = (
    "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.13.0", "0.14.0", "0.14.1", "0.15.0", "0.15.1",
    "0.16.0", "0.17.0", "0.17.1", "0.18.0", "0.18.1", "0.19.0", "0.19.1", "0.20.0", "0.20.1",
    "0.20.2", "0.21.0", "0.22.0", "0.22.1", "0.23.0", "0.24.0", "0.25.0", "0.25.1", "0.26.0",
    "0.27.0", "0.27.1", "0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0", "0.33.0",
)  # fmt: skip


def locate(name: str, version: str) -> LockedWheel:
    """The x86_64 wheel of one release, as uv finds it with this host's indexes."""
    index = read_host_index(wiring.runner())
    with tempfile.TemporaryDirectory() as folder:
        wanted, lock = Path(folder, "in.txt"), Path(folder, "pylock.x.toml")
        wanted.write_text(f"{name}=={version}\n")
        argv = [
            wiring.uv_program(), "pip", "compile", str(wanted), "--no-deps", "--no-build",
            "--format", "pylock.toml", "--output-file", str(lock), "--quiet",
            "--python-version", "3.12", "--python-platform", "x86_64-manylinux_2_40",
            *(["--default-index", index.default_index] if index.default_index else []),
            *(word for url in index.extra_indexes for word in ("--index", url)),
            *(word for place in index.find_links for word in ("--find-links", place)),
        ]  # fmt: skip
        subprocess.run(argv, check=True)
        found = tomli.loads(lock.read_text())["packages"][0]["wheels"]
    wheel = next(item for item in found if "x86_64" in item["url"])
    filename = wheel["url"].rsplit("/", 1)[-1]
    return LockedWheel(
        name=name, version=version, filename=filename, url=wheel["url"],
        sha256=wheel["hashes"]["sha256"],
    )  # fmt: skip


def names(facts: EngineFacts) -> dict[str, set[str]]:
    """Everything that a version knows, by kind."""
    choices = {f"{flag}={one}" for flag, some in facts.flags.items() for one in some}
    choices |= {f"--attention-backend={name}" for name in facts.attention_backends}
    return {
        "architecture": set(facts.architectures),
        "env": set(facts.env),
        "flag": {flag for flag in facts.flags if not flag.startswith("--no-")},
        "choice": choices,
    }


def history(known: list[tuple[str, dict[str, set[str]]]]) -> dict[str, object]:
    """Kind -> name -> [index of its first version, index of its last]; one index when it still is."""
    versions = [version for version, _ in known]
    table: dict[str, dict[str, list[int]]] = {}
    for at, (_, kinds) in enumerate(known):
        for kind, some in kinds.items():
            for name in some:
                span = table.setdefault(kind, {}).setdefault(name, [at, at])
                span[1] = at
    newest = len(versions) - 1
    return {
        "versions": versions,
        **{
            kind: {
                name: span[:1] if span[1] == newest else span for name, span in sorted(rows.items())
            }
            for kind, rows in sorted(table.items())
        },
    }


def main() -> None:
    """Read them all."""
    reader = WheelArchives(read_host_index(wiring.runner()), lambda _: None)
    known = []
    for version in VERSIONS:
        with reader.open(locate("vllm", version)) as archive:
            known.append((version, names(read_facts(archive, version))))
        print(version, {kind: len(some) for kind, some in known[-1][1].items()}, file=sys.stderr)
    text = json.dumps(history(known), separators=(",", ":"), sort_keys=True)
    PAGE.write_text(text.replace('],"', '],\n"') + "\n")


if __name__ == "__main__":
    main()
