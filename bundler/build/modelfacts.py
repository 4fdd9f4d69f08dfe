"""A model's own files -> ModelFacts: a few small files and the headers of the weights are read.

The same code serves before the fetch, over range requests, and after it, on the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bundler.build.confignumbers import misfits, number
from bundler.build.ggufshapes import GgufShape
from bundler.build.modelcode import code_of
from bundler.build.modelfiles import ModelFiles, Read
from bundler.build.modelshapes import layer_groups, text_config
from bundler.build.modelweights import gguf_weights, safetensors_weights
from bundler.build.nativeconfig import as_config
from bundler.build.quantization import quantization
from bundler.build.ropescaling import stretched
from bundler.domain.lock import LockedModel
from bundler.domain.model_facts import ModelFacts

MODEL_FACTS_VERSION = 3
_TOKENIZERS = {
    "tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt", "spiece.model",
    "tiktoken.model", "sentencepiece.bpe.model",
}  # fmt: skip
_TOKENIZER_ENDINGS = (".tiktoken", ".model.v3", ".model.v7")
# Names by the Hub's convention: https://huggingface.co/docs/hub/ollama
_COMPANIONS = ("template", "system", "params")
GGUF_ENGINES = ("llama.cpp", "ollama")
_TEMPLATES = {"chat_template.jinja", "chat_template.json", "additional_chat_templates"}
# Mistral's own tokenizer brings its templates in code (mistral-common).
_TALKING_TOKENIZER = "tekken.json"
_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
_EXPERTS_PER_TOKEN = (
    "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_k",
    "top_k_experts",
)  # fmt: skip


def read_model(model: LockedModel, read: Read, engine: str = "vllm") -> ModelFacts:
    """Read a model's facts.

    Args:
        model: its files.
        read: gives bytes of a file from an offset on, fewer at its end.
        engine: where safetensors and GGUF lie side by side, llama.cpp's and Ollama's weights are the GGUF.

    Raises:
        SourceError: whatever `read` raises. Broken content is a fault in the facts.
    """
    files = ModelFiles(model, read)
    gguf = any(path.endswith(".gguf") and "mmproj" not in path for path in files.by_path)
    if gguf and (engine in GGUF_ENGINES or not files.top(".safetensors")):
        return _gguf_facts(files)
    return _safetensors_facts(files)


def _safetensors_facts(files: ModelFiles) -> ModelFacts:
    config = files.json("config.json") or as_config(files.json("params.json"))
    text = text_config(config)
    adapter = files.json("adapter_config.json")
    weights = safetensors_weights(files)
    groups, unknown = layer_groups(text) if config else ((), "")
    method, block = quantization(config, text, files.json("hf_quant_config.json"))
    context, scaling = stretched(text)
    code = code_of(files)
    files.faults.extend(f"config.json: {key} is no number of things" for key in misfits(text))
    return ModelFacts(
        name=files.model.name,
        format="adapter" if adapter else "safetensors" if weights.files else
        "pickle" if code["pickles"] else "none",
        architectures=tuple(_texts(config.get("architectures"))),
        model_type=_text(config.get("model_type")),
        text_model_type=_text(text.get("model_type")) if text is not config else "",
        groups=groups,
        unknown_layers=unknown,
        attention_heads=number(text, "num_attention_heads", "n_head") or None,
        hidden_size=number(text, "hidden_size", "n_embd", "d_model") or None,
        vocab_size=number(text, "vocab_size") or number(config, "vocab_size") or None,
        max_context=context or None,
        rope_scaling=scaling,
        **_experts(text),
        mtp_layers=number(text, "mtp_num_hidden_layers", "num_nextn_predict_layers", "num_mtp_modules"),
        state_dtype=_text(text.get("mamba_ssm_dtype")) or "float32",
        quantization=method,
        quantization_block=block,
        missing=weights.missing,
        faults=(*files.faults, *weights.faults),
        has_config=bool({"config.json", "params.json"} & set(files.by_path)),
        has_tokenizer=_has_tokenizer(files),
        has_chat_template=_has_chat_template(files),
        base_model=_text(adapter.get("base_model_name_or_path")),
        **code,
        **weights.sums(),
    )  # fmt: skip


def _experts(text: Mapping[str, Any]) -> dict[str, Any]:
    experts = number(text, *_EXPERTS)
    width = number(text, "moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")
    return {
        "experts": experts,
        "experts_per_token": number(text, *_EXPERTS_PER_TOKEN) if experts else 0,
        "moe_intermediate_size": width if experts and width else None,
    }


def _has_tokenizer(files: ModelFiles) -> bool:
    return any(
        "/" not in path and (path in _TOKENIZERS or path.endswith(_TOKENIZER_ENDINGS))
        for path in files.by_path
    )


def _has_chat_template(files: ModelFiles) -> bool:
    tops = {path.partition("/")[0] for path in files.by_path}
    return bool(
        tops & _TEMPLATES
        or _TALKING_TOKENIZER in tops
        or files.json("tokenizer_config.json").get("chat_template")
        or files.json("processor_config.json").get("chat_template")
    )


def _gguf_facts(files: ModelFiles) -> ModelFacts:
    weights = gguf_weights(files)
    first = weights.metadata[0] if weights.metadata else None
    metadata = first.metadata if first else {}
    shape = GgufShape(metadata)
    groups, unknown = shape.groups() if metadata else ((), "")
    sums = weights.sums()
    tokens = first.lengths.get("tokenizer.ggml.tokens", 0) if first else 0
    most = max(sums["dtypes"], key=sums["dtypes"].__getitem__, default="")
    return ModelFacts(
        name=files.model.name,
        format="gguf",
        model_type=shape.architecture[:200],
        groups=groups,
        unknown_layers=unknown,
        attention_heads=shape.number("attention.head_count") or None,
        hidden_size=shape.number("embedding_length") or None,
        vocab_size=shape.number("vocab_size") or tokens or None,
        max_context=shape.number("context_length") or None,
        experts=shape.number("expert_count"),
        experts_per_token=shape.number("expert_used_count"),
        moe_intermediate_size=shape.number("expert_feed_forward_length") or None,
        mtp_layers=shape.number("nextn_predict_layers"),
        quantization=shape.file_type or most,
        missing=weights.missing,
        faults=(*files.faults, *weights.faults),
        has_tokenizer="tokenizer.ggml.model" in metadata,
        has_chat_template=bool(metadata.get("tokenizer.chat_template")),
        companions=tuple(name for name in _COMPANIONS if name in files.by_path),
        **code_of(files),
        **sums,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= 200 and value.isprintable() else ""


def _texts(value: Any) -> list[str]:
    return [item for item in map(_text, value if isinstance(value, list) else []) if item][:100]
