"""What an engine takes beside weights and KV cache: an estimate, which the engine measures at its start.

The factors of vLLM are fitted to starts whose logs give every term. Qwen3.8-27B in BF16 on an RTX PRO
6000 (0.29.0, 8192 tokens in a batch): 85.47 GiB may be taken, 51.1 are weights, 31.24 are left for
the KV cache with 256 sequences (652 blocks of 49 MiB) and 635 blocks with 1024, so 3.1 and 3.9 GiB
are overhead. Qwen3.6-27B-FP8 on an H100 with 1024 sequences: 856 blocks at 0.95, so 5.8 GiB
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
_COMMUNICATION = int(0.9 * _GIB)
_GRAPHS = int(0.7 * _GIB)
_CONTEXT = int(0.5 * _GIB)
_WIDTHS = 24
_USUAL_HIDDEN = 5120
_USUAL_VOCABULARY = 152_000


def visible(memory: int) -> int:
    """What CUDA sees of a GPU's memory."""
    return max(memory - _DRIVER[0] - memory // _DRIVER[1], 0)


def vllm(model: ModelFacts, run: Run, version: str) -> tuple[Term, ...]:
    """Per GPU, within `gpu_memory_utilization`."""
    hidden = model.hidden_size or _USUAL_HIDDEN
    vocabulary = model.vocab_size or _USUAL_VOCABULARY
    layer = run.batch * hidden * 2 * _WIDTHS
    logits = run.requests * vocabulary * 6
    experts = 0
    if model.experts:
        width = 2 * (model.moe_intermediate_size or 0) // run.numbers.tp + hidden
        experts = run.batch * max(model.experts_per_token, 1) * width * 2
    activations = Term(
        name="activations (estimate)",
        bytes=layer + experts + logits,
        how=f"batch of {run.batch} tokens x {hidden} x 2 bytes x {_WIDTHS}"
        + (f" + {experts} bytes for the experts' inputs" if experts else "")
        + f" + {run.requests} sequences x {vocabulary} logits x 6 bytes",
    )
    terms = [
        activations,
        Term(name="CUDA libraries (estimate)", bytes=_LIBRARIES, how="measured: 0.1 to 0.3 GiB"),
    ]
    # Before 0.20 graphs are captured in the memory that gpu_memory_utilization leaves free.
    if not run.eager and release(version) >= (0, 20):
        how = "measured: 0.3 to 0.7 GiB; none with --enforce-eager"
        terms.append(Term(name="CUDA graphs (estimate)", bytes=_GRAPHS, how=how))
    if run.numbers.tp > 1:
        how = f"NCCL and all-reduce buffers of {run.numbers.tp} GPUs"
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
