"""Weights that llama.cpp keeps in the host's RAM: experts (`-ncmoe`, `-cmoe`, `-ot`) or layers (`-ngl`).

Flags: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bundler.domain.model_facts import ModelFacts


@dataclass(frozen=True)
class Offload:
    """Bytes that stay in RAM, and by which flag."""

    bytes: int
    how: str

    @classmethod
    def of(cls, args: Sequence[str], model: ModelFacts) -> Offload:
        """What the arguments say; the last one of a kind counts."""
        layers = sum(group.layers for group in model.groups) or 1
        if any(word in ("-cmoe", "--cpu-moe") for word in args) or _experts_named(args):
            return cls(model.expert_bytes, "all routed experts")
        kept = _number(args, "-ncmoe", "--n-cpu-moe")
        if kept is not None and model.expert_bytes:
            count = min(kept, layers)
            share = model.expert_bytes * count // layers
            return cls(share, f"routed experts of {count} of {layers} layers")
        on_gpu = _number(args, "-ngl", "--gpu-layers", "--n-gpu-layers")
        if on_gpu is not None and on_gpu < layers:
            share = model.weight_bytes * (layers - on_gpu) // layers
            return cls(share, f"{layers - on_gpu} of {layers} layers")
        return cls(0, "")


def _number(args: Sequence[str], *flags: str) -> int | None:
    found = [
        value for word, value in pairwise(args)
        if word in flags and re.fullmatch(r"\d{1,6}", value)
    ]  # fmt: skip
    found += [
        word.partition("=")[2] for word in args
        if word.partition("=")[0] in flags and re.fullmatch(r"\d{1,6}", word.partition("=")[2])
    ]  # fmt: skip
    return int(found[-1]) if found else None


def _experts_named(args: Sequence[str]) -> bool:
    """`-ot ".ffn_.*_exps.=CPU"`, the older way."""
    return any(
        word in ("-ot", "--override-tensor") and "exps" in value and value.upper().endswith("=CPU")
        for word, value in pairwise(args)
    )
