"""Memory that an engine takes beside weights and KV cache: an estimate from measured reports.

vLLM profiles it at start and prints it; nobody can calculate it beforehand. Per GPU:

- 80 GB GPUs, Llama-3-8B: non-torch 1.79 GiB alone and 3.58 GiB with two GPUs, activations 1.26 GiB
  (https://github.com/vllm-project/vllm/pull/10511).
- Qwen3-235B-A22B-FP8 on four H100: 8.11 GiB left for the KV cache of 71.3 GiB usable with some 55.2 GiB
  of weights (https://github.com/vllm-project/vllm/issues/21348): 8 GiB, so 4.4 GiB of activations, expert
  workspaces and graphs.
- 24 GB GPUs: non-torch 0.20 to 0.25 GiB, activations 0.19 to 0.37 GiB
  (https://github.com/vllm-project/vllm/pull/14447, https://github.com/vllm-project/vllm/issues/13061); a smaller batch
  is profiled there. Graphs took up to 2.4 GiB (https://github.com/vllm-project/vllm/issues/7553).

llama.cpp keeps a compute buffer and leaves 1 GiB free by itself (`--fit-target`).
"""

from __future__ import annotations

from dataclasses import dataclass

from bundler.domain.model_facts import ModelFacts

_GIB = 2**30
# vLLM batches up to 8192 tokens on GPUs from this size on, 2048 below (engine/arg_utils.py).
LARGE_GPU = 70 * _GIB


@dataclass(frozen=True)
class Overhead:
    """Bytes on each GPU, and by how much the estimate may be short."""

    context: int
    activations: int
    uncertain: int

    @property
    def total(self) -> int:
        """The estimate."""
        return self.context + self.activations


def vllm_overhead(model: ModelFacts, gpu_bytes: int, tp: int) -> Overhead:
    """CUDA context, NCCL, activations, graphs."""
    if gpu_bytes >= LARGE_GPU:
        context = 3.6 if tp > 1 else 1.8
        activations = 4.4 if model.experts else 1.3
    else:
        context = 0.6 if tp > 1 else 0.3
        activations = 1.2 if model.experts else 0.6
    total = context + activations
    return Overhead(int(context * _GIB), int(activations * _GIB), int(total * _GIB / 2))


def llamacpp_overhead(model: ModelFacts) -> Overhead:
    """CUDA context and compute buffer; the vocabulary's logits are most of the buffer."""
    vocabulary = (model.vocab_size or 150_000) * 512 * 4
    return Overhead(int(0.4 * _GIB), int(0.3 * _GIB) + vocabulary, int(0.5 * _GIB))
