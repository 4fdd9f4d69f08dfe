"""Two settings compared: the order of runs, and how often the judgement is wrong."""

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.accept.ab import MARGIN, compare, conclude, order
from bundler.domain.ab import PAIRS, ArmRun

FIGURE = "chat@25 output_tokens_per_s"
WORDS = {"A": "kernel=deepgemm", "B": "kernel=triton"}
TRIALS = 2000


def runs(gap: float, noise: float, chance: random.Random, drift: float = 0.0) -> list[ArmRun]:
    """Each start has its own luck (log-normal); the machine may drift from run to run."""
    found = []
    for number, (arm, pair) in enumerate(order()):
        luck = chance.gauss(0, noise) + drift * number
        figure = 100 * (gap if arm == "B" else 1.0) * math.exp(luck)
        found.append(ArmRun(arm=arm, pair=pair, figures={FIGURE: figure}))
    return found


def wins(gap: float, noise: float, drift: float = 0.0) -> dict[str | None, float]:
    chance = random.Random(f"{gap}/{noise}/{drift}")
    found = [compare(runs(gap, noise, chance, drift))[0].wins for _ in range(TRIALS)]
    return {name: found.count(name) / TRIALS for name in ("A", "B", None)}


def test_the_order_counters_a_drift() -> None:
    arms = [arm for arm, _ in order()]
    assert arms == list("ABBAABBA")
    places = {name: sum(at for at, arm in enumerate(arms) if arm == name) for name in "AB"}
    assert places["A"] == places["B"]
    assert [pair for _, pair in order(3)] == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.05, 0.08, 0.12])
def test_what_is_identical_shows_no_difference(noise: float) -> None:
    assert wins(1.0, noise)[None] >= 0.95


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.07])
def test_a_gap_of_a_third_is_found(noise: float) -> None:
    assert wins(1.3, noise)["B"] >= 0.90
    assert wins(1 / 1.3, noise)["A"] >= 0.90


def test_a_machine_that_drifts_favours_neither() -> None:
    found = wins(1.0, 0.03, drift=0.02)
    assert found[None] >= 0.95
    assert wins(1.3, 0.03, drift=0.02)["B"] >= 0.90


def test_less_than_the_margin_is_no_reason_to_change() -> None:
    assert wins(1.03, 0.005)[None] == 1.0
    assert wins(1.2, 0.005)["B"] == 1.0


@given(
    st.lists(st.floats(50, 500), min_size=PAIRS, max_size=PAIRS),
    st.lists(st.floats(50, 500), min_size=PAIRS, max_size=PAIRS),
)
def test_naming_the_arms_the_other_way_round_turns_the_answer_round(
    one: list[float], other: list[float]
) -> None:
    def of(a: list[float], b: list[float], name: str) -> list[ArmRun]:
        return [
            ArmRun(arm=arm, pair=pair, figures={name: value})
            for arm, values in (("A", a), ("B", b))
            for pair, value in enumerate(values, 1)
        ]

    there, back = compare(of(one, other, FIGURE))[0], compare(of(other, one, FIGURE))[0]
    turned = {"A": "B", "B": "A", None: None}
    assert there.wins == turned[back.wins]
    assert there.ratio == pytest.approx(1 / back.ratio, rel=1e-2)
    lower = compare(of(one, other, "chat@25 ttft_ms_p50"))[0]
    assert lower.wins == turned[there.wins]
    bounds = (there.low, there.ratio, there.high)
    assert all(a <= b for a, b in pairwise(bounds))
    assert min(there.pairs) - 1e-3 <= there.bootstrap_low <= there.bootstrap_high
    assert there.bootstrap_high <= max(there.pairs) + 1e-3


def test_the_conclusion_names_what_to_keep() -> None:
    made = runs(1.9, 0.02, random.Random(1))
    keep, decided, said = conclude(made, compare(made), FIGURE, WORDS)
    assert (keep, decided) == ("B", True)
    assert said.startswith("keep kernel=triton: 1.9")
    same = runs(1.0, 0.02, random.Random(1))
    keep, decided, said = conclude(same, compare(same), FIGURE, WORDS)
    assert (keep, decided) == (None, True)
    assert f"no difference beyond {MARGIN:.0%}" in said


def test_an_arm_that_did_not_get_its_kernel_proves_nothing() -> None:
    made = runs(1.9, 0.02, random.Random(1))
    made[3] = made[3].model_copy(update={"void": "MoE kernel: asked triton, runs DEEPGEMM"})
    keep, decided, said = conclude(made, compare(made), FIGURE, WORDS)
    assert (keep, decided) == (None, False)
    assert "pair 2" in said
    assert "runs DEEPGEMM" in said


def test_half_a_pair_is_refused() -> None:
    made = runs(1.0, 0.02, random.Random(1))
    with pytest.raises(ValueError, match="whole pairs"):
        compare(made[:-1])
    with pytest.raises(ValueError, match="whole pairs"):
        compare(made[:2])
    with pytest.raises(ValueError, match="give 2 to"):
        list(order(1))
