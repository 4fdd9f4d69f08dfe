"""Will it fit, and how many requests at once: the calculation, with every term in words.

For each GPU: what the engine may take, less its part of the weights and of the overhead, is left for
the KV cache. How far that goes is in `kvblocks.py`, the overhead in `overhead.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bundler.build import kvblocks, overhead, runsettings
from bundler.build.fitfindings import Case, judge
from bundler.build.kvblocks import Room, longest
from bundler.build.kvcache import per_request, per_token
from bundler.build.runsettings import Beyond, Run
from bundler.domain.catalogue import finding
from bundler.domain.findings import Finding
from bundler.domain.fit import Fit, Term
from bundler.domain.gpus import GpuModel, gpu
from bundler.domain.model_facts import ModelFacts
from bundler.domain.sizes import human
from bundler.domain.spec import Acceptance, Service, Settings
from bundler.domain.target import Target

_LENGTHS = (4096, 8192, 32768, 131072)


def fit(
    service: Service,
    model: ModelFacts,
    target: Target,
    engine: str,
    version: str,
    acceptance: Acceptance,
) -> tuple[Fit | None, tuple[Finding, ...]]:
    """Memory of one service on its GPUs, and what there is to say about it.

    None, and a finding that says why, when GPU, model or settings are not known well enough.
    """
    try:
        placed = _place(service, model, target, engine, version)
        case = _calculate(placed, acceptance)
    except (Beyond, ValueError) as error:
        return None, (
            finding(
                "fit-unknown",
                service.name,
                f"{model.name}: {error}" if model.name != service.name else str(error),
            ),
        )
    return case.fit, judge(case)


def gpus_of(service: Service, target: Target, engine: str) -> tuple[int, ...]:
    """Indexes of the target's GPUs that the service takes: of vLLM the first `tensor_parallel`."""
    count = sum(kind.count for kind in target.gpus)
    free = [index for index in (service.gpus or range(count)) if index < count]
    wanted = runsettings.tensor_parallel(service) if engine == "vllm" else len(free)
    return tuple(free[:wanted])


def together(
    services: Sequence[Service], fits: Sequence[Fit], target: Target, engine: str
) -> tuple[Finding, ...]:
    """Whether the services that share a GPU fit on it at once. `fits` may leave some out."""
    known = {fit.service: fit for fit in fits}
    at: dict[int, list[Service]] = {}
    for service in services:
        for index in gpus_of(service, target, engine):
            if service.name in known:
                at.setdefault(index, []).append(service)
    crowds = {tuple(item.name for item in here): (index, here) for index, here in at.items()}
    found = []
    for names, (index, here) in crowds.items():
        asked = [(item.name, _claim(item, known[item.name], engine)) for item in here]
        have = overhead.visible(known[names[0]].gpu_bytes)
        if len(here) > 1 and sum(size for _, size in asked) > have:
            words = " + ".join(f"{name} {human(size)}" for name, size in asked)
            what = f"GPU {index} has {human(have)}, its services ask for {words}"
            found.append(finding("fit-shared", ", ".join(names), what))
    return tuple(found)


def _claim(service: Service, fit: Fit, engine: str) -> int:
    """Bytes of one GPU: vLLM takes its share whole, llama.cpp what context and slots need."""
    if engine == "vllm":
        return fit.usable_bytes
    slots = (service.settings or Settings()).max_num_seqs or 1
    cache = slots * (fit.context * fit.per_token.bytes + fit.per_request.bytes) // fit.gpus
    return sum(term.bytes for term in fit.terms) + cache


@dataclass(frozen=True)
class _Placed:
    service: Service
    model: ModelFacts
    engine: str
    version: str
    kinds: tuple[GpuModel, ...]
    run: Run


def _place(
    service: Service, model: ModelFacts, target: Target, engine: str, version: str
) -> _Placed:
    """Which GPUs, with which settings. Raises Beyond."""
    if not target.gpus:
        raise Beyond("the target names no GPU")
    if not model.groups or not model.weight_bytes:
        raise Beyond("its files do not say what it keeps for each token, or how large it is")
    names = [kind.model for kind in target.gpus for _ in range(kind.count)]
    indexes = gpus_of(service, target, engine)
    if not indexes:
        raise Beyond(f"the target has no GPU {', '.join(map(str, service.gpus))}")
    kinds = [gpu(names[index]) for index in indexes]
    if missing := [names[index] for index, kind in zip(indexes, kinds, strict=True) if not kind]:
        raise Beyond(f"GPU {missing[0][:80]} is not in the table of GPUs")
    found = tuple(kind for kind in kinds if kind)
    if engine != "vllm":
        of = runsettings.ollama if engine == "ollama" else runsettings.llamacpp
        return _Placed(service, model, engine, version, found, of(service, model))
    run = runsettings.vllm(service, model, found[0], version)
    if run.numbers.tp != len(found):
        raise Beyond(f"tensor_parallel {run.numbers.tp} needs as many GPUs, {len(found)} are there")
    return _Placed(service, model, engine, version, found, run)


