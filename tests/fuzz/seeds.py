"""Where the fuzzer begins: something whole of each kind."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from bundler.domain.lock import Lock, LockedFile, LockedModel, LockedWheel
from bundler.domain.target import Target
from bundler.format.codec import to_bytes
from tests.fakes.gguf import gguf_bytes
from tests.fakes.ollama_release import release
from tests.fakes.wheels import make_wheel
from tests.fuzz.targets import FROZEN, KNOWN, MANIFEST

_SAFETENSORS = (
    b'{"a":{"dtype":"F8_E4M3","shape":[2,4],"data_offsets":[0,8]},"__metadata__":{"x":"y"}}'
)
_SPEC = Path(__file__).parents[2] / "manifests"
_CONFIG = b"""{"architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe",
 "text_config": {"num_hidden_layers": 4, "layer_types": ["linear_attention", "full_attention"],
 "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "hidden_size": 64,
 "sliding_window": 128, "num_experts": 4, "rope_scaling": {"factor": 2.0, "type": "yarn"},
 "max_position_embeddings": 4096, "kv_lora_rank": 512, "qk_rope_head_dim": 64}, "vocab_size": 100,
 "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
 "weight_map": {"a": "model-00001-of-00002.safetensors"}, "auto_map": {"AutoModel": "x.Y"}}"""
_ENGINE = b"""import os
from typing import Literal
CacheDType = Literal["auto", "fp8", "fp8_e4m3"]
_TEXT_GENERATION_MODELS = {"A": ("a", "A")}
_VLLM_MODELS = {**_TEXT_GENERATION_MODELS}
environment_variables = {"VLLM_X": lambda: os.getenv("VLLM_X", "1")}
class CacheConfig:
    cache_dtype: CacheDType = "auto"
class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--x", choices=["a", "b"])
        return parser
"""

_GOLDEN = b"""{"model_digest": "%s", "model": "m", "engine": "e 1", "recorded": "2026-01-01T00:00:00Z", "greedy": [{"prompt":
 "a", "steps": [{"token": "#1", "logprob": -0.5, "top": [{"token": "#1", "logprob": -0.5}]}]}], "nll": [{"text": "a",
 "tokens": 3, "mean": 2.5}]}""" % (b"a" * 64)
_ANSWER = b"""{"choices": [{"message": {"content": "{\\"priority\\": \\"low\\", \\"floor\\": 1}", "tool_calls":
 [{"function": {"name": "stock_level", "arguments": "{}"}}]}, "finish_reason": "stop", "logprobs": {"content": [{"token":
 "a", "id": 3, "logprob": -1.5, "top_logprobs": [{"token": "token_id:7", "logprob": -1e-9}]}]}, "prompt_logprobs":
 [null, {"3": {"logprob": -2.0}}]}], "usage": {"prompt_tokens": 9}}"""


def seeds(target: str, work: Path) -> list[bytes]:
    """Inputs to start from; `work` is a folder for what has to be made."""
    bundle = FROZEN / "bundle"
    name = KNOWN.volumes[1].name
    approval = next(bundle.glob("approval-*.json"))
    head = len(_SAFETENSORS).to_bytes(8, "little") + _SAFETENSORS + bytes(8)
    wheel = make_wheel(
        work, "toy", "1.0", {"toy.py": b"x = 1\n", "toy.so": _elf()}, {"toy": "toy:main"}
    ).read_bytes()
    found = {
        "metrics": [
            b'vllm:num_requests_running{engine="0",a="} \\" "} 3.0\nllamacpp:requests_deferred 1 17\n'
        ],
        "golden": [_GOLDEN],
        "answer": [_ANSWER, b'{"tokens": [{"id": 1, "piece": "a"}, {"id": 2, "piece": [1]}]}'],
        "manifest": [MANIFEST, (FROZEN / "delta" / "manifest.json").read_bytes()],
        "bootstrap_manifest": [MANIFEST],
        "bent_manifest": [bytes(range(60)), b"\0\1\3" * 5],
        "volume": [(bundle / name).read_bytes()],
        "sealed": [(FROZEN / "sealed" / f"{name}.sealed").read_bytes()],
        "statement": [b"\0" + approval.read_bytes(), b"\2{}\n"],
        "lock": [_lock()],
        "checksums": [(FROZEN / "sealed" / "SHA256SUMS").read_bytes()],
        "spec": [path.read_bytes() for path in sorted(_SPEC.glob("*.yaml"))],
        "policy": [
            b"require: [builder]\nkeys:\n- {role: builder, file: a.pem, expires: 2030-01-01}\n",
            b"keys: [{role: builder, pem: x}]\nrevoked: [{what: '0', reason: x}]\n",
        ],
        "profiles": [path.read_bytes() for path in sorted(_SPEC.glob("profiles/*.yaml"))],
        "keys": [(FROZEN / "builder.pub.pem").read_bytes(), (FROZEN / "volumes.key").read_bytes()],
        "safetensors": [head],
        "gguf": [gguf_bytes(1000)],
        "model": [_CONFIG, head, gguf_bytes(1000)],
        "wheel": [wheel],
        "reviewed": [wheel],
        "pickle_program": [
            pickle.dumps({"a": [1, "b"], "c": Path("x")}, protocol=p) for p in range(5)
        ]
        + [wheel],
        "antivirus": [
            b"ClamAV 1.4.3/27834/Tue Dec  1 09:26:03 2026\n/x/manifest.json: OK\n/x/a: b: X.Y FOUND\n"
            b"\n----------- SCAN SUMMARY -----------\nEngine version: 1.4.3\nInfected files: 1\n"
            b"Data scanned: 1.00 MB\nStart Date: 2026:12:02 23:22:17\n"
        ],
        "older": [
            b'{"bundle_id": "a-1", "manifest_sha256": "'
            + b"0" * 64
            + b'", "key_id": null, "components": []}'
        ],
        "template": [
            b"{% for m in messages %}{{ m['role'] ~ ''.__class__ | attr('x') }}{% endfor %}"
        ],
        "licence": [b"License-Expression: MIT OR Apache-2.0\nLicense: BSD\n\nMIT License\n"],
        "elf": [_elf()],
        "engine": [_ENGINE],
        "archive": [release("tar"), release("tgz"), release("tar.zst")],
    }
    return found[target]


def _lock() -> bytes:
    wheel = LockedWheel(name="a", version="1", filename="a-1-py3-none-any.whl", url="file:x",
                        sha256="0" * 64)  # fmt: skip
    model = LockedModel(name="m", source="hub", origin="a/b", files=(LockedFile(path="x", size=1),))
    return to_bytes(
        Lock(
            spec_sha256="0" * 64, created="2026-12-02T00:00:00Z", airbundle_version="1",
            target=Target(python="3.12", glibc="2.31"), engine_name="vllm", engine_version="1",
            engine_wheels=(wheel,), tool_wheels=(wheel,), models=(model,),
        )
    )  # fmt: skip


def _elf() -> bytes:
    """The beginning of a real shared object: the interpreter's own."""
    import _ctypes

    place = getattr(_ctypes, "__file__", None) or sys.executable
    return Path(place).read_bytes()
