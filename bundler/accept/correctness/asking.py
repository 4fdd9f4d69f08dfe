"""One question to an engine's API, and what counts as "it has no such thing"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bundler.errors import EngineError
from bundler.instruments import ApiSession

# Room for models that think although they were asked not to.
MOST_ROOM = 768
CHAT = "/v1/chat/completions"
# Wrong request, no such route or method, not valid, not implemented: the engine cannot be asked so.
_REFUSED = (400, 404, 405, 415, 422, 501)
_LONGEST_EXCERPT = 160
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class NotOffered(Exception):  # noqa: N818 - a finding, not a failure
    """This engine, as it was started, does not offer what a probe needs. The text says what."""


class WrongAnswer(Exception):  # noqa: N818 - a finding, not a failure
    """An answer that no right engine gives, such as a probability that is no number."""


@dataclass(frozen=True)
class Asker:
    """Asks one service. `salt` keeps prompts out of the prefix cache: the prefill is to run each time.

    It consists of letters and digits: vLLM refuses some other characters in it.
    """

    api: ApiSession
    model: str
    timeout_s: float
    salt: str
    room: int = MOST_ROOM
    """Most tokens of an answer that is judged as a whole."""

    async def ask(self, path: str, body: Mapping[str, object]) -> Mapping[str, Any]:
        """An answer's JSON object.

        Raises:
            NotOffered: the engine refuses the question itself.
            EngineError: it failed to answer.
        """
        answered = await self.api.post(path, body, self.timeout_s)
        if answered.status in _REFUSED:
            raise NotOffered(answered.message or f"HTTP {answered.status}")
        if answered.status != 200:
            raise EngineError(f"HTTP {answered.status}: {answered.message}")
        return answered.body

    async def chat(self, prompt: str, max_tokens: int, **more: object) -> Choice:
        """A greedy chat answer; reasoning is switched off where a template can.

        `cache_salt` is vLLM's and `cache_prompt` llama.cpp's word against cached prefixes; engines pass
        over fields that they do not know.

        Raises:
            NotOffered, EngineError: as `ask`.
        """
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": max_tokens,
            "temperature": 0,
            "seed": 0,
            "cache_salt": self.salt,
            "cache_prompt": False,
            "chat_template_kwargs": {"enable_thinking": False},
            **more,
        }
        return _choice(await self.ask(CHAT, body))


@dataclass(frozen=True)
class Choice:
    """What came back: text, tool calls, log-probabilities as they were sent, and why it ended."""

    text: str
    finish_reason: str
    prompt_tokens: int
    message: Mapping[str, Any] = field(default_factory=dict)
    logprobs: object = None


def _choice(body: Mapping[str, Any]) -> Choice:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        raise EngineError("the engine answered without choices")
    message = first.get("message")
    message = message if isinstance(message, dict) else {}
    usage = body.get("usage")
    tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else 0
    return Choice(
        text=text_of(message.get("content")),
        finish_reason=text_of(first.get("finish_reason"))[:40],
        prompt_tokens=tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else 0,
        message=message,
        logprobs=first.get("logprobs"),
    )


def text_of(value: object) -> str:
    """A string that can be stored; empty for anything else. Halves of surrogate pairs are replaced."""
    if not isinstance(value, str):
        return ""
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", value)


def excerpt(text: str) -> str:
    """The beginning of a text in one line that can be shown anywhere."""
    line = _UNSAFE.sub("\N{MIDDLE DOT}", text[: 2 * _LONGEST_EXCERPT])
    return line if len(line) <= _LONGEST_EXCERPT else line[: _LONGEST_EXCERPT - 1] + "…"
