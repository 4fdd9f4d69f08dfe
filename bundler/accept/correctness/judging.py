"""Probes' outcomes to checks and warnings. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bundler.domain.correctness import CorrectnessResult, Outcome
from bundler.domain.verdict import Check, Verdict

NAMES = {
    "golden": "golden answers",
    "nll": "likelihood of fixed texts",
    "garbage": "answers are text",
    "needle": "needle in a long context",
    "tools": "tool call",
    "json": "JSON schema",
    "korean": "Korean answer",
}
NO_RECORD = "no golden record of this model here: the answers under load are compared with these"
ALONE = "no golden record of this model here, and one request at a time: nothing to compare with"
_PHASES = {"idle": "idle", "load": "under load"}
_VERDICTS = {
    Outcome.RIGHT: Verdict.PASS,
    Outcome.WRONG: Verdict.FAIL,
    Outcome.NOT_OFFERED: Verdict.INCONCLUSIVE,
    Outcome.UNKNOWN: Verdict.INCONCLUSIVE,
}


def judge_correctness(
    results: Sequence[CorrectnessResult],
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """A check for each probe that decides; a warning for what is only shown and not as it should be."""
    checks = tuple(_check(one) for one in results if one.judged)
    shown = [one for one in results if not one.judged and one.reason != NO_RECORD]
    warnings = [_warning(one) for one in shown if one.outcome is not Outcome.RIGHT]
    warnings += [
        f"{one.service}: {NAMES[one.probe]}: {one.measured}: {one.reason}"
        for one in results
        if one.judged and one.probe == "nll" and one.phase == "idle"
        and one.outcome is Outcome.RIGHT and one.reason
    ]  # fmt: skip
    return checks, tuple(dict.fromkeys(warnings))


def _check(one: CorrectnessResult) -> Check:
    reason = one.reason
    if one.outcome is Outcome.NOT_OFFERED:
        reason = f"not offered by this engine: {reason}"
    return Check(
        service=one.service,
        concurrency=one.in_flight,
        what=f"{NAMES[one.probe]}, {_PHASES[one.phase]}",
        verdict=_VERDICTS[one.outcome],
        measured=one.measured or "-",
        reason=reason,
    )


def _warning(one: CorrectnessResult) -> str:
    where = f"{one.service}: {NAMES[one.probe]}"
    if one.outcome is Outcome.NOT_OFFERED:
        return f"{where}: not offered by this engine: {one.reason}"
    if one.outcome is Outcome.WRONG:
        return (
            f"{where}, {_PHASES[one.phase]}: {one.measured}; {one.reason}"
            f" (acceptance.correctness does not name {one.probe}, so it is not judged)"
        )
    return f"{where}: {one.reason}"
