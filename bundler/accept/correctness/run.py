"""Every probe of one service: idle, then again while other requests are in flight."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from bundler.accept.correctness import garbage, greedy, likelihood, tasks
from bundler.accept.correctness.asking import MOST_ROOM, Asker, NotOffered, WrongAnswer, excerpt
from bundler.accept.correctness.background import Load, background, in_flight
from bundler.accept.correctness.judging import ALONE, NO_RECORD
from bundler.accept.correctness.tasks import Judged
from bundler.accept.correctness.texts import PASSAGES, PROMPTS
from bundler.domain.correctness import (
    CorrectnessResult,
    Golden,
    Greedy,
    Nll,
    Outcome,
    Phase,
    Probe,
)
from bundler.domain.spec import Acceptance, Service, Settings
from bundler.errors import EngineError
from bundler.instruments import ApiClient
from bundler.ports import ChatClient

ALWAYS: tuple[Probe, ...] = ("golden", "nll", "garbage")
# A probe is short: one that takes longer than this hangs, and the rest would as well.
_LONGEST_S = 180.0
_MOST_EVIDENCE = 6
T = TypeVar("T")


@dataclass(frozen=True)
class Probing:
    """What to ask with, and the golden records of the models, service -> record.

    `slots`: requests that the engine computes at once where a service's settings leave it open; None: many.
    """

    api: ApiClient
    chat: ChatClient
    golden: Mapping[str, Golden] = field(default_factory=dict)
    slots: int | None = None


@dataclass
class Answers:
    """What one phase brought."""

    greedy: list[Greedy] = field(default_factory=list)
    nll: list[Nll] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    judged: dict[Probe, Judged] = field(default_factory=dict)


def probe_service(
    probing: Probing,
    url: str,
    service: Service,
    plan: Acceptance,
    salt: str,
    span: Callable[[str, str], AbstractContextManager[None]],
) -> tuple[CorrectnessResult, ...]:
    """Ask everything that the plan names, or what holds for any model when it names nothing.

    A probe never raises: no answer is a wrong one, and what the engine does not offer is said.

    Args:
        probing: what to ask with.
        url: where the service is.
        service: its name and settings.
        plan: which probes, and how many requests run beside them.
        salt: makes this run's prompts new.
        span: marks the phases on the time axis.
    """
    if plan.correctness == ():
        return ()
    return asyncio.run(_Run(probing, url, service, plan, salt, span).all())


def record_service(
    probing: Probing, url: str, service: Service, timeout_s: float, salt: str
) -> Answers:
    """The greedy answers and likelihoods of an idle service, for a golden record.

    Raises:
        NotOffered: this engine has neither.
        WrongAnswer, EngineError: it is broken.
    """

    async def ask() -> Answers:
        answers = Answers()
        async with probing.api.session(url) as api:
            asker = Asker(api, service.name, timeout_s, _salt(salt))
            for name, prompt in PROMPTS.items():
                found, text = await greedy.ask_greedy(asker, name, prompt)
                answers.greedy.append(found)
                answers.texts.append(text)
            for name, text in PASSAGES.items():
                try:
                    answers.nll.append(await likelihood.ask_nll(asker, name, text))
                except NotOffered:
                    break
        return answers

    return asyncio.run(ask())


@dataclass
class _Run:
    probing: Probing
    url: str
    service: Service
    plan: Acceptance
    salt: str
    span: Callable[[str, str], AbstractContextManager[None]]

    @property
    def _named(self) -> bool:
        return self.plan.correctness is not None

    @property
    def _probes(self) -> tuple[Probe, ...]:
        named = self.plan.correctness
        return ALWAYS if named is None else tuple(dict.fromkeys(named))

    @property
    def _beside(self) -> int:
        settings = self.service.settings or Settings()
        return in_flight(self.plan, settings.max_num_seqs or self.probing.slots)

    async def all(self) -> tuple[CorrectnessResult, ...]:
        """Both phases."""
        name, settings = self.service.name, self.service.settings or Settings()
        count = self._beside
        timeout_s = min(self.plan.request_timeout_s, _LONGEST_S)
        room = min(MOST_ROOM, (settings.max_model_len or MOST_ROOM * 2) // 2)
        async with self.probing.api.session(self.url) as api:
            asker = Asker(api, name, timeout_s, _salt(f"{self.salt}/idle"), room)
            with self.span(name, "correctness, idle"):
                idle = await self._ask(asker, together=False)
            results = list(self._results(idle, None, "idle", 0))
            if count < 1:
                return tuple(results)
            asker = replace(asker, salt=_salt(f"{self.salt}/load"))
            with self.span(name, f"correctness, x{count}"):
                loaded, load = await self._under_load(asker, count)
            doubt = (
                "" if load.answered or load.streaming else f"nothing ran beside it: {load.error}"
            )
            results += [
                one if not doubt or one.outcome is not Outcome.RIGHT
                else one.model_copy(update={"outcome": Outcome.UNKNOWN, "reason": doubt})
                for one in self._results(loaded, idle, "load", count)
            ]  # fmt: skip
        return tuple(results)

    async def _under_load(self, asker: Asker, count: int) -> tuple[Answers, Load]:
        async with self.probing.chat.session(self.url) as chat:
            beside = background(chat, self.service.name, self.plan, count, f"{self.salt}/beside")
            async with beside as load:
                answers = await self._ask(asker, together=True)
                answers.texts += load.texts
                return answers, load

    async def _ask(self, asker: Asker, *, together: bool) -> Answers:
        """Ask all probes; `together`: the fixed prompts at once, so that they share batches."""
        answers = Answers()
        for probe in self._probes:
            if probe == "golden":
                await self._ask_greedy(asker, answers, together=together)
            elif probe == "nll":
                await self._ask_nll(asker, answers)
            elif probe != "garbage":
                answers.judged[probe] = await _settled(self._task(probe, asker))
        if "garbage" in self._probes and not answers.texts:
            await self._ask_texts(asker, answers)
        return answers

    async def _ask_texts(self, asker: Asker, answers: Answers) -> None:
        """The answers alone, of an engine that gives no log-probabilities or was not asked for them."""
        try:
            for prompt in PROMPTS.values():
                answers.texts.append((await asker.chat(prompt, greedy.MAX_TOKENS)).text)
        except (NotOffered, WrongAnswer, EngineError) as cause:
            answers.judged["garbage"] = _fallen(cause)

    async def _ask_greedy(self, asker: Asker, answers: Answers, *, together: bool) -> None:
        questions = [greedy.ask_greedy(asker, name, text) for name, text in PROMPTS.items()]
        try:
            if together:
                found = await _all(questions)
            else:
                found = [await question for question in questions]
        except (NotOffered, WrongAnswer, EngineError) as cause:
            answers.judged["golden"] = _fallen(cause)
            return
        finally:
            for question in questions:
                question.close()
        answers.greedy = [one for one, _ in found]
        answers.texts = [text for _, text in found]

    async def _ask_nll(self, asker: Asker, answers: Answers) -> None:
        try:
            for name, text in PASSAGES.items():
                answers.nll.append(await likelihood.ask_nll(asker, name, text))
        except (NotOffered, WrongAnswer, EngineError) as cause:
            answers.judged["nll"] = _fallen(cause)

    def _task(self, probe: Probe, asker: Asker) -> Awaitable[Judged]:
        context = (self.service.settings or Settings()).max_model_len
        if probe == "needle":
            return tasks.needle(asker, context)
        return {"tools": tasks.tools, "json": tasks.json_schema, "korean": tasks.korean}[probe](
            asker
        )

    def _results(
        self, here: Answers, idle: Answers | None, phase: Phase, count: int
    ) -> Iterator[CorrectnessResult]:
        golden = self.probing.golden.get(self.service.name)
        for probe in self._probes:
            judged = here.judged.get(probe)
            if probe == "garbage":
                judged = judged or _garbage(here.texts)
            elif judged is None and probe == "golden":
                others = (golden.greedy if golden else (), idle.greedy if idle else ())
                judged = _against(here.greedy, *others, greedy.compare)
            elif judged is None and probe == "nll":
                means = (golden.nll if golden else (), idle.nll if idle else ())
                judged = _against(here.nll, *means, likelihood.compare) or _plausible(here.nll)
            if judged is None:  # asked, and nothing to compare with
                why = NO_RECORD if self._beside else ALONE
                judged = Judged(Outcome.UNKNOWN, f"{len(here.greedy)} answers kept", why)
            yield CorrectnessResult(
                service=self.service.name,
                probe=probe,
                phase=phase,
                outcome=judged.outcome,
                judged=self._decides(probe, judged),
                in_flight=count,
                measured=judged.measured,
                reason=judged.reason,
                evidence=judged.evidence[:_MOST_EVIDENCE],
            )

    def _decides(self, probe: Probe, judged: Judged) -> bool:
        if judged.reason == NO_RECORD:
            return False
        if self._named:
            return True
        return probe != "garbage" and judged.outcome in (Outcome.RIGHT, Outcome.WRONG)


IMPLAUSIBLE = "as unlikely as random words: is the model trained, and are its weights whole?"


def _against(
    here: Sequence[T],
    golden: Sequence[T],
    idle: Sequence[T],
    compare: Callable[[Sequence[T], Sequence[T]], tuple[list[str], str]],
) -> Judged | None:
    """Beside the golden record, and under load beside the idle answers; None without either."""
    faults, told = [], []
    for name, there in (("the golden record", golden), ("idle", idle)):
        if there:
            found, measured = compare(here, there)
            faults += [f"{name}: {one}" for one in found]
            told.append(f"with {name}: {measured}")
    if not told:
        return None
    outcome = Outcome.WRONG if faults else Outcome.RIGHT
    reason = faults[0] if faults else ""
    return Judged(outcome, "; ".join(told), reason, tuple(map(excerpt, faults)))


def _plausible(found: Sequence[Nll]) -> Judged:
    """Without anything to compare with: the numbers are numbers."""
    worst = max(one.mean for one in found)
    reason = IMPLAUSIBLE if worst > likelihood.IMPLAUSIBLE else ""
    return Judged(Outcome.RIGHT, likelihood.figures(found), reason)


def _garbage(texts: Sequence[str]) -> Judged:
    bad = [(text, why) for text in texts if (why := garbage.fault(text))]
    measured = f"{len(texts) - len(bad)} of {len(texts)} answers"
    if not bad:
        return Judged(Outcome.RIGHT, measured)
    return Judged(Outcome.WRONG, measured, bad[0][1], tuple(excerpt(text) for text, _ in bad))


def _salt(seed: str) -> str:
    return f"{random.Random(seed).getrandbits(64):016x}"  # noqa: S311 - no secret


async def _settled(asked: Awaitable[Judged]) -> Judged:
    try:
        return await asked
    except (NotOffered, WrongAnswer, EngineError) as cause:
        return _fallen(cause)


def _fallen(cause: Exception) -> Judged:
    outcome = Outcome.NOT_OFFERED if isinstance(cause, NotOffered) else Outcome.WRONG
    return Judged(outcome, "", excerpt(str(cause)))


async def _all(questions: Sequence[Awaitable[T]]) -> list[T]:
    """All at once; when one fails the others are ended before it is told."""
    running = [asyncio.ensure_future(one) for one in questions]
    try:
        return list(await asyncio.gather(*running))
    finally:
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)
