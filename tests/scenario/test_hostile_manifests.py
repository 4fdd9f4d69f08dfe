"""Signed manifests bent at random: refused in one kind of error, or read as what they say. In bounded time."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundler import wiring
from bundler.errors import FormatError
from bundler.format import layout
from bundler.format.codec import parse_manifest
from bundler.format.spans import placed_parts, volume_spans
from tests.fakes.small_bundle import SmallBundle

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=20),
    st.sampled_from(["", "../x", "con", "a/" * 600, "\x00", "\u202e", "e\u0301", "0" * 64, [], {}, [[]]]),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)  # fmt: skip


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    small = SmallBundle(tmp_path_factory.mktemp("hostile") / "made", parity=1).build()
    found: dict[str, Any] = json.loads((small.out / layout.MANIFEST).read_bytes())
    return found


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key
        if isinstance(inner, (dict, list)):
            yield from places(inner)


def canonical(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2)
    return (text + "\n").encode("utf-8", "surrogatepass")


def refusal(data: bytes) -> str:
    """What every command does with a manifest once its signature is right; why it refuses it."""
    try:
        found = parse_manifest(data)
        parts = placed_parts(found)
        for volume in found.volumes:
            volume_spans(volume, parts[volume.name], wiring.volume_format(), found.block_size)
    except FormatError as error:
        return str(error)
    return ""


def check(data: bytes) -> None:
    said = refusal(data)
    assert len(said) < 2000
    assert "\n" not in said


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(choices=st.lists(st.tuples(st.integers(0, 10**6), ODD, st.sampled_from("sdca")), max_size=4))
def test_bent_values(manifest: dict[str, Any], choices: list[tuple[int, Any, str]]) -> None:
    bent = copy.deepcopy(manifest)
    for number, odd, what in choices:
        every = list(places(bent))
        container, key = every[number % len(every)]
        if what == "s":
            container[key] = copy.deepcopy(odd)  # never in itself, nor in the next example
        elif what == "d":
            del container[key]
        elif what == "c":
            other, name = every[(number * 7) % len(every)]
            container[key] = copy.deepcopy(other[name])
        elif isinstance(container, dict):
            container["unknown"] = copy.deepcopy(odd)
        else:
            container.append(copy.deepcopy(odd))
    check(canonical(bent))


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    edits=st.lists(st.tuples(st.integers(0, 10**6), st.binary(max_size=3)), max_size=5),
    cut=st.one_of(st.none(), st.integers(0, 10**5)),
)
def test_bent_bytes(
    manifest: dict[str, Any], edits: list[tuple[int, bytes]], cut: int | None
) -> None:
    data = bytearray(canonical(manifest))
    for at, new in edits:
        start = at % len(data)
        data[start : start + 1] = new
    check(bytes(data[:cut]))


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"{}\n", b"\xff{}", b"{" * 100_000, b'{"a":' * 50_000 + b"1",
        b'{"format_version": 1' + b"0" * 5000 + b"}", b'{"format_version": 1e400}',
        b'{"format_version": 1, "format_version": 2}', b'{"format_version": true}',
        b'{"format_version": 1, "entries": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=range(12),
)  # fmt: skip
def test_what_is_no_manifest(data: bytes) -> None:
    with pytest.raises(FormatError):
        parse_manifest(data)


def test_a_manifest_over_the_limit_is_not_read(tmp_path: Path) -> None:
    small = SmallBundle(tmp_path / "made").build()
    path = small.out / layout.MANIFEST
    with path.open("r+b") as file:
        file.truncate(layout.MAX_MANIFEST_BYTES + 1)
    from bundler.cli.app import run

    words = ["--key", str(small.public), "--quiet"]
    assert run(["verify", str(small.out), *words]) == 9
    assert run(["inspect", str(small.out)]) == 9
