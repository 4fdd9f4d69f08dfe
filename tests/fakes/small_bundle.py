"""A small real bundle, built by the product's own pipeline from hand-made wheels and model files."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bundler import connecting, wiring
from bundler.adapters.fetch_http.download import HttpDownloader
from bundler.build.pipeline import Built, build, make_lock
from bundler.build.store import ContentStore
from bundler.build.tools import BuildTools
from bundler.build.toolwheel import write_tool_wheel
from bundler.cli.console import SilentProgress
from bundler.domain.hostindex import HostIndex
from bundler.domain.lock import Lock
from bundler.domain.spec import BundleSpec
from bundler.format import layout
from bundler.ports import WheelRequest
from tests.fakes.gguf import gguf_bytes
from tests.fakes.ports import FixedClock, FolderResolver
from tests.fakes.wheels import make_wheel

TOY = Path(__file__).with_name("toy_engine.py")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass
class SmallBundle:
    """Builds below `folder`; `out` is the bundle, `public` the key to check it with."""

    folder: Path
    args: tuple[str, ...] = ()
    port: int = 18999
    volume_size: int = 200_000
    acceptance: dict[str, Any] = field(default_factory=dict)
    bundle_name: str = "small"
    files: tuple[dict[str, str], ...] = ()
    exclude: tuple[str, ...] = ()
    parity: int = 0
    sealable: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    services: tuple[dict[str, Any], ...] = ()
    engine: str = "llama.cpp"
    ray: bool = False
    waived: tuple[str, ...] = ()

    @property
    def out(self) -> Path:
        return self.folder / "bundle"

    @property
    def public(self) -> Path:
        return self.folder / "keys" / "k.pub.pem"

    @property
    def private(self) -> Path:
        return self.folder / "keys" / "k.key.pem"

    def spec(self) -> BundleSpec:
        return BundleSpec.model_validate(
            {
                "name": self.bundle_name,
                "description": "작은 시험 번들",
                "target": {"python": PYTHON, "glibc": "2.17"},
                "models": [{"source": "local", "name": "toy", "path": "model"}],
                "files": self.files,
                "engine": {
                    "name": self.engine,
                    "version": "1.0",
                    "package": "toy-engine",
                    "exclude": self.exclude,
                },
                "settings": {"args": self.args, "max_num_seqs": 8, **self.settings},
                "services": self.services or [{"name": "toy", "model": "toy", "port": self.port}],
                "waivers": [
                    {"code": code, "reason": "a stand-in for the engine"} for code in self.waived
                ],
                "volumes": {
                    "size": self.volume_size,
                    "parity": self.parity,
                    "sealable": self.sealable,
                },
                "acceptance": {
                    "concurrency": [4],
                    "requests": 60,
                    "output_tokens": 4,
                    "input_tokens": 16,
                    "slo": {"ttft_ms": 20000},
                    **self.acceptance,
                },
            }
        )

    def prepare(self) -> None:
        """Model files, wheels and keys."""
        model = self.folder / "model"
        model.mkdir(parents=True, exist_ok=True)
        (model / "toy.gguf").write_bytes(gguf_bytes(500_000))
        (model / "설명서.txt").write_text("모델 설명\n", encoding="utf-8")
        (model / "empty.json").write_bytes(b"")
        wheels = self.folder / "wheels"
        make_wheel(
            wheels,
            "toy-engine",
            "1.0",
            {"toy_engine.py": TOY.read_bytes()},
            {"llama-server-toy": "toy_engine:main"},
            requires=("toy-dependency",),
        ) if self.engine == "llama.cpp" else self._toy_vllm(wheels)
        make_wheel(wheels, "toy-dependency", "2.0", {"toy_dependency.py": b"X = 1\n"})
        make_wheel(wheels, "uv", "0.0.1", {"uv_stand_in.py": b""})
        if not self.private.exists():
            wiring.generate_keys(self.private, self.public)

    def _toy_vllm(self, wheels: Path) -> Path:
        run = b"from toy_vllm import vllm\nvllm()\n"
        return make_wheel(
            wheels,
            "toy-engine",
            "1.0",
            {
                "toy_engine.py": TOY.read_bytes(),
                "toy_vllm.py": TOY.with_name("toy_vllm.py").read_bytes(),
                "vllm/model_executor/models/registry.py": b"_TEXT_MODELS: dict = {}\n",
                "vllm/entrypoints/openai/api_server.py": run,
                "vllm/entrypoints/cli/main.py": run,
            },
            {"ray": "toy_vllm:ray"} if self.ray else None,
            requires=("toy-dependency",),
        )

    def tools(self, resolver: FolderResolver | None = None) -> BuildTools:
        wheels = self.folder / "wheels"
        store = ContentStore(self.folder / "cache")

        def closure(request: WheelRequest) -> list[Path]:
            if request.requirements[0].startswith("toy-engine"):
                return list(wheels.glob("toy_*.whl"))
            own = [path for place in request.find_links for path in place.glob("airbundle-*.whl")]
            return [*own, *wheels.glob("uv-*.whl")]

        return BuildTools(
            sources=connecting.SOURCES,
            resolver=resolver or FolderResolver(closure),
            downloader=HttpDownloader(HostIndex()),
            form=wiring.volume_format(),
            engine=wiring.ENGINES[self.engine](),
            wheels=connecting.wheel_reader(HostIndex(), store.file),
            store=store,
            clock=FixedClock(),
            progress=SilentProgress(),
        )

    def lock(self) -> Lock:
        return make_lock(self.spec(), self.folder, self.tool_wheel(), self.tools())

    def tool_wheel(self) -> Path:
        place = self.folder / "tool"
        place.mkdir(parents=True, exist_ok=True)
        return write_tool_wheel(place)

    def build(self, *, signed: bool = True, out: Path | None = None) -> SmallBundle:
        self.prepare()
        self.build_only(signed=signed, out=out)
        return self

    def build_only(
        self, *, signed: bool = True, out: Path | None = None, lock: Lock | None = None,
        base: Path | None = None,
    ) -> Built:  # fmt: skip
        return build(
            spec=self.spec(),
            lock=lock or self.lock(),
            base=self.folder,
            out=out or self.out,
            tool_wheel=self.tool_wheel(),
            signer=wiring.signer(self.private) if signed else None,
            tools=self.tools(),
            base_manifest=(base / layout.MANIFEST).read_bytes() if base else None,
        )

    def copy(self, folder: Path) -> SmallBundle:
        shutil.copytree(self.out, folder / "bundle")
        shutil.copytree(self.folder / "keys", folder / "keys")
        return replace(self, folder=folder)

    def volumes(self) -> list[Path]:
        return sorted(self.out.glob("*.zip"))
