"""Questions that a trained model answers and a broken one does not: needle, tool call, JSON schema, Korean.

Each asks, judges, and gives a `Judged`. They mean nothing for a base or random model, so they run only when the
plan names them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from bundler.accept.correctness import garbage
from bundler.accept.correctness.asking import Asker, Choice, NotOffered, excerpt
from bundler.accept.correctness.schema import mismatch, parsed
from bundler.accept.correctness.texts import KOREAN_QUESTION, record_line
from bundler.domain.correctness import Outcome

# Long contexts break where short ones do not: fp8 caches decay with length (vLLM issue 23813).
LONG = 16_384
_WANTED = 17_000
_SPARE = 256
_LEAST_CONTEXT = 1024
_DEPTHS = (0.1, 0.5, 0.9)
_PROBED_LINES = 40


@dataclass(frozen=True)
class Judged:
    """How a question ended: measured, why, and what was seen."""

    outcome: Outcome
    measured: str = ""
    reason: str = ""
    evidence: tuple[str, ...] = ()


def _unfinished(choice: Choice, asker: Asker) -> Judged | None:
    """An answer that is all thought proves nothing."""
    if choice.text.strip() or choice.finish_reason != "length":
        return None
    return Judged(
        Outcome.UNKNOWN, "", f"no answer within {asker.room} tokens: it thought all the time"
    )


async def needle(asker: Asker, context: int | None) -> Judged:
    """Find a code in a long register, at three depths.

    Args:
        asker: whom to ask.
        context: tokens that a request may have; None when the engine does not say.
    """
    longest = _WANTED if context is None else min(_WANTED, context - asker.room - _SPARE)
    if longest < _LEAST_CONTEXT:
        raise NotOffered(f"a context of {context} tokens is too short for a needle")
    chance = random.Random(asker.salt)  # noqa: S311 - test data, no secret
    per_line, fixed = await _tokens_per_line(asker, chance)
    count = max(10, int((longest * 0.98 - fixed) / per_line))
    missed: list[str] = []
    shortest = 0
    for depth in _DEPTHS:
        code = f"{chance.randrange(1000, 10_000)}-{chance.randrange(1000, 10_000)}"
        choice = await asker.chat(_haystack(count, depth, code, chance), asker.room)
        if unfinished := _unfinished(choice, asker):
            return unfinished
        shortest = min(shortest or choice.prompt_tokens, choice.prompt_tokens)
        if code not in choice.text:
            missed.append(f"at {depth * 100:.0f} % of the text: {excerpt(choice.text)}")
    measured = f"{len(_DEPTHS) - len(missed)} of {len(_DEPTHS)} found in {shortest} tokens"
    short = "" if shortest >= LONG else f"the context allows no {LONG} tokens"
    if missed:
        return Judged(Outcome.WRONG, measured, "the code was not found", tuple(missed))
    return Judged(Outcome.RIGHT, measured, short)


def _haystack(count: int, depth: float, code: str, chance: random.Random) -> str:
    lines = [record_line(number, chance) for number in range(1, count + 1)]
    lines.insert(int(depth * count), f"Note: the release code of the northern archive is {code}.")
    return (
        "Read this register.\n\n"
        + "\n".join(lines)
        + "\n\nWhat is the release code of the northern archive? Answer with the code alone."
    )


async def _tokens_per_line(asker: Asker, chance: random.Random) -> tuple[float, int]:
    """Tokens of a line, and of all around the lines, as the engine itself counts them."""
    many = (await asker.chat(_haystack(_PROBED_LINES, 0.5, "0000-0000", chance), 1)).prompt_tokens
    few = (await asker.chat(_haystack(0, 0, "0000-0000", chance), 1)).prompt_tokens
    if many <= few:
        raise NotOffered("it does not count the tokens of prompts")
    return (many - few) / _PROBED_LINES, few


_STOCK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "item": {"type": "string", "enum": ["paper", "toner", "cable"]},
        "warehouse": {"type": "string", "enum": ["seoul", "busan", "daegu"]},
    },
    "required": ["item", "warehouse"],
    "additionalProperties": False,
}
_TOOL = {
    "type": "function",
    "function": {
        "name": "stock_level",
        "description": "How many boxes of an item a warehouse holds.",
        "parameters": _STOCK,
    },
}
_WANTED_CALL = {"item": "paper", "warehouse": "busan"}


async def tools(asker: Asker) -> Judged:
    """Call the one function that answers the question, with the right arguments."""
    question = "How many boxes of paper are in the Busan warehouse? Use the tool to find out."
    choice = await asker.chat(question, asker.room, tools=[_TOOL], tool_choice="auto")
    calls = choice.message.get("tool_calls")
    call = calls[0] if isinstance(calls, list) and calls else None
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        if unfinished := _unfinished(choice, asker):
            return unfinished
        return Judged(Outcome.WRONG, "no call", "no tool was called", (excerpt(choice.text),))
    name, arguments = function.get("name"), function.get("arguments")
    seen = (excerpt(f"{name}({arguments})"),)
    if name != "stock_level":
        return Judged(Outcome.WRONG, "a call", "another tool than the given one", seen)
    value, why = parsed(arguments) if isinstance(arguments, str) else (arguments, "")
    why = why or mismatch(value, _STOCK, "the arguments")
    if not why and value != _WANTED_CALL:
        why = "the arguments are not those of the question"
    return Judged(Outcome.WRONG if why else Outcome.RIGHT, "a call", why, seen)


_TICKET: dict[str, Any] = {
    "type": "object",
    "properties": {
        "priority": {"type": "string", "enum": ["low", "middle", "high"]},
        "floor": {"type": "integer", "minimum": 1, "maximum": 60},
        "urgent": {"type": "boolean"},
    },
    "required": ["priority", "floor", "urgent"],
    "additionalProperties": False,
}


async def json_schema(asker: Asker) -> Judged:
    """Answer in the form of a schema."""
    choice = await asker.chat(
        "The printer on floor 7 is on fire. Describe it as a ticket in JSON with priority, floor, urgent.",
        asker.room,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "ticket", "strict": True, "schema": _TICKET},
        },
    )
    if unfinished := _unfinished(choice, asker):
        return unfinished
    seen = (excerpt(choice.text),)
    value, why = parsed(choice.text)
    if why == "cut off" and choice.finish_reason == "length":
        return Judged(Outcome.UNKNOWN, "", f"the JSON did not end within {asker.room} tokens", seen)
    why = why or mismatch(value, _TICKET, "the answer")
    return Judged(Outcome.WRONG if why else Outcome.RIGHT, "one answer", why, seen)


async def korean(asker: Asker) -> Judged:
    """Answer a Korean question in Korean."""
    choice = await asker.chat(KOREAN_QUESTION, asker.room)
    if unfinished := _unfinished(choice, asker):
        return unfinished
    why = garbage.not_korean(choice.text)
    outcome = Outcome.WRONG if why else Outcome.RIGHT
    return Judged(outcome, f"{len(choice.text)} characters", why, (excerpt(choice.text),))