def _calculate(placed: _Placed, acceptance: Acceptance) -> Case:
    run, model = placed.run, placed.model
    memory, gpus = _memory(placed), len(placed.kinds)
    usable = int(overhead.visible(memory) * run.utilization)
    terms, host = _terms(placed)
    left = usable - sum(term.bytes for term in terms)
    if run.kv_bytes is not None:
        left = min(left, run.kv_bytes)
    room = _room(placed)
    limit = max(model.max_context or 0, run.context)
    whole = replace(run.numbers, tp=1)
    result = Fit(
        service=placed.service.name,
        model=model.name,
        gpu=placed.kinds[0].name,
        gpus=gpus,
        gpu_bytes=memory,
        usable_bytes=usable,
        terms=terms,
        host_terms=host,
        kv_bytes=left,
        kv_dtype=run.numbers.label,
        per_token=per_token(model, whole),
        per_request=per_request(model, whole),
        max_context=longest(room, left, limit=limit),
        context=run.context,
        requests=room.requests(left, run.context),
        at={length: room.requests(left, length) for length in _LENGTHS if length <= limit},
        unknown=_unknown(placed),
    )
    extra = sum(term.bytes for term in terms if "(estimate)" in term.name)
    return Case(placed.engine, placed.version, model, run, room, result, left - extra, acceptance)


def _memory(placed: _Placed) -> int:
    """Of one GPU: the smallest bounds tensor parallelism, llama.cpp fills each as far as it goes."""
    sizes = [kind.memory_bytes for kind in placed.kinds]
    return min(sizes) if placed.engine == "vllm" else sum(sizes) // len(sizes)


def _terms(placed: _Placed) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """What lies on each GPU beside the KV cache, and what lies in the host's RAM."""
    run, model, gpus = placed.run, placed.model, len(placed.kinds)
    if placed.engine == "vllm":
        how = f"{model.weight_bytes} bytes of tensors" + (f" / {gpus} GPUs" if gpus > 1 else "")
        weights = Term(name="weights", bytes=-(-model.weight_bytes // gpus), how=how)
        return (weights, *overhead.vllm(model, run, placed.version)), ()
    above = int(model.weight_bytes * (1 - run.layers_on_gpu))
    experts = int(model.expert_bytes * run.layers_on_gpu * run.experts_on_cpu)
    there = max(model.weight_bytes - above - experts, 0)
    how = f"{there} of {model.weight_bytes} bytes of tensors / {gpus} GPUs"
    weights = Term(name="weights", bytes=-(-there // gpus), how=how)
    host = []
    if above:
        words = f"{float(1 - run.layers_on_gpu):.0%} of the layers (-ngl)"
        host.append(Term(name="weights of layers left out", bytes=above, how=words))
    if experts:
        words = f"{float(run.experts_on_cpu):.0%} of {model.expert_bytes} bytes of routed experts"
        host.append(Term(name="routed experts", bytes=experts, how=words))
    return (weights, *overhead.llamacpp(model, run)), tuple(host)


def _room(placed: _Placed) -> Room:
    run, model = placed.run, placed.model
    if placed.engine == "vllm":
        # FlashInfer, first choice on compute capability 10, wants blocks of 32 tokens.
        step = 32 if placed.kinds[0].compute_capability.startswith("10.") else 16
        return kvblocks.pool(model, run.numbers, run.batch, run.states, step)
    gpus = len(placed.kinds)
    return kvblocks.slots(model, run.numbers, run.batch, gpus, run.whole_windows, run.share)


def _unknown(placed: _Placed) -> tuple[str, ...]:
    found = [
        "the overhead is an estimate; the engine measures it when it starts, and may need twice as much"
    ]
    if len({kind.memory_bytes for kind in placed.kinds}) > 1:
        found.append("the GPUs differ; the calculation takes them as alike")
    if placed.model.unknown_layers:
        found.append(f"layers that are not calculated: {placed.model.unknown_layers}")
    if placed.model.mtp_layers and placed.engine == "vllm":
        found.append(
            "the weights hold the MTP layer, which is loaded for speculative decoding only"
        )
    return (*found, *placed.run.notes)
