"""What an engine takes beside weights and KV cache: an estimate, which the engine measures at its start.

The factors of vLLM are fitted to starts whose logs give every term. Qwen3.8-27B in BF16 on an RTX PRO
6000 (0.29.0, 8192 tokens in a batch): 85.47 GiB may be taken, 51.1 are weights, 31.24 are left for
the KV cache with 256 sequences (652 blocks of 49 MiB) and 635 blocks with 1024, so 3.1 and 3.9 GiB
are overhead. Qwen3.8-27B-FP8 on two RTX 3090 (8192 tokens, 2 sequences): 4.99 GiB left at 0.92, so 2.5
(https://github.com/mitchross/talos-argocd-proxmox/pull/1995). Qwen3.6-27B-FP8 on an H100 with 1024 sequences: 856 blocks at 0.95, so 5.8 GiB
(https://github.com/vllm-project/recipes/pull/551). Qwen3-235B-A22B-FP8 on four H100: about 8 GiB
(https://github.com/vllm-project/vllm/issues/21348). The estimate is at the low end of these: what
does not fit with it does not fit; what fits may need up to twice as much.
"""

from __future__ import annotations

from bundler.build.runsettings import Run, release
from bundler.domain.fit import Term
from bundler.domain.model_facts import ModelFacts

_GIB = 2**30
# Driver and firmware keep this from what nvidia-smi calls the total: CUDA reports 79.19 GiB of an
# H100's 79.65, 23.58 of a 3090's 24.00, 178.35 of a B200's 179.06.
_DRIVER = (int(0.35 * _GIB), 500)
_LIBRARIES = int(0.3 * _GIB)
_COMMUNICATION = int(0.5 * _GIB)
_GRAPHS = (int(0.2 * _GIB), int(0.5 * _GIB), 256)
_CONTEXT = int(0.5 * _GIB)
# Vectors of the hidden size that live at the peak for each token: whole ones, and those cut among GPUs.
_WIDTHS = (8, 16)
# Copies of the experts' inputs and outputs, each `experts_per_token` times a token.
_COPIES = 3
_USUAL_HIDDEN = 5120
_USUAL_VOCABULARY = 152_000


def visible(memory: int) -> int:
    """What CUDA sees of a GPU's memory."""
    return max(memory - _DRIVER[0] - memory // _DRIVER[1], 0)


def vllm(model: ModelFacts, run: Run, version: str) -> tuple[Term, ...]:
    """Per GPU, within `gpu_memory_utilization`."""
    hidden = model.hidden_size or _USUAL_HIDDEN
    vocabulary = model.vocab_size or _USUAL_VOCABULARY
    widths = _WIDTHS[0] + -(-_WIDTHS[1] // run.numbers.tp)
    layer = run.batch * hidden * 2 * widths
    logits = run.requests * vocabulary * 6
    experts = 0
    if model.experts:
        width = 2 * (model.moe_intermediate_size or 0) // run.numbers.tp + hidden
        experts = run.batch * max(model.experts_per_token, 1) * width * 2 * _COPIES
    activations = Term(
        name="activations (estimate)",
        bytes=layer + experts + logits,
        how=f"batch of {run.batch} tokens x {hidden} x 2 bytes x {widths}"
        f" + {run.requests} sequences x {vocabulary} logits x 6 bytes"
        + (f" + {experts} bytes for inputs of experts" if experts else ""),
    )
    terms = [
        activations,
        Term(name="CUDA libraries (estimate)", bytes=_LIBRARIES, how="measured: 0.1 to 0.3 GiB"),
    ]
    # Before 0.20 graphs are captured in the memory that gpu_memory_utilization leaves free.
    if not run.eager and release(version) >= (0, 20):
        fixed, more, most = _GRAPHS
        how = f"for up to {min(run.requests, most)} sequences; none with --enforce-eager"
        size = fixed + more * min(run.requests, most) // most
        terms.append(Term(name="CUDA graphs (estimate)", bytes=size, how=how))
    if (gpus := run.numbers.tp * run.numbers.stages) > 1:
        how = f"NCCL and all-reduce buffers of {gpus} GPUs"
        terms.append(Term(name="communication (estimate)", bytes=_COMMUNICATION, how=how))
    return tuple(terms)


def llamacpp(model: ModelFacts, run: Run) -> tuple[Term, ...]:
    """Per GPU. The graph's buffers hold one batch (`-ub`), its logits and its attention mask."""
    hidden = model.hidden_size or _USUAL_HIDDEN
    vocabulary = model.vocab_size or _USUAL_VOCABULARY
    tokens = run.context * run.requests
    return (
        Term(
            name="compute buffers (estimate)",
            bytes=run.batch * (vocabulary * 4 + hidden * 64 + tokens * 2),
            how=f"batch of {run.batch} x ({vocabulary} logits x 4 + {hidden} x 64"
            f" + {tokens} tokens of context x 2 bytes)",
        ),
        Term(name="CUDA context (estimate)", bytes=_CONTEXT, how="measured: 0.3 to 0.6 GiB"),
    )
