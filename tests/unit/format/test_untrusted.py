"""What strangers wrote is bounded, and harmless on a terminal."""

from __future__ import annotations

import pytest

from bundler.format.globs import wanted
from bundler.format.untrusted import NotAnObject, parse_object, shown


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is not JSON"),
        (b"[]", "is no JSON object"),
        (b"\xff\xfe{}", "is not JSON"),
        (b'{"a": ' * 100_000, "is not JSON"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "is not JSON"),
        (b'{"a": [1,2,3,4,5,6,7,8,9,10]}', "more than 10 values"),
        (b'{"b": {"\\u001b": 1, "\\u001b": 2}}', "names \N{REPLACEMENT CHARACTER} twice"),
    ],
)
def test_what_is_no_object_is_named(data: bytes, words: str) -> None:
    with pytest.raises(NotAnObject, match=words):
        parse_object(data, values=10 if b"10]" in data else 1_000_000, unique=True)


def test_the_last_of_two_keys_counts_where_the_engine_takes_it_too() -> None:
    assert parse_object(b'{"a": 1, "a": 2}', values=9) == {"a": 2}


def test_a_shown_text_is_one_short_printable_line() -> None:
    assert shown("model.safetensors") == "model.safetensors"
    assert (
        shown("a\x1b[2J\n\ud800")
        == "a\N{REPLACEMENT CHARACTER}[2J" + "\N{REPLACEMENT CHARACTER}" * 2
    )
    assert shown("x" * 500, 10) == "x" * 10 + "..."


@pytest.mark.parametrize(
    ("path", "include", "exclude", "answer"),
    [
        ("a/b.json", (), (), True),
        ("a/b.json", ("*.json",), (), True),
        ("a/b.json", ("*.bin",), (), False),
        ("a/b.json", (), ("a/",), False),
        ("a/b.json", ("a\\*",), (), True),
        ("ab.json", (), ("a/",), True),
    ],
)
def test_filters(
    path: str, include: tuple[str, ...], exclude: tuple[str, ...], answer: bool
) -> None:
    assert wanted(path, include, exclude) is answer
