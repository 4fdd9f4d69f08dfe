"""Write the tiny bundle that is kept as a test asset: `python -m scripts.freeze_bundle`.

One per format version, made once and never again: readers of all later versions must take it. It has what
the format has: a file of several blocks over several volumes, an empty one, a Korean name, parity, an
approval, a sealed copy, a delta on top.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from bundler import wiring
from bundler.build.copying import Copier
from bundler.build.fetch import Fetched
from bundler.build.pack import Packer, loose_file
from bundler.build.store import Blob
from bundler.cli.console import SilentProgress
from bundler.domain.manifest import (
    FORMAT_VERSION,
    Base,
    Manifest,
    RuntimeFile,
    ShippedEngine,
    ShippedModel,
    ShippedTool,
    VerifiedManifest,
)
from bundler.domain.spec import Acceptance, Service
from bundler.domain.target import Target
from bundler.errors import StateError
from bundler.format import layout
from bundler.format.blocks import content_id
from bundler.format.digests import sha256_hex
from bundler.format.ingest import digest_file
from bundler.format.sealing import VolumeKey, generate_volume_key
from bundler.format.trust import open_manifest
from bundler.review.approving import decide

PLACE = Path(__file__).parent.parent / "tests" / "assets" / f"bundle-v{FORMAT_VERSION}"
LIMIT = 72_000
WHEELS = ("airbundle-0.0.0-py3-none-any.whl", "uv-0.0.0-py3-none-any.whl")


def main() -> None:
    """Make the asset.

    Raises:
        StateError: it is there already; it is never made again.
    """
    if PLACE.exists():
        raise StateError(f"{PLACE} is there already", hint="It stays as it is, for ever.")
    work = PLACE / "work"
    work.mkdir(parents=True)
    for name in ("builder", "reviewer"):
        wiring.generate_keys(work / f"{name}.key.pem", PLACE / f"{name}.pub.pem")
    generate_volume_key(PLACE / "volumes.key")
    files = _files(work)
    _bundle(PLACE / "bundle", files, work, sequence=1)
    verified = open_manifest(PLACE / "bundle", [wiring.verifier(PLACE / "builder.pub.pem")])
    reviewer = wiring.signer(work / "reviewer.key.pem")
    decide(
        PLACE / "bundle", verified, verdict="approved", by="김보안", role="reviewer", comment="",
        now="2026-12-02T00:00:00Z", expires=None, key_id=reviewer.key_id, signer=reviewer,
    )  # fmt: skip
    _seal(verified)
    changed = work / "config.json"
    changed.write_bytes(b'{"model_type": "toy", "changed": true}\n')
    files["models/toy/config.json"] = (changed, "model")
    _bundle(PLACE / "delta", files, work, sequence=2, base=verified)
    shutil.rmtree(work)


def _files(work: Path) -> dict[str, tuple[Path, str]]:
    contents = {
        layout.LOCK_PATH: ("lock", b"{}\n"),
        layout.SPEC_PATH: ("spec", b"{}\n"),
        layout.ENGINE_REQUIREMENTS: ("requirements", b"toy==1 --hash=sha256:0\n"),
        layout.TOOL_REQUIREMENTS: ("requirements", b"airbundle==0 --hash=sha256:0\n"),
        **{layout.wheel_path(name): ("wheel", name.encode() * 9) for name in WHEELS},
        "models/toy/config.json": ("model", b'{"model_type": "toy"}\n'),
        "models/toy/empty": ("model", b""),
        "models/toy/model.safetensors": ("model", _noise(150_001)),
        "files/안내.txt": ("file", "안내문\n".encode()),
    }
    found = {}
    for number, (path, (kind, data)) in enumerate(contents.items()):
        place = work / f"file{number}"
        place.write_bytes(data)
        found[path] = (place, kind)
    return found


def _noise(size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += bytes.fromhex(sha256_hex(data[-64:] + str(len(data)).encode()))
    return data[:size]


def _bundle(
    out: Path, files: dict[str, tuple[Path, str]], work: Path, *, sequence: int,
    base: VerifiedManifest | None = None,
) -> None:  # fmt: skip
    held = frozenset(
        content_id(entry) for entry in (base.manifest.payload if base else ())
        if entry.kind in ("wheel", "model", "file") and not entry.path.startswith("wheels/")
    )  # fmt: skip
    apart = frozenset([layout.TOOL_REQUIREMENTS, *map(layout.wheel_path, WHEELS)])
    packer = Packer(
        out=out, limit=LIMIT, form=wiring.volume_format(), progress=SilentProgress(), bundle="frozen",
        parity=0 if base else 1, held=held, apart=apart,
    )  # fmt: skip
    fetched = [
        Fetched(path, kind, "made by hand", Blob(place, digest_file(place, packer.block_size)))
        for path, (place, kind) in files.items()
    ]
    with packer.alone():
        packed = packer.pack(fetched)
        loose = {layout.BOOTSTRAP: b"# the bootstrap\n", layout.READ_ME: "읽어 보십시오\n".encode()}
        manifest = Manifest(
            block_size=packer.block_size,
            name="frozen",
            sequence=sequence,
            description="형식 시험 / format test",
            created="2026-12-02T00:00:00Z",
            target=Target(python="3.12", glibc="2.31"),
            engine=ShippedEngine(
                name="llama.cpp", version="1", distribution="toy",
                requirements=layout.ENGINE_REQUIREMENTS,
            ),
            tool=ShippedTool(
                version="0", requirements=layout.TOOL_REQUIREMENTS,
                uv_wheel=layout.wheel_path(WHEELS[1]),
            ),
            models=(ShippedModel(name="toy", source="local", origin="toy"),),
            services=(Service(name="toy", model="toy"),),
            acceptance=Acceptance(),
            files=(RuntimeFile(path="files/안내.txt", role="other"),),
            base=Base(name="frozen", manifest_sha256=base.digest) if base else None,
            volumes=packed.volumes,
            parity=packed.parity,
            loose=tuple(loose_file(name, data) for name, data in sorted(loose.items())),
            entries=packed.entries,
        )  # fmt: skip
        packer.finish(manifest, loose, wiring.signer(work / "builder.key.pem"))


def _seal(verified: VerifiedManifest) -> None:
    stick = PLACE / "sealed"
    stick.mkdir()
    copier = Copier(
        source=PLACE / "bundle", verified=verified, form=wiring.volume_format(),
        probe=wiring.medium_probe(), clock=wiring.clock(), progress=SilentProgress(),
        seal=VolumeKey.read(PLACE / "volumes.key"),
    )  # fmt: skip
    copier.copy([stick])
    copier.list_file.unlink()


if __name__ == "__main__":
    main()
