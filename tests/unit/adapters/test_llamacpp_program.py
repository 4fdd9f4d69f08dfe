"""What llama-server's own texts say of its flags; the real program's are in tests/journey."""

from __future__ import annotations

import io
import zipfile

import pytest

from bundler.adapters.engine_llamacpp.adapter import LlamaCppEngine
from bundler.adapters.engine_llamacpp.program import knows, read_flags
from bundler.domain.engine_facts import EngineFacts
from bundler.domain.spec import Service, Settings
from bundler.domain.target import Target
from bundler.ports import Situation

LEVELS = b" - 0: generic output\n - 1: error\n - 3: info\n - 4: trace (more info)\n - 5: debug\n\0"
TEXTS = (
    b"\0--ctx-size\0--cache-type-k\0--n-gpu-layers\0--verbosity\0--spec-draft-ngl\0--n-cpu-moe\0"
    b"please use --fit\0x--no-flag\0"
)


def flags_of(
    data: bytes, name: str = "pkg/bin/libllama-common.so.0.1.0"
) -> dict[str, tuple[str, ...]]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as wheel:
        wheel.writestr("pkg/bin/other.so", TEXTS + LEVELS)
        wheel.writestr(name, b"ELF" + data)
        wheel.writestr("pkg/bin/libllama-common.so", b"ELF" + data)
    with zipfile.ZipFile(packed) as wheel:
        return read_flags(wheel)


def test_levels_are_those_that_the_program_explains() -> None:
    assert flags_of(TEXTS + LEVELS)["--verbosity"] == ("0", "1", "3", "4", "5")
    assert flags_of(TEXTS + b"Set the verbosity threshold")["--verbosity"] == ()
    assert flags_of(LEVELS) == {}  # another program


def test_metrics_are_switched_on_where_the_program_has_them() -> None:
    flags = flags_of(TEXTS + LEVELS + b"\0--metrics\0")
    assert review(flags=flags)[1] == ("--verbosity", "4", "--metrics")
    assert "--metrics" not in review(flags=flags_of(TEXTS + LEVELS))[1]
    assert review("--metrics", flags=flags)[1] == ("--verbosity", "4")


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("--ctx-size", True),
        ("--ctx_size", True),
        ("-ngl", True),  # the end of another text
        ("--fit", True),  # in a sentence
        ("--n-cpu-moe", True),
        ("--cpu-moe-layers", False),
        ("--no-flag", False),
    ],
)
def test_a_flag_is_known_by_the_programs_texts(word: str, known: bool) -> None:
    assert knows(flags_of(TEXTS), word) is known


def review(*args: str, flags: dict[str, tuple[str, ...]]) -> tuple[list[str], tuple[str, ...]]:
    service = Service(name="m", model="m", settings=Settings(args=args))
    facts = EngineFacts(engine="llama.cpp", version="1", flags=flags)
    target = Target(python="3.12", glibc="2.28")
    advice = LlamaCppEngine().review(Situation(service, "1", target, {}, facts, None))
    return [f"{one.code}: {one.what}" for one in advice.findings], advice.args


def test_a_misspelt_flag_is_found_before_the_trip() -> None:
    found, args = review("--n-cpu-mo", "4", "-ngl", "-1", flags=flags_of(TEXTS + LEVELS))
    assert found == [
        "flag-unknown: settings.args --n-cpu-mo: llama.cpp 1 does not know it; the nearest is --n-cpu-moe"
    ]
    assert args == ("--verbosity", "4")


def test_a_value_behind_an_equals_sign_is_refused_as_the_program_does() -> None:
    [found], _ = review("--n-cpu-moe=4", flags=flags_of(TEXTS))
    assert "as two words" in found


@pytest.mark.parametrize("given", [("-lv", "3"), ("--verbose",), ("--log-disable",)])
def test_a_verbosity_of_the_spec_stays(given: tuple[str, ...]) -> None:
    assert (
        review(
            *given,
            flags={**flags_of(TEXTS + LEVELS), "-lv": (), "--verbose": (), "--log-disable": ()},
        )[1]
        == ()
    )


def test_of_a_program_that_says_nothing_every_flag_may_be_right() -> None:
    assert review("--anything", flags={}) == ([], ())
