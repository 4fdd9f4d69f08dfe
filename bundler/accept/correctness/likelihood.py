"""Mean negative log-likelihood of fixed texts: one number that every layer and every kernel has a part in.

Two ways to ask. vLLM returns `prompt_logprobs`. llama.cpp returns nothing for prompts (issue 27174: `echo` with
`logprobs` gives the generated token's alone), so each token is asked for by itself: the text before it as
prompt, that token forced by `logit_bias`, and `n_probs`, whose numbers are those before sampling and bias. Tokens
that are no whole characters are left out there: llama-server answers 500 when it would have to write one.

The tolerance is an engineering choice: 0.05 nats and one in a hundred more. Rounding averages out over the tokens of a
text and moves the mean by thousandths; of quantized caches and kernels a good one moves perplexity by
under one in a hundred, and one that loses answers by far more than five.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bundler.accept.correctness.asking import Asker, NotOffered, WrongAnswer
from bundler.domain.correctness import Nll

TOLERANCE, SHARE = 0.05, 0.01
# Over this a text is as unlikely as a random word of a thousand: no trained model thinks so of plain prose.
IMPLAUSIBLE = math.log(1000)
_FORCE = 1000.0
_MOST_FORCED = 40


async def ask_nll(asker: Asker, name: str, text: str) -> Nll:
    """Measure one text.

    Raises:
        NotOffered: neither way is open.
        WrongAnswer: a log-probability is no number.
        EngineError: no answer.
    """
    try:
        found = await _prompt_logprobs(asker, text)
    except NotOffered as first:
        try:
            found = await _forced(asker, text)
        except NotOffered:
            raise first from None
    bad = next((value for value in found if not math.isfinite(value) or value > 1e-3), None)
    if bad is not None:
        raise WrongAnswer(f"a log-probability of {bad}: the model computes no valid numbers")
    if all(value > -1e-6 for value in found):
        raise NotOffered("its log-probabilities are those after sampling")
    return Nll(text=name, tokens=len(found), mean=round(-sum(found) / len(found), 6))


async def _prompt_logprobs(asker: Asker, text: str) -> list[float]:
    body = await asker.ask(
        "/v1/completions",
        {
            "model": asker.model,
            "prompt": text,
            "max_tokens": 1,
            "temperature": 0,
            "prompt_logprobs": 0,
            "cache_salt": asker.salt,
        },
    )
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    listed = first.get("prompt_logprobs") if isinstance(first, dict) else None
    found = []
    for item in listed if isinstance(listed, list) else []:
        # The first token follows nothing, and has None.
        for entry in item.values() if isinstance(item, dict) else ():
            value = entry.get("logprob") if isinstance(entry, dict) else None
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                found.append(float(value))
            break
    if not found:
        raise NotOffered("its completions hold no log-probabilities of the prompt")
    return found


async def _forced(asker: Asker, text: str) -> list[float]:
    question = {"content": text, "add_special": True, "with_pieces": True}
    listed = (await asker.ask("/tokenize", question)).get("tokens")
    pairs = [
        (one["id"], isinstance(one.get("piece"), str))
        for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, dict) and type(one.get("id")) is int
    ]
    tokens = [token for token, _ in pairs]
    places = [place for place, (_, whole) in enumerate(pairs) if place and whole][:_MOST_FORCED]
    if not places:
        raise NotOffered("it gives neither log-probabilities of prompts nor tokens")
    return [await _one(asker, tokens[:place], tokens[place]) for place in places]


async def _one(asker: Asker, before: Sequence[int], token: int) -> float:
    body = await asker.ask(
        "/completion",
        {
            "prompt": list(before),
            "n_predict": 1,
            "n_probs": 1,
            "temperature": 0,
            "cache_prompt": False,
            "logit_bias": [[token, _FORCE]],
        },
    )
    listed = body.get("completion_probabilities")
    first = listed[0] if isinstance(listed, list) and listed else None
    if not isinstance(first, dict) or first.get("id") != token:
        raise NotOffered("it does not say how likely a given token is")
    value = first.get("logprob")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise WrongAnswer("a log-probability that is no number")
    return float(value)


def compare(ours: Sequence[Nll], theirs: Sequence[Nll]) -> tuple[list[str], str]:
    """What is wrong with our figures beside theirs, and the figures for people."""
    known = {one.text: one for one in theirs}
    faults, told = [], []
    for one in ours:
        other = known.get(one.text)
        if other is None:
            continue
        told.append(f"{one.text} {one.mean:.4f} to {other.mean:.4f}")
        if one.tokens != other.tokens:
            faults.append(f"{one.text}: {one.tokens} tokens, {other.tokens} there")
        elif abs(one.mean - other.mean) > TOLERANCE + SHARE * abs(other.mean):
            faults.append(f"{one.text}: {one.mean:.4f} nats for each token, {other.mean:.4f} there")
    return faults, "; ".join(told)


def figures(found: Sequence[Nll]) -> str:
    """The figures for people."""
    return "; ".join(f"{one.text} {one.mean:.4f}" for one in found)
