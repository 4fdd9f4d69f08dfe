"""Files of profiles: those that ship, and those that are none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bundler.build.toolwheel import write_tool_wheel
from bundler.errors import FormatError
from bundler.format.profiles import (
    MAX_BYTES,
    load_profiles,
    parse_profiles,
    profile_bytes,
    profiles_in,
    shipped_folder,
)

GOOD = """
profiles:
  - name: mine
    kind: field
    source: me
    conditions: a Tuesday
    fingerprint: {size: 30B, engine_version: 0.10}
    figures:
      - {metric: output_tokens_per_s, concurrency: 4, runs: [80, 90.5]}
"""


def test_every_shipped_profile_says_where_it_is_from_and_what_nobody_said() -> None:
    shipped = profiles_in(shipped_folder())
    names = {profile.name for profile in shipped}
    assert len(names) == len(shipped) >= 25
    for profile in shipped:
        assert profile.kind in ("field", "published")  # nothing was measured here
        assert profile.source
        assert profile.unknown, profile.name
        assert profile.compare_with is None or profile.compare_with in names


@pytest.mark.parametrize(
    ("name", "metric", "concurrency", "value"),
    [
        ("field-h200-30b-fp8-deepgemm", "output_tokens_per_s", None, 80),
        ("field-h200-30b-fp8-triton", "output_tokens_per_s", None, 150),
        ("field-h200-80b-fp8-deepgemm", "output_tokens_per_s", None, 40),
        ("field-h200-80b-fp8-triton", "output_tokens_per_s", None, 130),
        ("field-h200-235b-fp8-deepgemm", "output_tokens_per_s", None, 30),
        ("field-h200-235b-fp8-triton", "output_tokens_per_s", None, 60),
        ("field-h100x2-gpt-oss-120b", "ttft_ms_p99", 100, 333_000),
        ("field-h100x2-qwen3.5-35b-a3b", "ttft_ms_p99", 100, 81_000),
        ("field-um790pro", "output_tokens_per_s", None, 17.8),
    ],
)
def test_the_field_figures_ship(
    name: str, metric: str, concurrency: int | None, value: float
) -> None:
    [profile] = [one for one in profiles_in(shipped_folder()) if one.name == name]
    found = {(f.metric, f.concurrency): f.runs for f in profile.figures}
    assert found[(metric, concurrency)] == (value,)
    assert any(re.search("length", text) for text in profile.unknown)


def test_the_carried_tool_has_the_profiles(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(write_tool_wheel(tmp_path)) as wheel:
        names = [name for name in wheel.namelist() if name.endswith(".yaml")]
    folder = "bundler/manifests/profiles"
    assert sorted(names) == sorted(f"{folder}/{p.name}" for p in shipped_folder().glob("*.yaml"))


def test_what_is_read_is_what_was_written() -> None:
    profiles = parse_profiles(GOOD.encode(), "f")
    assert profiles[0].fingerprint.engine_version == "0.10"  # a text, not a number
    assert profiles[0].figures[0].runs == (80, 90.5)
    assert parse_profiles(profile_bytes(profiles), "again") == profiles


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no key `profiles`"),
        ("[1, 2]", "no key `profiles`"),
        ("profiles: []", "profiles: "),
        ("profiles: [", "not YAML"),
        ("a: &x 1\nb: *x", "alias"),
        ("a: 1\na: 2", "'a' is there twice"),
        ("{[a]: 1}", "a key is a word"),
        (GOOD.replace("field", "rumour"), "profiles.0.kind"),
        (GOOD.replace("80", "-1"), "profiles.0.figures.0.runs.0"),
        (GOOD.replace("80", ".nan"), "profiles.0.figures.0.runs.0"),
        (GOOD.replace("80", "inf"), "profiles.0.figures.0.runs.0"),
        (GOOD.replace("output_tokens_per_s", "speed"), "profiles.0.figures.0.metric"),
        (GOOD.replace("size", "colour"), "profiles.0.fingerprint.colour"),
        (GOOD.replace("a Tuesday", '"a\\e[31m"'), "profiles.0.conditions"),
        (GOOD + GOOD.partition("profiles:\n")[2], "two profiles are called mine"),
        ("\ud800", "not YAML"),
        (GOOD.replace("runs:", "low: 9, runs:"), "give `low` and `high`"),
        (GOOD.replace("runs:", "low: 9, high: 8, runs:"), "low 9 is over high 8"),
    ],
)
def test_what_is_no_profile_is_refused_in_one_line(text: str, told: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_profiles(text.encode(errors="surrogatepass"), "my.yaml")
    assert str(caught.value).startswith("my.yaml: ")
    assert told in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_deep_or_huge_file_ends_in_the_same_error() -> None:
    for data in (b"[" * 100_000, b"a: " + b"x" * MAX_BYTES):
        with pytest.raises(FormatError):
            parse_profiles(data, "f")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"no\.yaml: no such profile file"):
        load_profiles(tmp_path / "no.yaml")
    assert profiles_in(tmp_path / "nowhere") == ()
