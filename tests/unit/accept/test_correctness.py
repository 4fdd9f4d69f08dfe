"""The probes against a deterministic server over real HTTP: right, and wrong in every way that they look for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bundler import wiring
from bundler.accept.correctness.asking import NotOffered
from bundler.accept.correctness.judging import judge_correctness
from bundler.accept.correctness.run import Probing, probe_service, record_service
from bundler.accept.pipeline import accept
from bundler.adapters.api_http import HttpApi
from bundler.adapters.chat_openai import OpenAIChat
from bundler.domain.correctness import CorrectnessResult, Golden, Outcome, Probe
from bundler.domain.spec import Acceptance, Service, Settings, Slo
from bundler.domain.verdict import Verdict, overall
from tests.fakes.oracle_engine import Oracle, serving
from tests.unit.accept.fake_chat import CountingProgress
from tests.unit.accept.test_acceptance_pipeline import state, verified

pytestmark = pytest.mark.slow

ALL: tuple[Probe, ...] = ("golden", "nll", "garbage", "needle", "tools", "json", "korean")


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    with serving() as one:
        yield one


class Asked:
    """One run of the probes and what came of it."""

    def __init__(
        self,
        oracle: Oracle,
        *probes: Probe,
        slots: int | None = None,
        context: int = 32_768,
        golden: Golden | None = None,
    ) -> None:
        self.spans: list[str] = []
        service = Service(
            name="m", model="m", settings=Settings(max_num_seqs=slots, max_model_len=context)
        )
        plan = Acceptance(
            concurrency=(1, 4), correctness=probes or None, request_timeout_s=20, output_tokens=16
        )
        known = {"m": golden} if golden else {}
        self.results = probe_service(
            Probing(HttpApi(), OpenAIChat(), known), oracle.url, service, plan, "a/b@c", self._span
        )
        self.checks, self.warnings = judge_correctness(self.results)

    @contextmanager
    def _span(self, service: str, what: str) -> Iterator[None]:
        self.spans.append(what)
        yield

    def of(self, probe: str, phase: str) -> CorrectnessResult:
        [one] = [r for r in self.results if (r.probe, r.phase) == (probe, phase)]
        return one

    def outcomes(self, phase: str) -> dict[str, Outcome]:
        return {r.probe: r.outcome for r in self.results if r.phase == phase}


def recorded(oracle: Oracle) -> Golden:
    found = record_service(
        Probing(HttpApi(), OpenAIChat()), oracle.url, Service(name="m", model="m"), 20, "s"
    )
    return Golden(
        model_digest="a" * 64, model="m", engine="e 1", recorded="2026-01-01T00:00:00Z",
        greedy=tuple(found.greedy), nll=tuple(found.nll),
    )  # fmt: skip


def test_a_right_engine_passes_idle_and_under_load(oracle: Oracle) -> None:
    asked = Asked(oracle, *ALL, golden=recorded(oracle))
    assert set(asked.outcomes("idle").values()) == {Outcome.RIGHT}
    assert set(asked.outcomes("load").values()) == {Outcome.RIGHT}
    assert [check.verdict for check in asked.checks] == [Verdict.PASS] * 14
    assert asked.spans == ["correctness, idle", "correctness, x3"]
    # The load was there, and has ended with the probes.
    assert oracle.most_streaming >= 3
    assert "found in" in asked.of("needle", "load").measured


def test_no_prompt_can_come_from_the_prefix_cache(oracle: Oracle) -> None:
    Asked(oracle, "golden", "nll")
    salts = [body["cache_salt"] for path, body in oracle.asked if "logprobs" in body]
    assert len(set(salts)) == 2  # one for each phase
    assert all(salt.isalnum() for salt in salts)
    assert all(body["cache_prompt"] is False for _, body in oracle.asked if "logprobs" in body)


@pytest.mark.parametrize(
    ("mode", "probe", "words"),
    [
        ("wrong-under-load", "golden", "token 6"),
        ("drift-under-load", "golden", "differ by 0.600 nats"),
        ("drift-under-load", "nll", "nats for each token"),
        ("bang", "garbage", "'!' repeats"),
    ],
)
def test_what_is_wrong_only_under_load_fails_there_alone(
    oracle: Oracle, mode: str, probe: Probe, words: str
) -> None:
    oracle.modes = {mode}
    asked = Asked(oracle, "golden", "nll", "garbage")
    assert asked.of(probe, "load").outcome is Outcome.WRONG
    assert words in asked.of(probe, "load").reason
    assert Outcome.WRONG not in asked.outcomes("idle").values()
    failed = {(c.what, c.concurrency) for c in asked.checks if c.verdict is Verdict.FAIL}
    assert failed
    assert all("under load" in what and at == 3 for what, at in failed)


@pytest.mark.parametrize(
    ("mode", "probe", "words"),
    [
        ("nan", "golden", "no valid numbers"),
        ("garbage", "garbage", "'!' repeats"),
        ("bad-json", "json", "the answer lacks floor"),
        ("bad-json", "tools", "lacks warehouse"),
        ("lost-needle", "needle", "the code was not found"),
        ("english", "korean", "Hangul syllables"),
        ("failing", "golden", "HTTP 500: CUDA error"),
        ("failing", "tools", "HTTP 500: CUDA error"),
    ],
)
def test_what_is_always_wrong_fails_idle(
    oracle: Oracle, mode: str, probe: Probe, words: str
) -> None:
    oracle.modes = {mode}
    found = Asked(oracle, probe, slots=1).of(probe, "idle")
    assert found.outcome is Outcome.WRONG
    assert words in found.reason or any(words in one for one in found.evidence)


@pytest.mark.parametrize(
    ("mode", "probe", "words"),
    [
        ("no-logprobs", "golden", "hold no log-probabilities"),
        ("no-likelihood", "nll", "Not Found"),
        ("no-tools", "tools", "--enable-auto-tool-choice"),
    ],
)
def test_what_an_engine_does_not_offer_is_no_failure(
    oracle: Oracle, mode: str, probe: Probe, words: str
) -> None:
    oracle.modes = {mode}
    asked = Asked(oracle, probe)
    assert asked.outcomes("idle") == asked.outcomes("load") == {probe: Outcome.NOT_OFFERED}
    assert overall(asked.checks) is Verdict.INCONCLUSIVE  # asked for by name, and not shown
    assert all(words in check.reason for check in asked.checks)
    unnamed = Asked(oracle)
    assert Verdict.INCONCLUSIVE not in {check.verdict for check in unnamed.checks}
    assert probe == "tools" or any(words in text for text in unnamed.warnings)


def test_an_answer_that_is_all_thought_proves_nothing(oracle: Oracle) -> None:
    oracle.modes = {"no-thought-end"}
    asked = Asked(oracle, "needle", "tools", "json", "korean", slots=1)
    outcomes = asked.outcomes("idle")
    assert outcomes["json"] is outcomes["korean"] is outcomes["tools"] is Outcome.UNKNOWN


def test_unnamed_detectors_are_shown_and_do_not_decide(oracle: Oracle) -> None:
    oracle.modes = {"garbage"}
    asked = Asked(oracle)
    assert asked.of("garbage", "idle").outcome is Outcome.WRONG
    assert {check.verdict for check in asked.checks} == {Verdict.PASS}
    assert any("does not name garbage" in text for text in asked.warnings)


def test_a_golden_record_of_a_right_set_up_finds_a_wrong_one(oracle: Oracle) -> None:
    golden = recorded(oracle)
    assert Asked(oracle, golden=golden).of("golden", "idle").outcome is Outcome.RIGHT
    oracle.modes = {"garbage"}
    asked = Asked(oracle, golden=golden)
    found = asked.of("golden", "idle")
    assert found.outcome is Outcome.WRONG
    assert found.reason.startswith("the golden record: english: token 1")
    assert overall(asked.checks) is Verdict.FAIL


def test_without_a_record_idle_answers_prove_nothing_and_disturb_nothing(oracle: Oracle) -> None:
    asked = Asked(oracle)
    idle = asked.of("golden", "idle")
    assert (idle.outcome, idle.judged) == (Outcome.UNKNOWN, False)
    assert asked.warnings == ()
    assert overall(asked.checks) is Verdict.PASS


def test_an_engine_of_one_slot_is_asked_idle_alone(oracle: Oracle) -> None:
    asked = Asked(oracle, "golden", "nll", slots=1)
    assert {one.phase for one in asked.results} == {"idle"}
    assert oracle.most_streaming == 0
    # Asked for by name, and nothing to compare with: that is not shown.
    assert asked.of("golden", "idle").judged
    assert overall(asked.checks) is Verdict.INCONCLUSIVE
    assert overall(Asked(oracle, slots=1).checks) is Verdict.PASS


def test_an_empty_list_asks_nothing(oracle: Oracle) -> None:
    plan = Acceptance(correctness=())
    service = Service(name="m", model="m")
    probing = Probing(HttpApi(), OpenAIChat())
    assert probe_service(probing, oracle.url, service, plan, "s", lambda *_: 1 / 0) == ()  # type: ignore[arg-type,return-value]
    assert oracle.asked == []


def test_llama_cpp_is_asked_token_by_token_and_half_characters_are_left_out() -> None:
    with serving("llama.cpp") as oracle:
        asked = Asked(oracle, "nll", slots=1)
        assert asked.of("nll", "idle").outcome is Outcome.RIGHT
        forced = [body for path, body in oracle.asked if path == "/completion"]
        assert [body["logit_bias"][0][0] for body in forced[:3]] == [1, 3, 4]
        assert [len(body["prompt"]) for body in forced[:3]] == [1, 3, 4]


def test_a_short_context_says_how_short(oracle: Oracle) -> None:
    asked = Asked(oracle, "needle", context=4096, slots=1)
    found = asked.of("needle", "idle")
    assert found.outcome is Outcome.RIGHT
    assert found.reason == "the context allows no 16384 tokens"
    tokens = int(found.measured.rpartition(" in ")[2].split()[0])
    assert 2500 < tokens < 4096
    none = Asked(oracle, "needle", context=512, slots=1).of("needle", "idle")
    assert none.outcome is Outcome.NOT_OFFERED


def test_a_long_context_is_filled_to_16k(oracle: Oracle) -> None:
    found = Asked(oracle, "needle", slots=1).of("needle", "idle")
    assert int(found.measured.rpartition(" in ")[2].split()[0]) >= 16_384


def test_nobody_listens() -> None:
    with serving() as oracle:
        gone = oracle
    asked = Asked(gone, "golden", "tools", slots=1)
    assert asked.outcomes("idle") == {"golden": Outcome.WRONG, "tools": Outcome.WRONG}
    assert "cannot connect" in asked.of("tools", "idle").reason


def test_a_record_needs_log_probabilities(oracle: Oracle) -> None:
    oracle.modes = {"no-logprobs"}
    with pytest.raises(NotOffered):
        recorded(oracle)


@pytest.mark.parametrize(("mode", "verdict"), [("", Verdict.PASS), ("bang", Verdict.FAIL)])
def test_a_kernel_that_is_fast_and_wrong_fails_the_whole_run(
    oracle: Oracle, mode: str, verdict: Verdict
) -> None:
    oracle.modes = {mode}
    plan = Acceptance(
        concurrency=(1, 4), requests=4, input_tokens=16, output_tokens=8, request_timeout_s=20,
        slo=Slo(ttft_ms=20_000, attainment=0.4),
    )  # fmt: skip
    shipped = verified(plan)
    services = (Service(name="m", model="m", settings=Settings(max_model_len=4096)),)
    manifest = shipped.manifest.model_copy(update={"services": services})
    record = accept(
        states=(state("m").model_copy(update={"url": oracle.url}),),
        verified=shipped.model_copy(update={"manifest": manifest}),
        chat=OpenAIChat(),
        clock=wiring.clock(),
        progress=CountingProgress(),
        host={},
        probing=Probing(HttpApi(), OpenAIChat()),
    )
    assert record.verdict is verdict
    load = [check for check in record.checks if "golden" not in check.what]
    assert {check.verdict for check in load} == {Verdict.PASS}
    assert [span.what for span in record.telemetry.spans] == [
        "correctness, idle", "correctness, x3", "x1", "x4",
    ]  # fmt: skip
    assert {one.probe for one in record.correctness} == {"golden", "nll", "garbage"}
