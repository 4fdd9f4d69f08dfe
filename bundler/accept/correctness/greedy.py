"""Greedy answers with their likeliest alternatives, and whether two of them are the same but for near ties.

Batches, kernels and GPUs change the order of additions, so the last bits of every logit differ, and where two
tokens are almost equally likely another one may win. From there on the texts differ and prove nothing
(vLLM issues 7779, 11778). So answers are compared as vLLM's own tests do (tests/models/utils.py,
check_logprobs_close): at the first difference each side's token must be among the other's likeliest ones.
Equal bytes are never asked for.

That alone forgives a model whose every probability is off by a little. So the log-probabilities of the tokens
before the first difference are compared too; the limit is an engineering choice: rounding to bfloat16 moves
them by hundredths of a nat, an fp8 kernel with wrong scales by several tenths or more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from bundler.accept.correctness.asking import Asker, NotOffered, WrongAnswer, excerpt, text_of
from bundler.domain.correctness import Alternative, Greedy, Step

TOP_K = 5
MAX_TOKENS = 32
MOST_DRIFT = 0.25
_NUMBERED = re.compile(r"token_id:(\d{1,9})")


async def ask_greedy(asker: Asker, name: str, prompt: str) -> tuple[Greedy, str]:
    """One greedy answer with log-probabilities, and its text.

    Raises:
        NotOffered: the engine gives no log-probabilities.
        WrongAnswer: one of them is no number, or over zero.
        EngineError: no answer.
    """
    choice = await asker.chat(
        prompt,
        MAX_TOKENS,
        logprobs=True,
        top_logprobs=TOP_K,
        return_tokens_as_token_ids=True,  # vLLM: bytes that are no whole character look alike as text
    )
    found = choice.logprobs
    content = found.get("content") if isinstance(found, dict) else None
    if not isinstance(content, list) or not content:
        raise NotOffered("its answers hold no log-probabilities")
    steps = tuple(_step(item) for item in content[:MAX_TOKENS])
    return Greedy(prompt=name, steps=steps), choice.text


def _step(item: object) -> Step:
    if not isinstance(item, dict):
        raise NotOffered("its log-probabilities have another form")
    top = item.get("top_logprobs")
    return Step(
        token=_identity(item),
        logprob=_logprob(item),
        top=tuple(
            Alternative(token=_identity(one), logprob=_logprob(one))
            for one in (top if isinstance(top, list) else [])[:20]
            if isinstance(one, dict) and one.get("logprob") is not None
        ),
    )


def _identity(item: dict[str, object]) -> str:
    """What tells a token from others: its number where the engine says it, else its text."""
    number, text = item.get("id"), text_of(item.get("token"))
    named = _NUMBERED.fullmatch(text)
    if named:
        return f"#{named[1]}"
    if isinstance(number, int) and not isinstance(number, bool):
        return f"#{number}"
    return text[:200]


def _logprob(item: dict[str, object]) -> float:
    value = item.get("logprob")
    if value is None:  # how JSON writes a number that is none
        raise WrongAnswer("a log-probability that is no number")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NotOffered("its log-probabilities have another form")
    if not math.isfinite(value) or value > 1e-3:
        raise WrongAnswer(f"a log-probability of {value}: the model computes no valid numbers")
    return float(value)


def difference(ours: Greedy, theirs: Greedy) -> str:
    """Where two answers differ by more than a near tie; empty when they do not."""
    for place, (one, two) in enumerate(zip(ours.steps, theirs.steps, strict=False), 1):
        if one.token == two.token:
            continue
        for token, other in ((one.token, two), (two.token, one)):
            if token not in {alternative.token for alternative in other.top}:
                return (
                    f"{ours.prompt}: token {place} is {excerpt(one.token)!r} here and"
                    f" {excerpt(two.token)!r} there, and not among the {TOP_K} likeliest of both"
                )
        return ""
    return ""


def drift(ours: Sequence[Greedy], theirs: Sequence[Greedy]) -> tuple[float, int]:
    """Mean absolute difference, in nats, of the log-probabilities of shared tokens; and how many there are."""
    known = {answer.prompt: answer for answer in theirs}
    gaps: list[float] = []
    for answer in ours:
        other = known.get(answer.prompt)
        for one, two in zip(answer.steps, other.steps if other else (), strict=False):
            if one.token != two.token:
                break
            gaps.append(abs(one.logprob - two.logprob))
    return (sum(gaps) / len(gaps) if gaps else 0.0), len(gaps)


def compare(ours: Sequence[Greedy], theirs: Sequence[Greedy]) -> tuple[list[str], str]:
    """What is wrong with our answers beside theirs (nothing: none), and the figure for people.

    Prompts that only one side has are passed over.
    """
    known = {answer.prompt: answer for answer in theirs}
    shared = [answer for answer in ours if answer.prompt in known]
    faults = [found for answer in shared if (found := difference(answer, known[answer.prompt]))]
    gap, tokens = drift(shared, theirs)
    if gap > MOST_DRIFT:
        faults.append(
            f"log-probabilities of the same tokens differ by {gap:.3f} nats on average,"
            f" over {MOST_DRIFT:g}"
        )
    return faults, f"{len(shared)} prompts, {tokens} tokens alike, mean difference {gap:.4f} nats"
