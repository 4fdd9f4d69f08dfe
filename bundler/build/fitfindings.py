"""What there is to say about a calculated fit, before the trip."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.build.kvblocks import Pool, Room, longest
from bundler.build.runsettings import Run, release
from bundler.domain.catalogue import finding
from bundler.domain.findings import Finding, Level
from bundler.domain.fit import Fit
from bundler.domain.model_facts import ModelFacts
from bundler.domain.sizes import human
from bundler.domain.spec import Acceptance

# vllm/config/compilation.py from 0.20 on: "max_num_seqs exceeds available Mamba cache blocks"; 0.18
# and 0.19 capture fewer graphs instead. Before, capturing a graph of decoding for more sequences
# than there are blocks ends in `assert num_cache_lines >= batch` of causal_conv1d_update, which
# delta nets alone ask for (https://github.com/vllm-project/vllm/issues/34094).
_CHECKS_STATES = (0, 20)
_CAPTURES_FEWER = (0, 18)
_DELTA_NETS = ("qwen3_next", "qwen3_5", "kimi_linear")
# Nobody serves less than this.
_USEFUL = 1024


@dataclass(frozen=True)
class Case:
    """A fit with what it was made from. `least` is the KV cache's memory if overhead is doubled."""

    engine: str
    version: str
    model: ModelFacts
    run: Run
    room: Room
    fit: Fit
    least: int
    acceptance: Acceptance

    @property
    def slots(self) -> int:
        """Requests of full length that must have room at the start: llama.cpp allocates every slot."""
        return 1 if self.engine == "vllm" else self.run.requests

    def gives(self, code: str, what: str, fix: str = "", level: Level | None = None) -> Finding:
        """A finding about this service."""
        return finding(code, self.fit.service, what, fix=fix, level=level)


def judge(case: Case) -> tuple[Finding, ...]:
    """All findings of one service."""
    found = [_context_over_model(case), _too_long(case)]
    if nothing := _no(case):
        found.append(nothing)
    else:
        found += [_context(case) or _tight(case), _states(case), _users(case)]
    return tuple(item for item in found if item)


def account(fit: Fit) -> str:
    """The sum in one line: what may be taken, less each term."""
    terms = " - ".join(f"{human(term.bytes)} {term.name}" for term in fit.terms)
    return f"{human(fit.usable_bytes)} - {terms} = {human(fit.kv_bytes)} for the KV cache"


def _place(fit: Fit) -> str:
    return f"each of {fit.gpus}x {fit.gpu}" if fit.gpus > 1 else fit.gpu


def _no(case: Case) -> Finding | None:
    fit = case.fit
    if case.room.requests(fit.kv_bytes, 1) >= case.slots:
        return None
    return case.gives("fit-no", f"{fit.model} does not fit: on {_place(fit)} {account(fit)}")


def _context(case: Case) -> Finding | None:
    fit = case.fit
    if fit.requests >= case.slots:
        return None
    most = longest(case.room, fit.kv_bytes, case.slots, limit=fit.context)
    each = f" for each of {case.slots} slots" if case.slots > 1 else ""
    what = f"max_model_len {fit.context}{each} does not fit, {most} does: on {_place(fit)} {account(fit)}"
    fix = f"Set max_model_len to {most} or less, or choose a smaller kv_cache_dtype."
    return _short(case, "fit-context", what, fix)


def _short(case: Case, code: str, what: str, fix: str = "") -> Finding:
    """Memory is short: the engine stops, unless it may move layers to RAM."""
    if case.run.rigid:
        return case.gives(code, what, fix)
    what += (
        "; llama-server leaves layers in RAM then, which is slow, or stops if it is an old build"
    )
    return case.gives(code, what, fix, Level.WARNING)


def _states(case: Case) -> Finding | None:
    """Whether each sequence that vLLM runs, or captures a graph for, has a block for its state."""
    if not isinstance(case.room, Pool) or not case.model.hybrid or case.run.eager:
        return None
    blocks, surely = case.room.blocks(case.fit.kv_bytes), case.room.blocks(case.least)
    wanted, words = _sequences(case)
    if wanted <= surely:
        return None
    safe = max(max(surely, blocks // 2) // 8 * 8, 1)
    verdict = "more than" if wanted > blocks else "and that may be more than"
    return case.gives(
        "fit-states",
        f"{words}, {verdict} the about {blocks} blocks for recurrent states that fit: on"
        f" {_place(case.fit)} {account(case.fit)}, in blocks of {human(case.room.block_bytes)}",
        f"Set max_num_seqs to {safe} or less.",
        None if wanted > blocks else Level.WARNING,
    )


def _sequences(case: Case) -> tuple[int, str]:
    """For how many sequences the engine needs a state at the start, at the least, and the words."""
    now, model = release(case.version), case.model
    if now >= _CHECKS_STATES:
        return case.run.requests, f"max_num_seqs is {case.run.requests}"
    captured = case.run.captured or 0
    delta = (model.text_model_type or model.model_type).startswith(_DELTA_NETS)
    if now >= _CAPTURES_FEWER or not delta:
        return 0, ""
    return captured, (
        f"vLLM {case.version} captures CUDA graphs for up to {captured} sequences at once"
        f" (max_num_seqs is {case.run.requests})"
    )


def _tight(case: Case) -> Finding | None:
    fit = case.fit
    sure = case.room.requests(case.least, fit.context) >= case.slots
    if sure and (fit.requests >= 2 or case.engine != "vllm"):
        return None
    what = f"{fit.requests} requests of {fit.context} tokens fit at once: on {_place(fit)} {account(fit)}"
    if sure:
        return case.gives("fit-tight", what)
    safe = longest(case.room, max(case.least, 0), case.slots, limit=fit.context)
    what += "; if the overhead is twice the estimate, none does"
    fix = f"To be sure, set max_model_len to {safe} or less." if safe >= _USEFUL else ""
    return case.gives("fit-tight", what, fix)


def _users(case: Case) -> Finding | None:
    plan, fit = case.acceptance, case.fit
    length = min(plan.input_tokens + plan.output_tokens, fit.context)
    fits = case.room.requests(fit.kv_bytes, length)
    at_once = min(fits, case.run.requests)
    wanted = max(plan.concurrency)
    if wanted <= at_once:
        return None
    why = f"max_num_seqs is {case.run.requests}" if at_once < fits else f"KV cache for {fits} fits"
    return case.gives(
        "fit-users",
        f"acceptance sends {wanted} requests of {length} tokens at once, {at_once} run at once ({why})",
    )


def _too_long(case: Case) -> Finding | None:
    plan, fit = case.acceptance, case.fit
    length = plan.input_tokens + plan.output_tokens
    if length <= fit.context:
        return None
    return case.gives(
        "acceptance-too-long",
        f"acceptance sends {plan.input_tokens} + {plan.output_tokens} = {length} tokens,"
        f" max_model_len is {fit.context}",
    )


def _context_over_model(case: Case) -> Finding | None:
    most, wanted = case.model.max_context, case.fit.context
    if not most or wanted <= most or case.run.stretched:
        return None
    return case.gives(
        "context-over-model",
        f"max_model_len {wanted} is over the {most} that {case.model.name} was made for",
        f"Set max_model_len to {most} or less, or rope scaling as the model card says.",
        None if case.engine == "vllm" else Level.WARNING,
    )
