"""A model's own files -> ModelFacts: a few small files and the headers of the weights are read.

The same code serves before the fetch, over range requests, and after it, on the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bundler.build.ggufshapes import FILE_TYPES, GgufShape
from bundler.build.modelshapes import layer_groups, number, text_config
from bundler.build.quantization import quantization
from bundler.build.weightsafety import HEAD_BYTES, runs_code
from bundler.domain.lock import LockedFile, LockedModel
from bundler.domain.model_facts import ModelFacts
from bundler.format.gguf import Gguf, read_gguf
from bundler.format.safetensors import HeaderFault, Tensor, read_tensors
from bundler.format.workers import Idle, in_parallel

MODEL_FACTS_VERSION = 1
Read = Callable[[LockedFile, int, int], bytes]
# The largest index of a real model has some 10 MB; a tokenizer is never read.
_MAX_JSON = 64 * 2**20
_STREAMS = 4
_EXPERT = re.compile(r"\.(experts|mlp\.experts)\.|_exps\.")
_INDEX = "model.safetensors.index.json"
_SPLIT = re.compile(r"(?P<stem>.+)-(?P<at>\d{5})-of-(?P<count>\d{5})\.(?P<kind>safetensors|gguf)")
_TOKENIZERS = {
    "tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt", "spiece.model",
    "tokenizer.tiktoken", "qwen.tiktoken", "tiktoken.model", "sentencepiece.bpe.model",
}  # fmt: skip
_CODE_MAPS = (
    "config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json",
    "generation_config.json", "video_preprocessor_config.json",
)  # fmt: skip


@dataclass(frozen=True)
class _Files:
    """A model's files by path, and what was wrong with them."""

    model: LockedModel
    read: Read
    faults: list[str] = field(default_factory=list)
    parsed: dict[str, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def by_path(self) -> dict[str, LockedFile]:
        return {file.path: file for file in self.model.files}

    def json(self, path: str) -> dict[str, Any]:
        """A JSON object; empty when it is absent or broken, which is then a fault."""
        if path not in self.parsed:
            self.parsed[path] = self._parse(path)
        return self.parsed[path]

    def _parse(self, path: str) -> dict[str, Any]:
        file = self.by_path.get(path)
        if file is None:
            return {}
        if file.size > _MAX_JSON:
            self.faults.append(f"{path}: {file.size} bytes")
            return {}
        try:
            value = json.loads(self.read(file, 0, file.size))
        except (ValueError, RecursionError) as cause:
            self.faults.append(f"{path}: is not JSON: {str(cause)[:80]}")
            return {}
        if not isinstance(value, dict):
            self.faults.append(f"{path}: is no JSON object")
            return {}
        return value

    def ending(self, suffix: str) -> list[LockedFile]:
        return [file for path, file in sorted(self.by_path.items()) if path.endswith(suffix)]


def read_model(model: LockedModel, read: Read) -> ModelFacts:
    """Read a model's facts.

    Args:
        model: its files.
        read: gives bytes of a file from an offset on, fewer at its end.

    Raises:
        SourceError: whatever `read` raises. Broken content is a fault in the facts.
    """
    files = _Files(model, read)
    common = {
        "name": model.name,
        "pickles": tuple(_pickles(files)),
        "has_tokenizer": any(path.rsplit("/", 1)[-1] in _TOKENIZERS for path in files.by_path),
    }
    ggufs = [file for file in files.ending(".gguf") if "mmproj" not in file.path]
    if ggufs:
        return _gguf_facts(files, ggufs, common)
    return _safetensors_facts(files, common)


def _pickles(files: _Files) -> Iterable[str]:
    for path, file in sorted(files.by_path.items()):

        def head(file: LockedFile = file) -> bytes:
            return files.read(file, 0, min(file.size, HEAD_BYTES))

        if runs_code(path, file.size, head):
            yield path


def _safetensors_facts(files: _Files, common: Mapping[str, Any]) -> ModelFacts:
    config = files.json("config.json")
    adapter = files.json("adapter_config.json")
    text = text_config(config)
    groups, unknown = layer_groups(text) if config else ((), "")
    tensors, missing = _weights(files)
    method, block = quantization(config, text)
    tokenizer = files.json("tokenizer_config.json")
    templates = {"chat_template.jinja", "chat_template.json"} & set(files.by_path)
    weights = files.ending(".safetensors")
    return ModelFacts(
        **common,
        format="adapter" if adapter else "safetensors" if weights else
        "pickle" if common["pickles"] else "none",
        architectures=tuple(_texts(config.get("architectures"))),
        model_type=_text(config.get("model_type")),
        text_model_type=_text(text.get("model_type")) if text is not config else "",
        groups=groups,
        unknown_layers=unknown,
        attention_heads=number(text, "num_attention_heads", "n_head") or None,
        hidden_size=number(text, "hidden_size", "n_embd", "d_model") or None,
        vocab_size=number(text, "vocab_size") or number(config, "vocab_size") or None,
        max_context=_max_context(text) or None,
        experts=number(text, "num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"),
        experts_per_token=number(text, "num_experts_per_tok", "moe_topk", "top_k_experts", "moe_k"),
        moe_intermediate_size=number(text, "moe_intermediate_size", "expert_ffn_hidden_size",
                                     "intermediate_size") or None,
        mtp_layers=number(text, "mtp_num_hidden_layers", "num_nextn_predict_layers"),
        state_dtype=_text(text.get("mamba_ssm_dtype")) or "float32",
        quantization=method,
        quantization_block=block,
        remote_code=tuple(_remote_code(files)),
        missing=tuple(missing),
        faults=tuple(files.faults),
        has_config=bool(config),
        has_chat_template=bool(templates or tokenizer.get("chat_template")),
        base_model=_text(adapter.get("base_model_name_or_path")),
        **_sums(tensors),
    )  # fmt: skip


def _gguf_facts(files: _Files, ggufs: list[LockedFile], common: Mapping[str, Any]) -> ModelFacts:
    def look(file: LockedFile, _: object) -> Gguf | None:
        try:
            return read_gguf(lambda at, length: files.read(file, at, length), file.size)
        except HeaderFault as fault:
            files.faults.append(f"{file.path}: {fault}")
            return None

    parts = [part for part in in_parallel(_STREAMS, look, ggufs, Idle()) if part]
    metadata = parts[0].metadata if parts else {}
    shape = GgufShape(metadata)
    groups, unknown = shape.groups() if metadata else ((), "")
    tensors = [tensor for part in parts for tensor in part.tensors]
    return ModelFacts(
        **{**common, "has_tokenizer": "tokenizer.ggml.model" in metadata},
        format="gguf",
        model_type=shape.architecture,
        groups=groups,
        unknown_layers=unknown,
        attention_heads=shape.number("attention.head_count") or None,
        hidden_size=shape.number("embedding_length") or None,
        max_context=shape.number("context_length") or None,
        experts=shape.number("expert_count"),
        experts_per_token=shape.number("expert_used_count"),
        moe_intermediate_size=shape.number("expert_feed_forward_length") or None,
        mtp_layers=shape.number("nextn_predict_layers"),
        quantization=FILE_TYPES.get(metadata.get("general.file_type", -1), ""),
        missing=tuple(_missing_parts(files)),
        faults=tuple(files.faults),
        has_chat_template=bool(metadata.get("tokenizer.chat_template")),
        **_sums(tensors),
    )


def _weights(files: _Files) -> tuple[list[Tensor], list[str]]:
    """Tensors of every shard, and the shards that are named but not there."""

    def look(file: LockedFile, _: object) -> list[Tensor]:
        try:
            return read_tensors(lambda at, length: files.read(file, at, length), file.size)
        except HeaderFault as fault:
            files.faults.append(f"{file.path}: {fault}")
            return []

    shards = files.ending(".safetensors")
    found = in_parallel(_STREAMS, look, shards, Idle())
    tensors = [tensor for some in found for tensor in some]
    placed = files.json(_INDEX).get("weight_map", {})
    if not isinstance(placed, dict):
        files.faults.append(f"{_INDEX}: weight_map is no object")
        placed = {}
    named = {name for name in placed.values() if isinstance(name, str)}
    missing = sorted(named - set(files.by_path)) or sorted(set(_missing_parts(files)))
    if not missing and not files.faults and placed:
        absent = sorted(set(placed) - {tensor.name for tensor in tensors})
        if absent:
            files.faults.append(
                f"{_INDEX}: {len(absent)} tensors are in no shard, first {absent[0]}"
            )
    return tensors, missing


def _missing_parts(files: _Files) -> Iterable[str]:
    """Parts of a numbered set (`-00001-of-00014.`) that are not there."""
    for path in sorted(files.by_path):
        match = _SPLIT.fullmatch(path)
        if match and int(match["count"]) <= len(files.by_path) + 10_000:
            for at in range(1, int(match["count"]) + 1):
                name = f"{match['stem']}-{at:05d}-of-{match['count']}.{match['kind']}"
                if name not in files.by_path:
                    yield name


def _sums(tensors: list[Tensor]) -> dict[str, Any]:
    dtypes: dict[str, int] = {}
    for tensor in tensors:
        dtypes[tensor.dtype] = dtypes.get(tensor.dtype, 0) + tensor.size
    return {
        "weight_bytes": sum(dtypes.values()),
        "expert_bytes": sum(t.size for t in tensors if _EXPERT.search(t.name)),
        "dtypes": dtypes,
        "tensors": len(tensors),
    }


def _remote_code(files: _Files) -> Iterable[str]:
    """What `auto_map` names: files of the model, or `repo--module.Class` of another repository."""
    found = set()
    for path in _CODE_MAPS:
        mapped = files.json(path).get("auto_map")
        values = list(mapped.values()) if isinstance(mapped, dict) else []
        for value in values:
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str) and "." in text:
                    repo, _, rest = text.rpartition("--")
                    module = rest.rpartition(".")[0].replace(".", "/")
                    found.add(f"{repo}--{module}.py" if repo else f"{module}.py")
    return sorted(found)


def _max_context(text: Mapping[str, Any]) -> int:
    """max_position_embeddings, stretched as vLLM does for YaRN (config/model.py)."""
    length = number(text, "max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    scaling = text.get("rope_scaling") or text.get("rope_parameters")
    if not isinstance(scaling, dict):
        return length
    kind = scaling.get("rope_type", scaling.get("type"))
    factor = scaling.get("factor")
    if kind == "yarn" and isinstance(factor, (int, float)) and 1 <= factor < 10_000:
        original = number(scaling, "original_max_position_embeddings")
        return int(original * factor) if original else length
    return length


def _text(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= 200 else ""


def _texts(value: Any) -> list[str]:
    return [item for item in map(_text, value if isinstance(value, list) else []) if item][:100]
