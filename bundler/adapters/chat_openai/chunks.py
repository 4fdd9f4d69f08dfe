"""What the JSON of the chat and the completions API says, both whole and in chunks.

An engine is not trusted to keep to the API: a field of another type than documented counts as missing.
"""

from __future__ import annotations

import json
from typing import Any

from bundler.adapters.chat_openai.safe_text import failure, message, one_line, safe
from bundler.ports import Delta

_LONGEST_REASON = 40
_MOST_TOKENS = 2**31
_BROKEN_OFF = ("abort", "error")  # vLLM ends a request so when the engine itself gave up on it


def delta_of(text: str, at: float) -> Delta:
    """One chunk of a stream that arrived at `at`.

    Raises:
        EngineError: no chunk, or the engine's report of a failure.
    """
    chunk = _object(text)
    choice = _choice(chunk) or {}
    reason = _reason(choice)
    said, reasoning = _string(choice, "text"), False
    if not said:
        said, reasoning = _said(_part(choice, "delta"))
    usage = chunk.get("usage")
    if usage is None:
        return Delta(at, said, reasoning, reason, cached_tokens=_cached(chunk, usage))
    return Delta(
        at=at,
        text=said,
        reasoning=reasoning,
        finish_reason=reason,
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cached_tokens=_cached(chunk, usage),
    )


def completion_of(body: str) -> str:
    """What a whole answer says; its reasoning when there is nothing else.

    Raises:
        EngineError: no answer, one without text, or the engine's report of a failure.
    """
    choice = _choice(_object(body))
    if choice is None:
        raise failure("the engine answered without choices")
    text, _ = _said(_part(choice, "message"))
    if not text:
        reason = _reason(choice)
        raise failure(
            f"answered with no text ({f'finish_reason {reason}' if reason else 'no finish_reason'})"
        )
    return text


def _object(text: str) -> dict[str, Any]:
    """An answer or a chunk that is an object and reports no error."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise failure(f"not JSON from the engine: {text}") from cause
    if not isinstance(value, dict):
        raise failure(f"not an object from the engine: {text}")
    if value.get("error"):
        raise failure(f"the engine reported: {message(text.encode(errors='replace'))}")
    return value


def _choice(answer: dict[str, Any]) -> dict[str, Any] | None:
    """The first choice; None when there is none, as in the chunk that carries usage."""
    choices = answer.get("choices")
    if not choices:
        return None
    if not isinstance(choices, list) or not isinstance(choices[0], dict):
        raise failure("the engine's choices are not a list of objects")
    return choices[0]


def _part(choice: dict[str, Any], name: str) -> dict[str, Any]:
    part = choice.get(name)
    if part is not None and not isinstance(part, dict):
        raise failure(f"the engine's {name} is not an object")
    return part or {}


def _reason(choice: dict[str, Any]) -> str:
    """Why the answer ended; empty while it has not."""
    reason = _string(choice, "finish_reason")
    if not reason:
        return ""
    reason = one_line(reason, _LONGEST_REASON)
    if reason in _BROKEN_OFF:
        raise failure(f"the engine ended the answer with finish_reason {reason}")
    return reason


def _said(part: dict[str, Any]) -> tuple[str, bool]:
    """All that the model said in a message or delta, and whether it was reasoning only.

    vLLM calls reasoning `reasoning`, older versions and llama.cpp `reasoning_content`; some send both.
    """
    calls = part.get("tool_calls")
    said = _string(part, "content")
    if calls:
        said += "".join(
            _string(call.get("function"), "arguments")
            for call in (calls if isinstance(calls, list) else ())
            if isinstance(call, dict)
        )
    if said:
        return said, False
    thought = _string(part, "reasoning") or _string(part, "reasoning_content")
    return thought, bool(thought)


def _string(part: object, name: str) -> str:
    """A field's text."""
    value = part.get(name) if isinstance(part, dict) else None
    return safe(value) if isinstance(value, str) else ""


def _cached(chunk: dict[str, Any], usage: object) -> int | None:
    """Prompt tokens that came from a prefix cache, where the engine says so.

    OpenAI's `usage.prompt_tokens_details.cached_tokens` (vLLM with --enable-prompt-tokens-details), or
    llama.cpp's `timings.cache_n`.
    """
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    found = _count(details, "cached_tokens") if details else None
    return found if found is not None else _count(chunk.get("timings"), "cache_n")


def _count(usage: object, name: str) -> int | None:
    """A field's number of tokens, when it can be one."""
    value = usage.get(name) if isinstance(usage, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < _MOST_TOKENS else None
