"""Records -> sentences in both languages, for the answers to an owner's questions."""

from __future__ import annotations

from bundler.deploy.evidence import Action
from bundler.domain.ab import ABRecord
from bundler.domain.correctness import Outcome
from bundler.domain.facts import AcceptanceRecord, LevelMetrics
from bundler.domain.questions import Told
from bundler.domain.verdict import Verdict


def unsound(level: LevelMetrics, record: AcceptanceRecord) -> list[str]:
    """Names of the gates that this level failed."""
    here = (level.service, level.concurrency)
    return [
        gate.name
        for gate in record.gates
        if gate.state == "failed" and (gate.service, gate.concurrency) == here
    ]


def of_level(level: LevelMetrics, record: AcceptanceRecord) -> Told:
    """One line of figures, or why there are none."""
    here = (level.service, level.concurrency)
    if flawed := unsound(level, record):
        names = ", ".join(flawed)
        return Told(
            ko=f"{level.service}, 동시 {level.concurrency}명: 비교 불가 ({names} 점검 실패)",
            en=f"{level.service}, {level.concurrency} users: NOT COMPARABLE (gate {names} failed)",
        )
    judged = {c.verdict for c in record.checks if (c.service, c.concurrency) == here}
    order = (Verdict.FAIL, Verdict.NOT_COMPARABLE, Verdict.INCONCLUSIVE, Verdict.PASS)
    verdict = next((one.value for one in order if one in judged), Verdict.INCONCLUSIVE.value)
    figures = (
        f"TTFT p95 {_ms(level.ttft.p95)}, TPOT p95 {_ms(level.tpot.p95)}, E2E p95 {_ms(level.e2e.p95)},"
        f" {level.output_tokens_per_s:.1f} tokens/s"
    )
    plan = record.plan
    return Told(
        ko=f"{level.service}, 동시 {level.concurrency}명(입력 {plan.input_tokens}, 출력 {plan.output_tokens}토큰):"
        f" {figures}; 요청 {level.requests}건 중 {level.succeeded}건 성공, 판정 {verdict}",
        en=f"{level.service}, {level.concurrency} users ({plan.input_tokens} tokens in, {plan.output_tokens} out):"
        f" {figures}; {level.succeeded} of {level.requests} answered, {verdict}",
    )


def of_comparison(record: ABRecord) -> Told:
    """Which of two settings is better, and by how much."""
    first, second = (arm.words for arm in record.arms)
    main = next((one for one in record.comparisons if one.figure == record.primary), None)
    if not record.decided or main is None:
        return Told(
            ko=f"{first} 대 {second}: 결론 없음 ({record.said})",
            en=f"{first} against {second}: undecided ({record.said})",
        )
    range_ = f"{main.ratio:.2f} (95 %: {main.low:.2f}–{main.high:.2f})"
    kept = {arm.name: arm.words for arm in record.arms}.get(record.keep or "A", "")
    ko = f"{kept}이(가) 나음" if record.keep else "차이 없음"
    en = f"keep {kept}" if record.keep else "no difference"
    return Told(
        ko=f"{second} / {first}, {main.figure}: {range_}배; {ko}",
        en=f"{second} over {first}, {main.figure}: {range_}; {en}",
    )


def of_probes(record: AcceptanceRecord) -> Told:
    """How many answers were right."""
    judged = [one for one in record.correctness if one.judged]
    wrong = [f"{one.service} {one.probe}" for one in judged if one.outcome is Outcome.WRONG]
    right = sum(one.outcome is Outcome.RIGHT for one in judged)
    bad = ", ".join(wrong)
    return Told(
        ko=f"정답성 확인 {len(judged)}건 중 {right}건 정상" + (f"; 오답: {bad}" if bad else ""),
        en=f"{right} of {len(judged)} probes of the answers were right" + (f"; wrong: {bad}" if bad else ""),
    )  # fmt: skip


def of_action(action: Action) -> Told:
    """A command of the audit log, and how long it took."""
    entry = action.entry
    ended = {
        "done": ("완료", "done"),
        "failed": ("실패", "failed"),
        "interrupted": ("중단", "interrupted"),
    }
    ko, en = ended.get(entry.outcome, (entry.outcome, entry.outcome))
    took = action.seconds
    of = f" {entry.bundle_id}" if entry.bundle_id else ""
    more = f": {entry.detail}" if entry.detail else ""
    return Told(
        ko=f"{entry.what}{of} {ko}" + ("" if took is None else f", {took}초") + more,
        en=f"{entry.what}{of} {en}" + ("" if took is None else f" in {took} s") + more,
    )


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms"
