"""What a bundle says of itself, for a person. Nothing here is trusted; `verify` is what trusts."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from bundler.domain.needs import needs_lines
from bundler.domain.sizes import human
from bundler.format import layout
from bundler.format.digests import sha256_hex
from bundler.review.reading import read_manifest


def inspect_bundle(folder: Path) -> dict[str, Any]:
    """Read a bundle's manifest.

    Raises:
        MissingVolumeError: the folder has no manifest.
        FormatError: it is not a manifest that this version reads.
    """
    manifest, data = read_manifest(folder)
    sizes: dict[str, list[int]] = defaultdict(list)
    models: dict[str, int] = defaultdict(int)
    for entry in manifest.entries:
        sizes[entry.kind].append(entry.size)
        if entry.kind == "model":
            models[entry.path.split("/")[1]] += entry.size
    target = manifest.target
    return {
        "name": manifest.name,
        "manifest_sha256": sha256_hex(data),
        "description": manifest.description,
        "created": manifest.created,
        "target": f"{target.os} {target.arch}, CPython {target.python}, glibc {target.glibc}",
        "engine": f"{manifest.engine.distribution} {manifest.engine.version}",
        "tool": f"airbundle {manifest.tool.version}",
        "base": manifest.base.bundle_id if manifest.base else "",
        "signature": "present" if (folder / layout.SIGNATURE).is_file() else "NONE",
        "needs": needs_lines(manifest.needs),
        "waived": [f"{item.code}: {item.what} ({item.reason})" for item in manifest.waived],
        "models": [
            [
                model.name,
                f"{model.origin}@{model.revision}" if model.revision else model.origin,
                model.licence or "unknown",
                human(models[model.name]),
            ]
            for model in manifest.models
        ],
        "kinds": [[kind, str(len(s)), human(sum(s))] for kind, s in sorted(sizes.items())],
        "volumes": [[v.name, human(v.size), v.sha256] for v in manifest.volumes],
        "services": [service.model_dump(mode="json") for service in manifest.services],
    }
