"""Figures beside known ones: what fails, what only warns, what is not comparable at all."""

from __future__ import annotations

from typing import Any

import pytest

from bundler.accept.fingerprint import fingerprint_of, same
from bundler.accept.ranges import compare_level, level_value, nothing_known
from bundler.domain.profile import Fingerprint, Profile
from bundler.domain.running import Running
from bundler.domain.spec import Acceptance, Expected, Service, Settings
from bundler.domain.verdict import Verdict
from bundler.format.profiles import profiles_in, shipped_folder
from tests.unit.accept.known import H200, bundle, fingerprint, profile, run
from tests.unit.accept.levels import level, sample
from tests.unit.accept.test_acceptance_pipeline import state

LEVEL, _ = level(*[sample()] * 60)  # 32 tokens in 0.41 s: 78.05 tokens/s, TTFT 100 ms
RATE = "output_tokens_per_s"


def rate(*runs: float, **more: Any) -> dict[str, Any]:
    return {"metric": RATE, "concurrency": 1, "runs": runs, **more}


@pytest.mark.parametrize(
    ("known", "outcome", "verdict"),
    [(78, "within", Verdict.PASS), (110, "worse", Verdict.FAIL), (50, "better", Verdict.PASS)],
)
def test_only_the_bad_side_fails_and_what_is_too_good_warns(
    known: float, outcome: str, verdict: Verdict
) -> None:
    found = compare_level([profile(rate(known))], fingerprint(), LEVEL)
    assert [c.outcome for c in found.comparisons] == [outcome]
    assert [c.verdict for c in found.checks] == [verdict]
    assert [("a cache or another model?" in line) for line in found.warnings] == (
        [True] if outcome == "better" else []
    )


def test_times_are_better_when_they_are_low() -> None:
    def outcome(known: float) -> str:
        figure = {"metric": "ttft_ms_p50", "concurrency": 1, "runs": [known]}
        return compare_level([profile(figure)], fingerprint(), LEVEL).comparisons[0].outcome

    assert [outcome(known) for known in (60, 100, 200)] == ["worse", "within", "better"]


@pytest.mark.parametrize("kind", ["field", "published"])
def test_a_figure_without_its_conditions_fails_nobody(kind: str) -> None:
    known = profile(
        rate(500), kind=kind, unknown=("prompt length",), fingerprint=Fingerprint(size="30B")
    )
    found = compare_level([known], fingerprint(), LEVEL)
    assert found.checks == ()
    [warning] = found.warnings
    assert "slower than known" in warning
    assert "prompt length" in warning
    assert f"{kind} profile known" in warning


def test_a_field_figure_fails_nobody_even_with_all_its_conditions() -> None:
    assert compare_level([profile(rate(500), kind="field")], fingerprint(), LEVEL).checks == ()
    assert compare_level([profile(rate(500), kind="published")], fingerprint(), LEVEL).checks


@pytest.mark.parametrize(
    "other",
    [
        {"model": "Qwen3-32B"}, {"engine_version": "0.18.0"}, {"kernel": "deepgemm"},
        {"kv_dtype": "auto16"}, {"gpu": "NVIDIA H200 NVL"}, {"gpu": "NVIDIA H100 80GB HBM3"},
        {"gpu_count": 2}, {"input_tokens": 80}, {"output_tokens": 100}, {"digest": "e" * 64},
    ],
)  # fmt: skip
def test_a_profile_of_another_set_up_says_nothing(other: dict[str, Any]) -> None:
    found = compare_level([profile(rate(500))], fingerprint(**other), LEVEL)
    assert found.comparisons == ()
    assert "none of 1 profiles is of" in nothing_known([profile()], fingerprint(**other))


def test_lengths_within_a_tenth_and_other_words_for_the_same_are_the_same() -> None:
    known = fingerprint(model="Qwen/qwen3-30b-a3b-fp8", gpu="H200", kv_dtype="fp8", input_tokens=68)
    assert same(known, fingerprint()).fits
    assert not nothing_known([profile()], fingerprint())


@pytest.mark.parametrize(
    ("short", "full", "fits"),
    [
        ("H100", "NVIDIA H100 80GB HBM3", True),
        ("H100", "NVIDIA H100 PCIe", False),
        ("H100 PCIe", "NVIDIA H100 PCIe", True),
        ("RTX 3090", "NVIDIA GeForce RTX 3090 Ti", False),
        ("RTX PRO 6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", True),
        ("A100", "NVIDIA A100-SXM4-80GB", True),
    ],
)
def test_a_gpus_short_name_is_not_that_of_its_sisters(short: str, full: str, fits: bool) -> None:
    assert same(fingerprint(gpu=short), fingerprint(gpu=full)).fits is fits


def test_what_a_profile_or_a_run_leaves_open_is_a_caveat() -> None:
    open_profile = same(fingerprint(kv_dtype=None), fingerprint())
    assert (open_profile.unstated, open_profile.unknown) == (("kv dtype not stated",), ())
    silent_run = same(fingerprint(), fingerprint(kernel=None))
    assert (silent_run.unstated, silent_run.unknown) == ((), ("kernel of this run unknown",))
    found = compare_level([profile(rate(500))], fingerprint(kernel=None), LEVEL)
    assert found.checks == ()  # what is not known to be the same may not fail


