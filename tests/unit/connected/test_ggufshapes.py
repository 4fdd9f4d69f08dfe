"""What layers keep, from GGUF metadata."""

from __future__ import annotations

from typing import Any

import pytest

from bundler.build.ggufshapes import GgufShape
from bundler.build.kvcache import Numbers, per_token
from bundler.domain.model_facts import LayerGroup, ModelFacts
from tests.unit.connected.test_modelshapes import full, sliding, state


def shape(architecture: str, keys: dict[str, Any]) -> GgufShape:
    return GgufShape(
        {
            "general.architecture": architecture,
            **{f"{architecture}.{k}": v for k, v in keys.items()},
        }
    )


LLAMA = {
    "block_count": 32, "embedding_length": 4096, "attention.head_count": 32,
    "attention.head_count_kv": 8,
}  # fmt: skip
QWEN35 = {
    "block_count": 41, "nextn_predict_layers": 1, "embedding_length": 2048,
    "attention.head_count": 16, "attention.head_count_kv": 2, "attention.key_length": 256,
    "attention.value_length": 256, "full_attention_interval": 4, "ssm.state_size": 128,
    "ssm.group_count": 16, "ssm.time_step_rank": 32, "ssm.inner_size": 4096, "ssm.conv_kernel": 4,
}  # fmt: skip
MLA = {
    "block_count": 61, "embedding_length": 7168, "attention.head_count": 128,
    "attention.kv_lora_rank": 512, "rope.dimension_count": 64,
}  # fmt: skip


@pytest.mark.parametrize(
    ("architecture", "keys", "expected"),
    [
        ("llama", LLAMA, (full(32),)),
        ("llama", LLAMA | {"attention.head_count_kv": None}, (full(32, 32),)),
        # Layers of their own width, some of which do not attend (DeciLM).
        ("deci", LLAMA | {"block_count": 4, "attention.head_count_kv": [8, 0, 4, 8]},
         (full(2), full(1, 4))),
        ("qwen35moe", QWEN35, (full(10, 2, 256), state(30, 16, 32, 128, 128, 4))),
        ("qwen35moe", {k: v for k, v in QWEN35.items() if k != "full_attention_interval"},
         (full(10, 2, 256), state(30, 16, 32, 128, 128, 4))),
        ("qwen35", QWEN35 | {"block_count": 4, "nextn_predict_layers": 0,
                             "attention.recurrent_layers": [1, 1, 0, 0]},
         (full(2, 2, 256), state(2, 16, 32, 128, 128, 4))),
        # Jamba: Mamba-1, told by layers without K/V heads.
        ("jamba", LLAMA | {"block_count": 4, "attention.head_count_kv": [0, 0, 8, 0],
                           "ssm.state_size": 16, "ssm.inner_size": 8192, "ssm.conv_kernel": 4,
                           "ssm.time_step_rank": 256},
         (full(1), state(3, 0, 8192, 16, 1, 4))),
        ("mamba2", {"block_count": 64, "ssm.state_size": 128, "ssm.inner_size": 8192,
                    "ssm.conv_kernel": 4, "ssm.time_step_rank": 128, "ssm.group_count": 8},
         (state(64, 8, 128, 128, 64, 4),)),
        ("falcon-h1", LLAMA | {"block_count": 2, "ssm.state_size": 256, "ssm.inner_size": 1536,
                               "ssm.conv_kernel": 4, "ssm.time_step_rank": 24, "ssm.group_count": 1},
         (full(2), state(2, 1, 24, 256, 64, 4))),
        ("gemma3", LLAMA | {"attention.sliding_window": 1024, "block_count": 34},
         (full(5), sliding(29, 1024))),
        ("gemma4", LLAMA | {"attention.sliding_window": 512, "block_count": 6,
                            "attention.sliding_window_pattern": [True, True, False] * 2,
                            "attention.key_length": 512, "attention.value_length": 512,
                            "attention.key_length_swa": 256, "attention.value_length_swa": 256,
                            "attention.shared_kv_layers": 3},
         (full(1, 8, 512), sliding(2, 512, 8, 256))),
        # Kept compressed since April 2025; older files keep every head.
        ("deepseek2", MLA | {"attention.head_count_kv": 1, "attention.key_length_mla": 192},
         (LayerGroup(kind="mla", layers=61, kv_lora_rank=512, qk_rope_head_dim=64),)),
        ("deepseek2", MLA | {"attention.head_count_kv": 128, "attention.key_length": 192,
                             "attention.value_length": 128}, (full(61, 128, 192, 128),)),
    ],
)  # fmt: skip
def test_groups(architecture: str, keys: dict[str, Any], expected: tuple[LayerGroup, ...]) -> None:
    assert shape(architecture, keys).groups() == (expected, "")


def test_35b_a3b_takes_20_kib_for_a_token_as_its_config_says() -> None:
    found, _ = shape("qwen35moe", QWEN35).groups()
    assert (
        per_token(ModelFacts(name="m", groups=found), Numbers(k="f16", v="f16")).bytes == 20 * 1024
    )


@pytest.mark.parametrize(
    ("architecture", "keys", "words"),
    [
        ("llama", {}, "no block_count"),
        ("llama", {"block_count": 2}, "no heads and no states"),
        ("llama", LLAMA | {"embedding_length": None}, "32 full layers state no sizes"),
        ("strange", LLAMA | {"attention.sliding_window": 512}, "which layers see a window"),
        ("strange", LLAMA | {"ssm.state_size": 16}, "which layers attend"),
    ],
)
def test_what_is_not_certain_is_said(architecture: str, keys: dict[str, Any], words: str) -> None:
    assert words in shape(architecture, keys).groups()[1]


@pytest.mark.parametrize(
    ("stated", "name"),
    [(15, "Q4_K_M"), (7, "Q8_0"), (1024 + 15, "Q4_K_M"), (39, "NVFP4"), (999, ""), (None, ""),
     ([15], ""), (True, ""), (2.0, "")],
)  # fmt: skip
def test_the_file_type(stated: object, name: str) -> None:
    assert GgufShape({"general.file_type": stated}).file_type == name


@pytest.mark.parametrize(
    "value", [[], [None], [True], ["x"], [2**63] * 5, -1, 2**63, 1.5, "32", [1.5, 2], {}]
)
def test_no_value_ends_in_anything_but_groups(value: object) -> None:
    for key in (*LLAMA, *QWEN35, "attention.sliding_window_pattern", "attention.sliding_window"):
        for known in (LLAMA, QWEN35):
            shape("qwen35", known | {key: value}).groups()
    GgufShape({"general.architecture": value, "general.file_type": value}).groups()
