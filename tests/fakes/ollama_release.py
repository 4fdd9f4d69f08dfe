"""An archive packed like Ollama's Linux release, with the stand-in of `toy_ollama.py` in it, and a bundle of it."""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bundler import wiring
from bundler.adapters.wheels_uv.resolver import UvResolver
from bundler.build.tags import best_wheel
from bundler.build.tools import BuildTools
from bundler.domain.hostindex import HostIndex
from bundler.domain.lock import LockedWheel
from bundler.domain.spec import BundleSpec
from bundler.format.digests import sha256_hex
from bundler.ports import WheelRequest
from tests.fakes.small_bundle import PYTHON, SmallBundle

TOY = Path(__file__).with_name("toy_ollama.py")
# Name -> content and mode; a text that begins with `->` is a symbolic link.
RELEASE: dict[str, tuple[bytes, int]] = {
    "./bin/ollama": (TOY.read_bytes(), 0o755),
    "./lib/ollama/llama-server": (b"#!/bin/sh\nexit 0\n", 0o755),
    "./lib/ollama/libtoy.so.1.2.3": (b"not really an object\n" * 100, 0o644),
    "./lib/ollama/libtoy.so.1": (b"->libtoy.so.1.2.3", 0o777),
    "./lib/ollama/cuda_v12/text.txt": (b"text\n", 0o644),
    "./lib/ollama/copy.txt": (b"->cuda_v12/text.txt", 0o777),
}


def packed(members: Iterable[tarfile.TarInfo | tuple[tarfile.TarInfo, bytes]], form: str) -> bytes:
    """A tar archive: `tar`, `tgz` or `tar.zst`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for member in members:
            info, data = member if isinstance(member, tuple) else (member, b"")
            tar.addfile(info, io.BytesIO(data))
    if form == "tgz":
        return gzip.compress(buffer.getvalue(), mtime=0)
    if form == "tar.zst":
        return zstd(buffer.getvalue())
    return buffer.getvalue()


def zstd(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression.zstd import compress
    else:
        from backports.zstd import compress
    packed_data: bytes = compress(data)
    return packed_data


def release(form: str = "tgz", changes: dict[str, tuple[bytes, int] | None] | None = None) -> bytes:
    """The archive; `changes` add, replace, or with None remove members."""
    wanted = {**RELEASE, **(changes or {})}
    return packed([member(name, *one) for name, one in wanted.items() if one is not None], form)


def member(name: str, data: bytes, mode: int) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.mode = mode
    if data.startswith(b"->"):
        info.type, info.linkname = tarfile.SYMTYPE, data[2:].decode()
        return info, b""
    info.size = len(data)
    return info, data


class _ToolByHand:
    """The engine's closure is the real resolver's question; airbundle's own comes from hand-made wheels."""

    floors = ("2.28",)

    def __init__(self, by_hand: Any) -> None:
        self._by_hand = by_hand
        self._real = UvResolver(
            runner=wiring.runner(), uv=wiring.uv_program(), python=sys.executable,
            index=HostIndex(default_index="http://127.0.0.1:9/simple"), choose=best_wheel,
        )  # fmt: skip

    def resolve(self, request: WheelRequest) -> tuple[LockedWheel, ...]:
        ollama = request.requirements[0].startswith("ollama")
        answer: tuple[LockedWheel, ...] = (self._real if ollama else self._by_hand).resolve(request)
        return answer


@dataclass
class OllamaBundle(SmallBundle):
    """A small bundle whose engine is an archive."""

    form: str = "tgz"
    waivers: tuple[dict[str, str], ...] = ()

    @property
    def archive(self) -> Path:
        return self.folder / f"ollama-linux-amd64.{self.form}"

    def spec(self) -> BundleSpec:
        raw = super().spec().model_dump(mode="json")
        raw["settings"]["args"] = []
        raw["settings"].setdefault("max_model_len", None)
        raw["engine"] = {
            "name": "ollama",
            "version": "0.33.0",
            "archive": {
                "path": self.archive.name,
                "sha256": sha256_hex(self.archive.read_bytes()),
            },
        }
        raw["waivers"] = self.waivers
        raw["target"] = {"python": PYTHON, "glibc": "2.31"}
        return BundleSpec.model_validate(raw)

    def prepare(self) -> None:
        super().prepare()
        self.archive.write_bytes(release(self.form))
        model = self.folder / "model"
        (model / "template").write_text("{{ .Prompt }}")
        (model / "params").write_text('{"stop": ["<|im_end|>"]}')

    def tools(self, resolver: Any = None) -> BuildTools:
        small = super().tools()
        return replace(
            small,
            resolver=resolver or _ToolByHand(small.resolver),
            engine=wiring.ENGINES["ollama"](),
        )
