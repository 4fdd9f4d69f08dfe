"""Two settings, which one is better? Restarted engines are the unit: requests of one start share its luck.

Runs are in the order A B B A A B B A, so that a drift of the machine (heat, clocks, neighbours) counts for both alike, and
are judged in pairs that follow each other. The ratio of a pair is taken as a logarithm, and the pairs' mean by Student's
t (Student, "The probable error of a mean", Biometrika 6, 1908), which stays honest with four of them; a bootstrap of four
is too narrow (B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13) and is only shown.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from bundler.accept.statistics import quantile
from bundler.domain.ab import PAIRS, ABRecord, ArmName, ArmRun, Comparison
from bundler.domain.facts import AcceptanceRecord, LevelMetrics
from bundler.domain.verdict import Verdict

# Below this a difference is not worth a change: identical pairs differ by as much on a quiet machine.
MARGIN = 0.10
LEAST_PAIRS = 2
PRIMARY = "output_tokens_per_s"
ALL = "all"
_HIGHER = (PRIMARY,)
# Two-sided 95 % points of Student's t for 1, 2, ... degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179,
        2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093)  # fmt: skip
_MOST_COMBINATIONS = 5**5
_DRAWS = 4000


def order(pairs: int = PAIRS) -> Iterator[tuple[ArmName, int]]:
    """Arm and pair of each run: A B, B A, A B, B A ...

    Raises:
        ValueError: fewer than two pairs prove nothing, more than twenty are not foreseen.
    """
    if not LEAST_PAIRS <= pairs <= len(_T95) + 1:
        raise ValueError(f"{pairs} pairs: give {LEAST_PAIRS} to {len(_T95) + 1}")
    for pair in range(1, pairs + 1):
        both: tuple[ArmName, ArmName] = ("A", "B") if pair % 2 else ("B", "A")
        for arm in both:
            yield arm, pair


def compare(runs: Sequence[ArmRun], margin: float = MARGIN) -> tuple[Comparison, ...]:
    """Every figure that all runs have, B against A.

    An arm wins when every pair points its way, the interval of the mean excludes "equal", and the mean
    lies beyond the margin.

    Raises:
        ValueError: a pair is not whole, or there are fewer than two.
    """
    pairs = _pairs(runs)
    names = set.intersection(*(set(run.figures) for run in runs))
    return tuple(_compare(name, pairs, margin) for name in sorted(names) if _usable(name, runs))


def _pairs(runs: Sequence[ArmRun]) -> list[tuple[ArmRun, ArmRun]]:
    found: dict[int, dict[str, ArmRun]] = {}
    for run in runs:
        found.setdefault(run.pair, {})[run.arm] = run
    if len(found) < LEAST_PAIRS or any(len(pair) != 2 for pair in found.values()):
        raise ValueError(f"{len(runs)} runs are no {LEAST_PAIRS} whole pairs")
    return [(pair["A"], pair["B"]) for _, pair in sorted(found.items())]


def _usable(name: str, runs: Sequence[ArmRun]) -> bool:
    return all(run.figures[name] > 0 for run in runs)


def _compare(name: str, pairs: Sequence[tuple[ArmRun, ArmRun]], margin: float) -> Comparison:
    logs = [math.log(b.figures[name] / a.figures[name]) for a, b in pairs]
    mean = math.fsum(logs) / len(logs)
    half = _half_width(logs, mean)
    better: Literal["higher", "lower"] = "higher" if name.rpartition(" ")[2] in _HIGHER else "lower"
    wins = _winner(logs, mean, half, better, math.log1p(margin))
    low, high = _bootstrap(logs)
    ratio = math.exp(mean)
    return Comparison(
        figure=name,
        better=better,
        ratio=round(ratio, 4),
        low=round(math.exp(mean - half), 4),
        high=round(math.exp(mean + half), 4),
        bootstrap_low=round(math.exp(low), 4),
        bootstrap_high=round(math.exp(high), 4),
        pairs=tuple(round(math.exp(log), 4) for log in logs),
        wins=wins,
        said=_words(name, ratio, math.exp(mean - half), math.exp(mean + half), wins, margin),
    )


def _half_width(logs: Sequence[float], mean: float) -> float:
    count = len(logs)
    spread = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (count - 1))
    return _T95[count - 2] * spread / math.sqrt(count)


def _winner(
    logs: Sequence[float], mean: float, half: float, better: str, margin: float
) -> ArmName | None:
    agree = all(log > 0 for log in logs) or all(log < 0 for log in logs)
    if not agree or abs(mean) <= half or abs(mean) < margin:
        return None
    return "B" if (mean > 0) == (better == "higher") else "A"


def _bootstrap(logs: Sequence[float]) -> tuple[float, float]:
    """2.5 % and 97.5 % of the mean of resampled pairs: all resamples when few, else the same random ones always."""
    count = len(logs)
    if count**count <= _MOST_COMBINATIONS:
        means = [math.fsum(draw) / count for draw in itertools.product(logs, repeat=count)]
    else:
        chance = random.Random(count)  # noqa: S311 - no secret
        means = [math.fsum(chance.choices(logs, k=count)) / count for _ in range(_DRAWS)]
    return quantile(means, 0.025) or 0.0, quantile(means, 0.975) or 0.0


def _words(
    name: str, ratio: float, low: float, high: float, wins: ArmName | None, margin: float
) -> str:
    interval = f"{ratio:.2f}x (95 %: {low:.2f} to {high:.2f})"
    if wins is None:
        return f"{name}: no difference beyond {margin:.0%}; B over A {interval}"
    return f"{name}: {wins} is better; B over A {interval}"


def conclude(
    runs: Sequence[ArmRun],
    comparisons: Sequence[Comparison],
    primary: str,
    words: Mapping[str, str],
) -> tuple[ArmName | None, bool, str]:
    """The arm to keep, whether that is decided, and why.

    Args:
        runs: all of them; a void one leaves all undecided.
        comparisons: of their figures.
        primary: the figure that decides.
        words: what each arm is, for people.
    """
    void = next((run for run in runs if run.void), None)
    if void is not None:
        return None, False, f"undecided: {words[void.arm]} (pair {void.pair}): {void.void}"
    found = next((one for one in comparisons if one.figure == primary), None)
    if found is None:
        return None, False, f"undecided: not every run has the figure {primary}"
    wrong = {run.arm: run.wrong for run in runs if run.wrong}
    if len(wrong) == 1:
        [(bad, what)] = wrong.items()
        other: ArmName = "B" if bad == "A" else "A"
        return (
            other,
            True,
            f"keep {words[other]}: {words[bad]} answers wrong ({what}). {found.said}",
        )
    if wrong:
        return None, False, f"undecided: both answer wrong ({next(iter(wrong.values()))})"
    if found.wins is None:
        return None, True, f"no difference: keep what you have. {found.said}"
    factor = found.ratio if found.ratio >= 1 else 1 / found.ratio
    return found.wins, True, f"keep {words[found.wins]}: {factor:.2f}x in {primary}. {found.said}"


def concluded(record: ABRecord) -> ABRecord:
    """The record with what its runs say, so that what is written in one need not be believed.

    Raises:
        ValueError: its runs are no pairs.
    """
    whole = len(record.runs) == 2 * record.pairs and not any(run.void for run in record.runs)
    comparisons = compare(record.runs, record.margin) if whole else ()
    words: dict[str, str] = {arm.name: arm.words for arm in record.arms}
    keep, decided, said = conclude(record.runs, comparisons, record.primary, words)
    return record.model_copy(
        update={"comparisons": comparisons, "keep": keep, "decided": decided, "said": said}
    )


def why_not(record: ABRecord) -> tuple[str, Verdict | None]:
    """Why a comparison gives nothing to put in use, and the verdict that stands in the way; empty when it does.

    Stricter than which arm to keep: with a wrong answer on either side something is broken, and
    figures of a run that is not comparable stand for nothing.
    """
    if record.keep is None:
        return record.said, None
    wrong = next((run for run in record.runs if run.wrong), None)
    if wrong is not None:
        return f"an arm answers wrong ({wrong.arm}: {wrong.wrong})", None
    for verdict in (Verdict.NOT_COMPARABLE, Verdict.FAIL):
        bad = [
            run
            for run in record.runs
            if run.verdict is verdict and (verdict is not Verdict.FAIL or run.arm == record.keep)
        ]
        if bad:
            of = f"{bad[0].arm}, pair {bad[0].pair}"
            return f"{verdict.value} in {len(bad)} of {len(record.runs)} runs, first {of}", verdict
    return "", None


def figures_of(record: AcceptanceRecord) -> dict[str, float]:
    """What a run is compared by: each service's figures at each level, and those of all services together.

    Services are measured one after another. `all` adds up their output rates, and takes the worst latency.
    """
    levels: dict[int, list[LevelMetrics]] = {}
    for level in record.levels:
        levels.setdefault(level.concurrency, []).append(level)
    found: dict[str, float] = {}
    for users, several in levels.items():
        found |= level_figures(users, several)
    return found


def level_figures(users: int, levels: Sequence[LevelMetrics]) -> dict[str, float]:
    """Each service's figures at its own number of users, and `all` at so many in sum."""
    found: dict[str, float] = {}
    for level in levels:
        for name, value in _figures(level).items():
            found[f"{level.service}@{level.concurrency} {name}"] = value
    each = [_figures(level) for level in levels]
    for name in set.intersection(*(set(one) for one in each)) if each else ():
        values = [one[name] for one in each]
        found[f"{ALL}@{users} {name}"] = sum(values) if name == PRIMARY else max(values)
    return found


def _figures(level: LevelMetrics) -> dict[str, float]:
    named = {
        PRIMARY: level.output_tokens_per_s,
        "ttft_ms_p50": level.ttft.p50,
        "ttft_ms_p95": level.ttft.p95,
        "tpot_ms_p50": level.tpot.p50,
    }
    return {name: value for name, value in named.items() if value is not None}
