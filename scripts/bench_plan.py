"""A bundle of 1 TB in 300 volumes, without its data: `python -m scripts.bench_plan`.

Plans, lays out, writes the manifest, reads it again with every rule, predicts every volume, lists, and plans
the media: all that does not read the payload. Prints seconds and the peak of memory.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bundler import wiring
from bundler.build.fetch import Fetched
from bundler.build.pack import Packer, entries_of
from bundler.build.store import Blob
from bundler.build.volumewriter import Draft
from bundler.cli.console import SilentProgress
from bundler.domain.manifest import (
    Entry,
    Manifest,
    ShippedEngine,
    ShippedModel,
    ShippedTool,
    VolumeEntry,
)
from bundler.domain.sizes import human
from bundler.domain.spec import Acceptance, Service
from bundler.domain.target import Target
from bundler.format import layout
from bundler.format.blocks import block_count
from bundler.format.codec import parse_manifest, to_bytes
from bundler.format.digests import sha256_hex
from bundler.format.ingest import BlockDigests, Digests
from bundler.format.spans import placed_parts, volume_spans
from bundler.review.inspection import inspect_bundle

LIMIT = 3_400_000_000
SHARD = 4_990_000_000


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=10**12)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = simulate(options.bytes)
    if options.json:
        json.dump(found, sys.stdout)
    else:
        for name, value in found.items():
            sys.stdout.write(f"{name:<24} {value}\n")


def simulate(total: int) -> dict[str, float | int | str]:
    """Everything about a bundle of `total` bytes but its bytes."""
    found: dict[str, float | int | str] = {}

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        found[f"{name} s"] = round(time.monotonic() - began, 2)

    with tempfile.TemporaryDirectory(prefix="airbundle-plan-") as folder:
        packer = Packer(
            out=Path(folder) / "out", limit=LIMIT, form=wiring.volume_format(),
            progress=SilentProgress(), bundle="huge",
        )  # fmt: skip
        files = list(_files(total, packer.block_size))
        with timed("plan and lay out"):
            drafts = packer.plan(files)
            entries = tuple(entries_of(files, drafts))
        with timed("manifest"):
            data = to_bytes(_manifest(packer, drafts, entries))
        (Path(folder) / layout.MANIFEST).write_bytes(data)
        with timed("read and check"):
            manifest = parse_manifest(data)
        with timed("predict every volume"):
            parts = placed_parts(manifest)
            for volume in manifest.volumes:
                volume_spans(
                    volume, parts[volume.name], wiring.volume_format(), manifest.block_size
                )
        with timed("list"):
            inspect_bundle(Path(folder))
    found["volumes"] = len(drafts)
    found["bytes"] = sum(draft.size for draft in drafts)
    found["blocks"] = sum(len(entry.blocks) for entry in entries)
    found["manifest bytes"] = len(data)
    peak = _peak_bytes()
    found["peak memory bytes"], found["peak memory"] = peak, human(peak)
    return found


def _peak_bytes() -> int:
    """Of this program alone: getrusage would count what the process held that started it (execve(2) keeps it)."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def _files(total: int, block_size: int) -> Iterator[Fetched]:
    small = {
        layout.LOCK_PATH: ("lock", 500_000), layout.SPEC_PATH: ("spec", 9_000),
        layout.ENGINE_REQUIREMENTS: ("requirements", 30_000),
        layout.TOOL_REQUIREMENTS: ("requirements", 3_000),
        **{layout.wheel_path(f"w{i}-1-py3-none-any.whl"): ("wheel", 26_000_000 + i) for i in range(190)},
        layout.wheel_path("uv-1-py3-none-any.whl"): ("wheel", 20_000_000),
        **{f"models/m{i}/config.json": ("model", 4_000 + i) for i in range(12)},
    }  # fmt: skip
    left = total - sum(size for _, size in small.values())
    number = 0
    while left > 0:
        size = min(SHARD, left)
        small[f"models/m{number % 12}/model-{number:05}.safetensors"] = ("model", size)
        left, number = left - size, number + 1
    for path, (kind, size) in sorted(small.items()):
        yield Fetched(path, kind, "nowhere", Blob(Path(path), _digests(path, size, block_size)))


def _digests(path: str, size: int, block_size: int) -> Digests:
    count = block_count(size, block_size)
    sizes = [min(block_size, size - i * block_size) for i in range(count)]
    sums = [sha256_hex(f"{path} {i}".encode()) for i in range(count)]
    blocks = tuple(
        BlockDigests(size=n, sha256=s, xxh3=s[:32], crc32=i)
        for i, (n, s) in enumerate(zip(sizes, sums, strict=True))
    )
    whole = sums[0] if count == 1 else sha256_hex(path.encode())
    return Digests(size, whole, whole[:32], block_size, blocks)


def _manifest(packer: Packer, drafts: Sequence[Draft], entries: tuple[Entry, ...]) -> Manifest:
    return Manifest(
        block_size=packer.block_size,
        name="huge",
        sequence=1,
        created="2026-12-02T00:00:00Z",
        target=Target(python="3.12", glibc="2.31"),
        engine=ShippedEngine(
            name="vllm", version="1", distribution="vllm", requirements=layout.ENGINE_REQUIREMENTS
        ),
        tool=ShippedTool(
            version="0", requirements=layout.TOOL_REQUIREMENTS,
            uv_wheel=layout.wheel_path("uv-1-py3-none-any.whl"),
        ),
        models=tuple(ShippedModel(name=f"m{i}", source="local", origin="x") for i in range(12)),
        services=(Service(name="m0", model="m0"),),
        acceptance=Acceptance(),
        volumes=tuple(
            VolumeEntry(name=draft.name, size=draft.size, sha256="0" * 64) for draft in drafts
        ),
        loose=(),
        entries=entries,
    )  # fmt: skip


if __name__ == "__main__":
    main()
