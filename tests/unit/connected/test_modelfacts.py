"""ModelFacts from files, as they lie or are fetched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.adapters.source_local import LocalSource
from bundler.build.modelfacts import read_model
from bundler.demo.tiny_gguf import write_tiny_gguf
from bundler.demo.tiny_qwen35moe import write_tiny_qwen35_moe
from bundler.domain.lock import LockedFile, LockedModel
from bundler.domain.model_facts import LayerGroup, ModelFacts
from bundler.domain.sources import ModelRef
from bundler.format.codec import to_bytes
from bundler.format.weightsafety import is_pickle, is_program
from tests.fakes.gguf import gguf_bytes
from tests.unit.format.test_safetensors import shard, tensor


def facts_of(folder: Path) -> ModelFacts:
    """Through the real source, as plan does."""
    source = LocalSource()
    model = source.pin(ModelRef(source="local", name="m", path=str(folder)), folder)
    return read_model(model, lambda file, at, n: source.read(model, file, folder, at, n))


def facts(files: dict[str, bytes | dict[str, Any]], engine: str = "vllm") -> ModelFacts:
    data = {k: v if isinstance(v, bytes) else json.dumps(v).encode() for k, v in files.items()}
    model = LockedModel(
        name="m", source="local", origin="m",
        files=tuple(LockedFile(path=path, size=len(some)) for path, some in data.items()),
    )  # fmt: skip
    return read_model(model, lambda file, at, length: data[file.path][at : at + length], engine)


QWEN = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "model_type": "qwen3_5_moe",
    "text_config": {
        "model_type": "qwen3_5_moe_text", "num_hidden_layers": 40, "full_attention_interval": 4,
        "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "hidden_size": 2048,
        "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "mamba_ssm_dtype": "float32",
        "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512,
        "max_position_embeddings": 262144, "mtp_num_hidden_layers": 1, "vocab_size": 248320,
    },
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}  # fmt: skip
LINEAR = LayerGroup(kind="linear", layers=30, k_heads=16, v_heads=32, k_dim=128, v_dim=128, conv=4)


def test_a_hybrid_mixture_of_experts() -> None:
    found = facts({"config.json": QWEN})
    assert found.architectures == ("Qwen3_5MoeForConditionalGeneration",)
    assert found.groups == (
        LayerGroup(kind="full", layers=10, kv_heads=2, head_dim=256, v_head_dim=256),
        LINEAR,
    )
    assert (found.experts, found.experts_per_token, found.moe_intermediate_size) == (256, 8, 512)
    assert (found.quantization, found.quantization_block) == ("fp8", (128, 128))
    assert (found.max_context, found.mtp_layers, found.hybrid) == (262144, 1, True)
    assert found.text_model_type == "qwen3_5_moe_text"


def groups_of(config: dict[str, Any]) -> list[tuple[str, int, int]]:
    found = facts({"config.json": config})
    return [(group.kind, group.layers, group.window) for group in found.groups]


def test_layer_types_win_over_the_interval() -> None:
    text = QWEN["text_config"] | {
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 2, "num_hidden_layers": 8,
    }  # fmt: skip
    assert groups_of({**QWEN, "text_config": text}) == [("full", 2, 0), ("linear", 6, 0)]


LLAMA = {
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "groups"),
    [
        (LLAMA, [("full", 32, 0)]),
        (LLAMA | {"sliding_window": 4096}, [("sliding", 32, 4096)]),
        (LLAMA | {"sliding_window": 4096, "use_sliding_window": False}, [("full", 32, 0)]),
        (LLAMA | {"model_type": "gemma2", "sliding_window": 4096},
         [("full", 16, 0), ("sliding", 16, 4096)]),
        (LLAMA | {"sliding_window": 1024, "sliding_window_pattern": 6, "num_hidden_layers": 62},
         [("full", 10, 0), ("sliding", 52, 1024)]),
        (LLAMA | {"num_hidden_layers": 36, "sliding_window": 128, "head_dim": 64,
                  "layer_types": ["sliding_attention", "full_attention"] * 18},
         [("full", 18, 0), ("sliding", 18, 128)]),
        (LLAMA | {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_hidden_layers": 61},
         [("mla", 61, 0)]),
        (LLAMA | {"attn_layer_period": 8, "attn_layer_offset": 4, "mamba_n_groups": 1,
                  "mamba_n_heads": 128, "mamba_d_state": 16, "mamba_d_head": 64, "mamba_d_conv": 4},
         [("full", 4, 0), ("linear", 28, 0)]),
        (LLAMA | {"hybrid_override_pattern": "M-M*-M", "num_hidden_layers": 6, "n_groups": 8,
                  "mamba_num_heads": 64, "ssm_state_size": 128, "mamba_head_dim": 64, "conv_kernel": 4},
         [("full", 1, 0), ("linear", 3, 0)]),
        (LLAMA | {"num_kv_shared_layers": 10, "layer_types": ["full_attention"] * 32},
         [("full", 22, 0)]),
    ],
)  # fmt: skip
def test_shapes(config: dict[str, Any], groups: list[tuple[str, int, int]]) -> None:
    assert groups_of(config) == groups


def test_what_is_not_known_is_said() -> None:
    found = facts({"config.json": LLAMA | {"layer_types": ["quantum", "full_attention"] * 16}})
    assert "quantum" in found.unknown_layers
    assert facts({"config.json": {"model_type": "x"}}).unknown_layers
    jamba = facts({"config.json": LLAMA | {"attn_layer_period": 8}})
    assert "28 mamba layers state no sizes" in jamba.unknown_layers


def test_yarn_stretches_the_context() -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    config = LLAMA | {"max_position_embeddings": 32768}
    assert facts({"config.json": config}).max_context == 32768
    assert facts({"config.json": config | {"rope_scaling": yarn}}).max_context == 131072


@pytest.mark.parametrize(
    ("stated", "method", "block"),
    [
        ({"quant_method": "awq", "bits": 4}, "awq", ()),
        ({"quant_method": "mxfp4"}, "mxfp4", ()),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", ()),
        ({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}}, "fp8", ()),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", (128, 128)),
        ({"quant_method": ["fp8"]}, "", ()),
        ({"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {
            "g": {"weights": {"num_bits": 8, "type": "float", "block_structure": [128, 128]}}}},
         "fp8", (128, 128)),
        ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": {
            "g": {"weights": {"num_bits": 4, "type": "float"}}}}, "nvfp4", ()),
        ({"quant_method": "compressed-tensors", "config_groups": {
            "g": {"weights": {"num_bits": 4, "type": "int"}}}}, "int4", ()),
        ("nonsense", "", ()),
    ],
)  # fmt: skip
def test_quantization(stated: Any, method: str, block: tuple[int, ...]) -> None:
    found = facts({"config.json": LLAMA | {"quantization_config": stated}})
    assert (found.quantization, found.quantization_block) == (method, block)


def test_modelopts_own_file_is_read_where_the_config_is_silent() -> None:
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4"}}
    assert facts({"config.json": LLAMA, "hf_quant_config.json": beside}).quantization == "nvfp4"
    stated = LLAMA | {"quantization_config": {"quant_method": "awq"}}
    assert facts({"config.json": stated, "hf_quant_config.json": beside}).quantization == "awq"


EXPERTS = {
    "model.layers.0.mlp.experts.0.up.weight": tensor("F8_E4M3", [8], 0, 8),
    "model.layers.0.mlp.shared_expert.up.weight": tensor("BF16", [2], 8, 12),
    "lm_head.weight": tensor("BF16", [2], 12, 16),
    "model.layers.0.mlp.shared_experts.up.weight": tensor("BF16", [1], 16, 18),
}


def test_weights_are_summed_from_the_headers() -> None:
    found = facts({"config.json": LLAMA, "model.safetensors": shard(EXPERTS, 18)})
    assert (found.weight_bytes, found.expert_bytes, found.tensors) == (18, 8, 4)
    assert found.dtypes == {"F8_E4M3": 8, "BF16": 10}
    assert found.format == "safetensors"


def test_missing_shards_are_named_by_the_index_and_by_their_numbers() -> None:
    index = {"weight_map": {"a": "model-00001-of-00003.safetensors",
                            "b": "model-00003-of-00003.safetensors"}}  # fmt: skip
    only = {"model-00001-of-00003.safetensors": shard({"a": tensor("U8", [1], 0, 1)}, 1)}
    found = facts({"model.safetensors.index.json": index, **only})
    assert found.missing == ("model-00003-of-00003.safetensors",)
    assert facts(only).missing == tuple(f"model-0000{n}-of-00003.safetensors" for n in (2, 3))


ONE = shard({"a": tensor("U8", [4], 0, 4)}, 4)
GGUF = gguf_bytes(4096)


@pytest.mark.parametrize(
    ("files", "engine", "loaded", "unused"),
    [
        # Mistral's repositories hold the same weights twice.
        ({"config.json": LLAMA, "model.safetensors": ONE, "consolidated.safetensors": ONE}, "vllm",
         ("model.safetensors",), ("consolidated.safetensors",)),
        ({"params.json": {}, "consolidated.safetensors": ONE}, "vllm",
         ("consolidated.safetensors",), ()),
        # The index decides; what lies in a folder below is not looked at.
        ({"model.safetensors.index.json": {"weight_map": {"a": "m1.safetensors"}},
          "m1.safetensors": ONE, "m2.safetensors": ONE, "original/m3.safetensors": ONE}, "vllm",
         ("m1.safetensors",), ("m2.safetensors",)),
        # llama-server is given the first GGUF by name, of a split one all the parts.
        ({"m-Q4.gguf": GGUF, "m-Q8.gguf": GGUF, "mmproj.gguf": GGUF}, "llama.cpp",
         ("m-Q4.gguf",), ("m-Q8.gguf",)),
        ({"q/m-00001-of-00002.gguf": GGUF, "q/m-00002-of-00002.gguf": GGUF, "z.gguf": GGUF},
         "llama.cpp", ("q/m-00001-of-00002.gguf", "q/m-00002-of-00002.gguf"), ("z.gguf",)),
        # Side by side each engine takes its own.
        ({"model.safetensors": ONE, "m.gguf": GGUF}, "vllm", ("model.safetensors",), ()),
        ({"model.safetensors": ONE, "m.gguf": GGUF}, "llama.cpp", ("m.gguf",), ()),
        ({"m.gguf": GGUF}, "vllm", ("m.gguf",), ()),
        ({"below/model.safetensors": ONE}, "vllm", (), ()),
    ],
)  # fmt: skip
def test_only_what_the_engine_loads_counts(
    files: dict[str, Any], engine: str, loaded: tuple[str, ...], unused: tuple[str, ...]
) -> None:
    found = facts(files, engine)
    assert (found.weight_files, found.unused_weights) == (loaded, unused)
    one = len(GGUF) if engine == "llama.cpp" or loaded == ("m.gguf",) else 4
    assert (len(loaded) - 1) * one < found.weight_bytes + bool(not loaded) <= len(loaded) * one + 1
    assert not found.missing


def test_ollama_takes_the_gguf_and_what_lies_beside_it_for_it() -> None:
    found = facts(
        {"model.safetensors": ONE, "m.gguf": GGUF, "template": b"{{ .Prompt }}", "params": b"{}"},
        "ollama",
    )
    assert (found.weight_files, found.companions) == (("m.gguf",), ("template", "params"))


def test_missing_parts_of_a_split_gguf_are_each_named_once() -> None:
    found = facts({"m-00002-of-00004.gguf": GGUF, "m-00003-of-00004.gguf": GGUF}, "llama.cpp")
    assert found.missing == ("m-00001-of-00004.gguf", "m-00004-of-00004.gguf")
    endless = facts({"m-00001-of-99999.safetensors": ONE})
    assert len(endless.missing) == 1000
    index = {"weight_map": {str(n): f"{n:04d}.safetensors" for n in range(1500)}}
    assert len(facts({"model.safetensors.index.json": index}).missing) == 1000


def test_shards_that_are_all_left_out_are_named_by_the_index() -> None:
    index = {"weight_map": {"a": "x.safetensors", "b": "\ud800.safetensors", "c": 5}}
    found = facts({"config.json": LLAMA, "model.safetensors.index.json": index})
    assert found.format == "none"
    assert found.missing == ("x.safetensors", "\N{REPLACEMENT CHARACTER}.safetensors")


def test_faults_of_several_shards_come_in_their_order() -> None:
    bad = {f"m{n}.safetensors": shard(EXPERTS, 15) for n in range(9)}
    assert [fault[:2] for fault in facts(bad).faults] == [f"m{n}" for n in range(9)]


def test_a_tensor_that_is_in_no_shard_is_a_fault() -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model.safetensors"}}
    found = facts({
        "model.safetensors.index.json": index,
        "model.safetensors": shard({"a": tensor("U8", [1], 0, 1)}, 1),
    })  # fmt: skip
    assert "1 tensors are in no shard, first b" in found.faults[0]


def test_a_broken_header_is_a_fault_with_its_file() -> None:
    found = facts({"config.json": LLAMA, "model.safetensors": shard(EXPERTS, 15)})
    assert found.faults[0].startswith("model.safetensors: ")
    assert facts({"config.json": b"[" * 50_000}).faults[0].startswith("config.json: is not JSON")
    assert facts(
        {"config.json": {"hidden_size": "4096", "num_attention_heads": [8, 4]}}
    ).faults == ("config.json: hidden_size is no number of things",)
    assert facts({"config.json": {"vocab_size": -1}}).faults
    assert not facts({"config.json": {"vocab_size": None}}).faults
    assert facts({"config.json": b"[]"}).has_config
    assert facts({"config.json": b"[]"}).faults == ("config.json: is no JSON object",)


def test_code_that_auto_map_names() -> None:
    found = facts({
        "config.json": LLAMA | {"auto_map": {"AutoModel": "modeling_x.XModel"}},
        "tokenizer_config.json": {"auto_map": {"AutoTokenizer": ["other/repo--tok.Tok", None]}},
    })  # fmt: skip
    assert found.remote_code == ("modeling_x.py", "other/repo--tok.py")
    assert found.absent_code == ("modeling_x.py",)
    found = facts({
        "config.json": LLAMA | {"auto_map": {"AutoModel": "modeling_x.XModel"}},
        "modeling_x.py": b"", "convert.py": b"", "custom_generate/generate.py": b"",
        "processor_config.json": {"auto_map": "sub.module.Class"},
    })  # fmt: skip
    assert found.remote_code == ("modeling_x.py", "sub/module.py")
    assert found.absent_code == ("sub/module.py",)
    assert found.python_files == ("convert.py", "custom_generate/generate.py")


@pytest.mark.parametrize(
    ("path", "answer"),
    [("tokenizer.json", True), ("tokenizer.model.v3", True), ("qwen.tiktoken", True),
     ("original/tokenizer.model", False),
     ("original/qwen.tiktoken", False), ("tokenizer_config.json", False)],
)  # fmt: skip
def test_tokenizers_lie_in_the_models_own_folder(path: str, answer: bool) -> None:
    assert facts({path: b"{}"}).has_tokenizer is answer


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("tokenizer_config.json", {"chat_template": "{{ m }}"}),
        ("tokenizer_config.json", {"chat_template": [{"name": "default", "template": "{{ m }}"}]}),
        ("processor_config.json", {"chat_template": "{{ m }}"}),
        ("chat_template.jinja", b"{{ m }}"),
        ("chat_template.json", {"chat_template": "{{ m }}"}),
        ("additional_chat_templates/rag.jinja", b"{{ m }}"),
        ("tekken.json", b"{}"),
    ],
)
def test_where_chat_templates_lie(path: str, content: Any) -> None:
    assert facts({path: content}).has_chat_template
    assert not facts({"tokenizer_config.json": {"chat_template": None}}).has_chat_template


def test_an_adapter_names_its_base() -> None:
    found = facts({
        "adapter_config.json": {"base_model_name_or_path": "org/base", "peft_type": "LORA"},
        "adapter_model.safetensors": ONE,
    })  # fmt: skip
    assert (found.format, found.base_model) == ("adapter", "org/base")
    assert found.weight_files == ("adapter_model.safetensors",)


@pytest.mark.parametrize(
    ("config", "experts"),
    [
        (LLAMA | {"intermediate_size": 14336}, (0, 0, None)),
        (LLAMA | {"num_local_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 14336},
         (8, 2, 14336)),
        (LLAMA | {"n_routed_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
                  "intermediate_size": 18432}, (256, 8, 2048)),
        (LLAMA | {"num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704},
         (128, 8, 704)),
    ],
)  # fmt: skip
def test_experts(config: dict[str, Any], experts: tuple[int, int, int | None]) -> None:
    found = facts({"config.json": config})
    assert (found.experts, found.experts_per_token, found.moe_intermediate_size) == experts


def test_nothing_from_a_file_reaches_a_terminal_unprintable() -> None:
    evil = "\x1b[2J\ud800"
    found = facts({
        "config.json": LLAMA | {
            "architectures": [evil, "Good"], "model_type": evil, "auto_map": {"a": f"{evil}.B"},
            "quantization_config": {"quant_method": evil}, "mamba_ssm_dtype": evil,
            "rope_scaling": {"rope_type": evil, "factor": 2.0}, "max_position_embeddings": 4096,
            "layer_types": [evil] * 32,
        },
        "adapter_config.json": {"base_model_name_or_path": evil},
    })  # fmt: skip
    assert found.architectures == ("Good",)
    assert (found.model_type, found.quantization, found.base_model) == ("", "", "")
    assert all(text.isprintable() for text in texts_of(found))
    assert to_bytes(found)


def texts_of(record: ModelFacts) -> list[str]:
    values = record.model_dump().values()
    return [text for value in values for text in (value if isinstance(value, tuple) else [value])
            if isinstance(text, str)]  # fmt: skip


def test_a_gguf_says_the_same(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    found = facts_of(tmp_path)
    assert (found.format, found.model_type, found.quantization) == ("gguf", "llama", "F32")
    assert found.groups == (
        LayerGroup(kind="full", layers=2, kv_heads=1, head_dim=32, v_head_dim=32),
    )
    assert found.max_context == 4096
    assert found.has_tokenizer
    assert found.has_chat_template
    assert 300_000 < found.weight_bytes < (tmp_path / "tiny.gguf").stat().st_size


def test_a_real_folder_is_read_through_its_source(tmp_path: Path) -> None:
    write_tiny_qwen35_moe(tmp_path)
    found = facts_of(tmp_path)
    assert found.architectures == ("Qwen3_5MoeForConditionalGeneration",)
    assert [(group.kind, group.layers) for group in found.groups] == [("full", 1), ("linear", 3)]
    assert found.has_tokenizer
    assert found.has_chat_template
    assert not found.faults
    assert found.weight_bytes > found.expert_bytes > 0


TORCH = b"PK\x03\x04" + b"\0" * 26 + b"archive/data.pkl" + b"\0" * 40


@pytest.mark.parametrize(
    ("path", "data", "answer"),
    [
        ("pytorch_model.bin", TORCH, True),
        ("pytorch_model.bin", b"(lp0", True),
        ("ggml-model.bin", b"lmgg" + b"\0" * 40, False),
        ("training_args.bin", b"\x80\x02}q\x00.", True),
        ("weights", b"\x80\x04\x95", True),
        ("weights.dat", b"plain", False),
        ("model.safetensors", b"\x80\x04", False),
        ("tokenizer.model", b"\n\x0e", False),
        ("a.npy", b"\x93NUMPY\x01\0v\0{'descr': '|O', }", True),
        ("a.npy", b"\x93NUMPY\x01\0v\0{'descr': '<f4', }", False),
        ("lambda.keras", b"PK", False),
        ("empty.pt", b"", False),
    ],
)
def test_what_is_a_program(path: str, data: bytes, answer: bool) -> None:
    assert is_program(path, len(data), lambda: data[:1024]) is answer


def test_keras_files_can_hold_code_and_are_no_pickles() -> None:
    found = facts({"config.json": LLAMA, "tf_model.h5": b"\x89HDF", "a/b.KERAS": b"PK\x03\x04"})
    assert (found.pickles, found.code_files) == ((), ("a/b.KERAS", "tf_model.h5"))


def test_pickles_are_found_in_a_model() -> None:
    found = facts({"config.json": LLAMA, "pytorch_model.bin": TORCH, "odd": b"\x80\x05abc"})
    assert found.pickles == ("odd", "pytorch_model.bin")
    assert found.format == "pickle"
    assert not is_pickle(b"\x80")


@settings(max_examples=150, deadline=None)
@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["qwen2", "gemma3_text", "yarn", "compressed-tensors", "LLLG", "\ud800", "\x1b"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([
        "text_config", "num_hidden_layers", "layer_types", "head_dim", "num_attention_heads",
        "rope_scaling", "factor", "rope_type", "quantization_config", "quant_method", "auto_map",
        "architectures", "sliding_window", "config_groups", "weights", "linear_attn_config",
        "full_attn_layers", "num_heads", "model_type", "sliding_window_pattern", "attn_type_list",
        "mamba_d_state", "moe", "quantization", "chat_template", "hybrid_override_pattern",
        "no_rope_layers", "attention_chunk_size", "num_kv_shared_layers", "rope_parameters", "kv_lora_rank", "full_attention_interval", "weight_map", "num_experts",
    ]), inner, max_size=6), max_leaves=30))  # fmt: skip
def test_no_config_ends_in_anything_but_facts(config: Any) -> None:
    text = json.dumps(config).encode()
    files = ("tokenizer_config.json", "adapter_config.json", "hf_quant_config.json")
    for name in ("config.json", "params.json"):
        found = facts(dict.fromkeys((name, *files, "model.safetensors.index.json"), text))
        assert to_bytes(found)
