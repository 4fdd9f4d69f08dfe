"""Steps of `scripts.bench_volumes`, each in a process of its own."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DIGESTERS = 2


def build(work: Path, limit: int) -> None:
    """Digest the source, pack it, sign it: what `airbundle build` does once all is fetched."""
    from bundler import wiring
    from bundler.build.fetch import Fetched
    from bundler.build.pack import Packer
    from bundler.build.store import Blob
    from bundler.cli.console import SilentProgress
    from bundler.domain.manifest import Manifest, ShippedEngine, ShippedModel, ShippedTool
    from bundler.domain.spec import Acceptance
    from bundler.domain.target import Target
    from bundler.format import layout
    from bundler.format.ingest import digest_bytes, digest_file
    from bundler.format.workers import Idle, in_parallel

    packer = Packer(
        out=work / "bundle", limit=limit, form=wiring.volume_format(),
        progress=SilentProgress(), bundle="bench",
    )  # fmt: skip
    start = time.monotonic()

    def ingest(path: Path, _: object) -> Fetched:
        blob = Blob(path, digest_file(path, packer.block_size))
        return Fetched(f"models/bench/{path.name}", "model", "bench", blob)

    files = in_parallel(DIGESTERS, ingest, sorted((work / "source").iterdir()), Idle())
    digested = time.monotonic()
    for path, kind in (
        (layout.ENGINE_REQUIREMENTS, "requirements"),
        (layout.TOOL_REQUIREMENTS, "requirements"),
        ("wheels/uv-1-py3-none-any.whl", "wheel"),
    ):
        place = work / path.replace("/", "-")
        place.write_bytes(b"bench")
        digests = digest_bytes(b"bench", packer.block_size)
        files.append(Fetched(path, kind, "bench", Blob(place, digests)))
    if not (work / "k.key.pem").exists():
        wiring.generate_keys(work / "k.key.pem", work / "k.pub.pem")
    with packer.alone():
        packed = packer.pack(files)
        volumes, entries = packed.volumes, packed.entries
        written = time.monotonic()
        manifest = Manifest(
            block_size=packer.block_size,
            name="bench",
            sequence=1,
            created="2026-01-01T00:00:00Z",
            target=Target(python="3.12", glibc="2.31"),
            engine=ShippedEngine(name="vllm", version="1", distribution="vllm",
                                 requirements=layout.ENGINE_REQUIREMENTS),
            tool=ShippedTool(version="1", requirements=layout.TOOL_REQUIREMENTS,
                             uv_wheel="wheels/uv-1-py3-none-any.whl"),
            models=(ShippedModel(name="bench", source="local", origin="bench"),),
            services=(),
            acceptance=Acceptance(),
            volumes=volumes,
            loose=(),
            entries=entries,
        )  # fmt: skip
        packer.finish(manifest, {}, wiring.signer(work / "k.key.pem"))
    end = time.monotonic()
    text = (
        f"digests {digested - start:.2f} s (SHA-256 of wholes and of blocks, xxh3, CRC-32),"
        f" volumes {written - digested:.2f} s (read, compare, write, SHA-256, fsync),"
        f" manifest and signature {end - written:.2f} s"
    )
    (work / "steps.json").write_text(json.dumps(text))


def sha256(folder: Path) -> None:
    """Read and hash every volume on every core, and nothing else: what no check can be faster than."""
    size = 32 * 2**20
    runs = [
        (path, start)
        for path in sorted(folder.glob("*.zip"))
        for start in range(0, path.stat().st_size, size)
    ]

    def one(run: tuple[Path, int]) -> None:
        path, start = run
        digest, buffer = hashlib.sha256(), memoryview(bytearray(2**20))
        with path.open("rb", buffering=0) as file:
            file.seek(start)
            for _ in range(size // 2**20):
                digest.update(buffer[: file.readinto(buffer)])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, runs))


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        sha256(Path(sys.argv[2]))
