"""A GGUF in Ollama's own layout, without a registry and without `ollama create`.

    models/manifests/registry.ollama.ai/library/<name>/latest    the manifest, JSON
    models/blobs/sha256-<hex>                                    config and layers, named by their bytes

https://github.com/ollama/ollama: manifest/manifest.go and paths.go (where), manifest/layer.go (a layer),
types/model/config.go (the config), server/images.go GetModel (which media types are read, and what of each),
server/create.go (what `ollama create` writes). A newer Ollama reads `manifests-v2` first and this layout still.

Nothing is invented: template, system prompt and parameters are those of the files `template`, `system` and `params`
beside the GGUF, as the Hub names them (https://huggingface.co/docs/hub/ollama), and the context of the spec. Without a
template, an Ollama that has llama-server inside lets it apply the GGUF's own. The GGUF's digest is that of the signed
manifest; the file itself is linked, so nothing is copied or hashed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from bundler.domain.spec import Service, Settings
from bundler.errors import SpecError, disk_errors
from bundler.format.digests import sha256_hex
from bundler.format.gguf import file_type, read_gguf
from bundler.format.safetensors import HeaderFault
from bundler.ports import Install

FOLDER = "ollama"
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.ollama.image."
_LICENCE = re.compile(r"LICEN[CS]E[\w.-]{0,40}", re.IGNORECASE)
_LARGEST_TEXT = 1 << 20


def model_layout(install: Install, service: Service) -> dict[Path, bytes | Path]:
    """The model of a service under the service's name, as `LaunchPlan.files`.

    Raises:
        SpecError: the model has no GGUF, or several parts; a file beside it is not what its name says.
    """
    return _Making(install, service).run()


def names_of_gguf(files: tuple[str, ...], model: str) -> tuple[str, str]:
    """The GGUF that is served, and its projector for images, empty when it has none.

    Raises:
        SpecError: there is none, or it is split: a blob has no name by which its other parts are found
            (https://github.com/ollama/ollama/issues/5245).
    """
    every = sorted(name for name in files if name.endswith(".gguf"))
    whole = [name for name in every if "mmproj" not in name]
    if not whole:
        raise SpecError(f"model {model}: has no .gguf file")
    if re.search(r"-\d{5}-of-\d{5}\.gguf$", whole[0]):
        raise SpecError(
            f"model {model}: {whole[0]} is a part of a split GGUF; Ollama reads one file",
            hint="Merge it on the connected side: llama-gguf-split --merge FIRST-PART OUT.gguf",
        )
    return whole[0], next((name for name in every if "mmproj" in name), "")


class _Making:
    def __init__(self, install: Install, service: Service) -> None:
        self._install = install
        self._service = service
        self._root = install.cache_dir / FOLDER
        self._files: dict[Path, bytes | Path] = {}
        self._layers: list[dict[str, Any]] = []

    def run(self) -> dict[Path, bytes | Path]:
        """All of it."""
        gguf, projector = names_of_gguf(self._install.model_files, self._service.model)
        self._linked(gguf, "model")
        if projector:
            self._linked(projector, "projector")
        for name in self._install.model_files:
            if _LICENCE.fullmatch(name):
                self._written(self._text(name), "license")
        for name in ("template", "system"):
            if name in self._install.model_files:
                self._written(self._text(name), name)
        if params := self._params():
            self._written(_json(params), "params")
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": self._blob(_json(self._config(gguf)), _CONFIG),
            "layers": self._layers,
        }
        place = self._root / "manifests" / "registry.ollama.ai" / "library"
        self._files[place / self._service.name / "latest"] = _json(manifest)
        return self._files

    def _linked(self, name: str, kind: str) -> None:
        """A large file, under the digest that the signed manifest states."""
        if self._install.shipped is None:
            raise SpecError(f"model {self._service.model}: nothing states the digest of {name}")
        entry = self._install.shipped(name)
        self._files[self._root / "blobs" / f"sha256-{entry.sha256}"] = self._install.model / name
        self._layers.append(_layer(_LAYER + kind, entry.sha256, entry.size))

    def _written(self, data: bytes, kind: str) -> None:
        self._layers.append(self._blob(data, _LAYER + kind))

    def _blob(self, data: bytes, media_type: str) -> dict[str, Any]:
        digest = sha256_hex(data)
        self._files[self._root / "blobs" / f"sha256-{digest}"] = data
        return _layer(media_type, digest, len(data))

    def _text(self, name: str) -> bytes:
        path = self._install.model / name
        with disk_errors("reading", path), path.open("rb") as file:
            data = file.read(_LARGEST_TEXT + 1)
        if len(data) > _LARGEST_TEXT:
            raise SpecError(f"model {self._service.model}: {name} is larger than 1 MiB")
        return data

    def _params(self) -> dict[str, Any]:
        """Those of the file, and the context of the spec, which is for each request."""
        params: Any = {}
        if "params" in self._install.model_files:
            try:
                params = json.loads(self._text("params"), parse_constant=_no_number)
            except (ValueError, RecursionError):
                params = None
            if not isinstance(params, dict):
                raise SpecError(
                    f"model {self._service.model}: its file `params` is no JSON object",
                    hint='It holds Ollama\'s parameters, such as {"stop": ["<|im_end|>"]}.',
                )
        context = (self._service.settings or Settings()).max_model_len
        return {**params, **({"num_ctx": context} if context else {})}

    def _config(self, gguf: str) -> dict[str, Any]:
        """`ollama show` and the clients' lists read it; what the GGUF does not state is empty."""
        metadata = self._metadata(self._install.model / gguf)
        family = _stated(metadata.get("general.architecture"))
        digests = [layer["digest"] for layer in self._layers]
        return {
            "model_format": "gguf",
            "model_family": family,
            "model_families": [family] if family else [],
            "model_type": _stated(metadata.get("general.size_label")),
            "file_type": file_type(metadata),
            # Docker's fields, of which Ollama reads none: `amd64` stands in every model of its registry.
            "architecture": "amd64",
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": digests},
        }

    def _metadata(self, path: Path) -> dict[str, Any]:
        with disk_errors("reading", path), path.open("rb") as file:

            def read(start: int, length: int) -> bytes:
                file.seek(start)
                return file.read(length)

            try:
                return read_gguf(read, path.stat().st_size).metadata
            except HeaderFault as fault:
                raise SpecError(
                    f"model {self._service.model}: {path.name}: {fault}",
                    hint="Run `airbundle verify --quick` here; when the file is as it was built, fetch it again.",
                ) from fault


def _layer(media_type: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size}


def _no_number(text: str) -> float:
    """NaN and Infinity are no JSON, and Go's reader refuses the whole file."""
    raise ValueError(text)


def _json(value: Any) -> bytes:
    """As Go's encoder writes it, a line feed at the end."""
    return (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _stated(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= 100 and value.isprintable() else ""
