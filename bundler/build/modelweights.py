"""Which files hold the weights that the engine loads, what their headers say, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bundler.build.modelfiles import ModelFiles
from bundler.domain.lock import LockedFile
from bundler.format.gguf import Gguf, read_gguf
from bundler.format.safetensors import HeaderFault, Tensor, read_tensors
from bundler.format.untrusted import shown
from bundler.format.workers import Idle, in_parallel

INDEX = "model.safetensors.index.json"
_STREAMS = 4
_MAX_MISSING = 1000
_EXPERT = re.compile(r"(?:^|\.)experts\.|_exps\.")
_SPLIT = re.compile(r"(?P<stem>.+)-(?P<at>\d{5})-of-(?P<count>\d{5})\.(?P<kind>safetensors|gguf)")


@dataclass(frozen=True)
class Weights:
    """Headers of the weight files that count, in order of their names.

    `unused` are weight files beside them that the engine does not load.
    """

    files: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    tensors: tuple[Tensor, ...] = ()
    missing: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    metadata: tuple[Gguf, ...] = ()

    def sums(self) -> dict[str, Any]:
        """The fields of ModelFacts that are added up."""
        dtypes: dict[str, int] = {}
        for tensor in self.tensors:
            dtypes[tensor.dtype] = dtypes.get(tensor.dtype, 0) + tensor.size
        experts = (tensor.size for tensor in self.tensors if _EXPERT.search(tensor.name))
        return {
            "weight_bytes": sum(dtypes.values()),
            "expert_bytes": sum(experts),
            "dtypes": dtypes,
            "tensors": len(self.tensors),
            "weight_files": self.files,
            "unused_weights": self.unused,
        }


def gguf_weights(files: ModelFiles) -> Weights:
    """The GGUF that llama-server is given: the first by name, with all its parts."""
    every = [file for file in files.by_path.values() if file.path.endswith(".gguf")]
    whole = [file for file in every if "mmproj" not in file.path]
    if not whole:
        return Weights()
    split = _SPLIT.fullmatch(whole[0].path)
    served = [file for file in whole if _same_set(file, split)] if split else whole[:1]

    def look(file: LockedFile, _: object) -> Gguf | str:
        try:
            return read_gguf(files.part(file), file.size)
        except HeaderFault as fault:
            return f"{file.path}: {fault}"

    looked = in_parallel(_STREAMS, look, served, Idle())
    found = tuple(one for one in looked if isinstance(one, Gguf))
    return Weights(
        files=tuple(file.path for file in served),
        unused=tuple(file.path for file in whole if file not in served),
        tensors=tuple(tensor for one in found for tensor in one.tensors),
        missing=_absent(files, served),
        faults=tuple(one for one in looked if isinstance(one, str)),
        metadata=found,
    )


def safetensors_weights(files: ModelFiles) -> Weights:
    """The shards that vLLM loads: those of the index, else all in the model's own folder."""
    placed = files.json(INDEX).get("weight_map", {})
    if not isinstance(placed, dict):
        files.faults.append(f"{INDEX}: weight_map is no object")
        placed = {}
    named = {name for name in placed.values() if isinstance(name, str)}
    every = files.top(".safetensors")
    served = [file for file in every if file.path in named] if named else _without_second(every)

    def look(file: LockedFile, _: object) -> list[Tensor] | str:
        try:
            return read_tensors(files.part(file), file.size)
        except HeaderFault as fault:
            return f"{file.path}: {fault}"

    looked = in_parallel(_STREAMS, look, served, Idle())
    tensors = [tensor for one in looked if isinstance(one, list) for tensor in one]
    faults = [one for one in looked if isinstance(one, str)]
    absent = sorted(named - set(files.by_path))[:_MAX_MISSING]
    missing = tuple(map(shown, absent)) or _absent(files, served)
    if not missing and not faults:
        faults += _unplaced(placed, tensors)
    return Weights(
        files=tuple(file.path for file in served),
        unused=tuple(file.path for file in every if file not in served),
        tensors=tuple(tensors),
        missing=missing,
        faults=tuple(faults),
    )


def _without_second(every: list[LockedFile]) -> list[LockedFile]:
    """Mistral's repositories hold the same weights twice, once as `consolidated`."""
    rest = [file for file in every if not file.path.startswith("consolidated")]
    return rest or every


def _unplaced(placed: dict[str, Any], tensors: Iterable[Tensor]) -> list[str]:
    absent = sorted(set(placed) - {tensor.name for tensor in tensors})
    if not absent:
        return []
    return [f"{INDEX}: {len(absent)} tensors are in no shard, first {shown(absent[0])}"]


def _same_set(file: LockedFile, split: re.Match[str]) -> bool:
    other = _SPLIT.fullmatch(file.path)
    return bool(other and other["stem"] == split["stem"] and other["count"] == split["count"])


def _absent(files: ModelFiles, served: list[LockedFile]) -> tuple[str, ...]:
    """Parts of numbered sets (`-00001-of-00014.`) that are not there."""
    sets = {
        (match["stem"], match["count"], match["kind"])
        for match in (_SPLIT.fullmatch(file.path) for file in served)
        if match
    }
    names = (
        f"{stem}-{at:05d}-of-{count}.{kind}"
        for stem, count, kind in sorted(sets)
        for at in range(1, int(count) + 1)
    )
    return tuple(name for name in names if name not in files.by_path)[:_MAX_MISSING]