def test_a_profile_that_names_neither_model_nor_size_is_of_nothing() -> None:
    assert not same(Fingerprint(gpu="H200"), fingerprint()).fits


def test_a_figure_is_of_its_concurrency_and_of_one_user_when_nobody_said() -> None:
    two = profile({"metric": RATE, "concurrency": 2, "runs": [78]})
    nobody = profile({"metric": RATE, "runs": [500]})
    assert compare_level([two], fingerprint(), LEVEL).comparisons == ()
    found = compare_level([nobody], fingerprint(), LEVEL)
    assert "users at once unknown, taken as one" in found.comparisons[0].caveats
    assert found.checks == ()


def test_no_p99_is_compared_with_too_few_requests() -> None:
    known = profile({"metric": "ttft_ms_p99", "concurrency": 1, "runs": [1]})
    assert compare_level([known], fingerprint(), LEVEL).comparisons == ()
    many, _ = level(*[sample()] * 299)
    assert compare_level([known], fingerprint(), many).comparisons
    with pytest.raises(ValueError, match="ttft_ms_p95"):  # nor can a plan expect one
        Expected.model_validate({"concurrency": 1, "metric": "ttft_ms_p99", "max": 1})


def test_a_users_own_rate_is_that_of_its_tokens() -> None:
    assert level_value(LEVEL, "output_tokens_per_s_per_user") == 100
    assert level_value(LEVEL, "kv_cache_gib") is None


@pytest.mark.parametrize(("kernel", "told"), [("triton", "triton"), (None, "unknown")])
def test_a_run_as_slow_as_the_slow_kernel_is_told_which_kernel_was_fast(
    kernel: str | None, told: str
) -> None:
    shipped = profiles_in(shipped_folder())
    found = compare_level(shipped, fingerprint(kernel=kernel), LEVEL)
    [story] = [line for line in found.warnings if "is near 80" in line]
    assert "kernel deepgemm gave in field profile field-h200-30b-fp8-deepgemm" in story
    assert "kernel triton gave 150 there" in story
    assert f"this run's kernel: {told} (airbundle kernels)" in story
    assert found.checks == ()
    fast, _ = level(*[sample(e2e_ms=213.0)] * 60)  # 150 tokens/s
    assert not compare_level(shipped, fingerprint(kernel=kernel), fast).warnings


def test_a_run_with_the_slow_kernel_itself_hears_of_the_fast_one() -> None:
    found = compare_level(
        profiles_in(shipped_folder()), fingerprint(kernel="deepgemm", digest=None), LEVEL
    )
    assert [c.outcome for c in found.comparisons] == ["within"]
    assert any("triton gave 150" in line for line in found.warnings)


def test_a_run_says_what_it_is_of() -> None:
    manifest = bundle(Acceptance(), kernel="triton", max_model_len=4096).manifest
    [service] = manifest.services
    silent = fingerprint_of(manifest, service, state("chat"), H200)
    assert (silent.model, silent.size, silent.kernel) == ("Qwen3-30B-A3B-FP8", "30B", "triton")
    assert (silent.gpu, silent.gpu_count, silent.processor) == ("NVIDIA H200", 1, None)
    assert (silent.context_tokens, silent.input_tokens, silent.kv_dtype) == (4096, 64, None)
    runs = state("chat").model_copy(
        update={"running": Running(moe=("deepgemm",), kv_dtype=("f16",))}
    )
    seen = fingerprint_of(manifest, service, runs, {"processor": "a Xeon"})
    assert (seen.kernel, seen.kv_dtype) == ("deepgemm", "f16")  # what runs, not what was asked for
    assert (seen.gpu, seen.gpu_count, seen.processor) == ("none", 0, "a Xeon")
    two = {**H200, "gpu 1": "NVIDIA L4, 23 GiB"}
    chosen = Service(name="chat", model="m", gpus=(1,), settings=Settings())
    assert fingerprint_of(manifest, chosen, state("chat"), two).gpu == "NVIDIA L4"


def test_an_acceptance_run_holds_its_figures_against_profiles() -> None:
    first = run(moe=("triton",))
    known = Profile.model_validate(
        profile(rate(500)).model_dump() | {"fingerprint": first.fingerprints["chat"]}
    )
    record = run(moe=("triton",), profiles=(known,))
    assert record.verdict is Verdict.FAIL
    [check] = [c for c in record.checks if c.verdict is Verdict.FAIL]
    assert check.what == "profile known: output_tokens_per_s >= 375"
    assert [c.outcome for c in record.comparisons] == ["worse"]


def test_a_level_in_doubt_fails_no_profile() -> None:
    from tests.unit.accept.fake_chat import Behaviour

    first = run()
    known = Profile.model_validate(
        profile(rate(500)).model_dump() | {"fingerprint": first.fingerprints["chat"]}
    )
    record = run(profiles=(known,), behaviour=Behaviour(output_tokens=7))
    assert record.verdict is Verdict.NOT_COMPARABLE
