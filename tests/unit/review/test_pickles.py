"""What a pickle would do is read from its opcodes; nothing of it is run."""

from __future__ import annotations

import collections
import io
import pickle
import struct

import pytest

from bundler.review.pickles import MAX_PICKLE, read_pickles
from tests.fakes.planted import Command, torch_archive


def read(data: bytes):
    return read_pickles(io.BytesIO(data), len(data))


@pytest.mark.parametrize("protocol", range(6))
def test_a_command_is_named_in_every_protocol(protocol: int) -> None:
    found = read(pickle.dumps([1, "a", Command()], protocol=protocol))
    assert found.dangerous in (("posix.system",), ("os.system",))


def test_inside_torchs_archive_and_behind_a_first_pickle() -> None:
    assert read(torch_archive(Command())).dangerous == ("posix.system",)
    assert read(pickle.dumps({"a": 1}) + pickle.dumps(Command())).dangerous == ("posix.system",)


def test_plain_data_and_tensors_are_nothing() -> None:
    assert read(pickle.dumps({"a": [1, 2.5, b"x"], "b": collections.OrderedDict(c=1)})) == read(
        b"N."
    )
    tensor = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(ctorch\nFloatStorage\ntR."
    assert read(tensor) == read(b"N.")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("builtins", "eval"), ("builtins", "getattr"), ("builtins", "dict.__init__"),
        ("torch._utils", "_rebuild_tensor_v2.__globals__"), ("subprocess", "Popen"),
        ("torch.hub", "load"), ("importlib.util", "module_from_spec"), ("ctypes", "CDLL"),
    ],
)  # fmt: skip
def test_ways_round(module: str, name: str) -> None:
    texts = b"".join(b"\x8c" + bytes([len(t)]) + t.encode() for t in (module, name))
    found = read(b"\x80\x04" + texts + b"\x93)R.")
    assert found.dangerous or found.others == (f"{module}.{name}",)
    if not name.startswith("_rebuild"):
        assert found.dangerous


def test_a_name_that_is_computed_is_an_alarm() -> None:
    assert read(b"\x80\x04\x8c\x02os)\x93.").dangerous


def test_other_classes_are_named() -> None:
    assert read(b"\x80\x02cmy_package\nThing\n)R.").others == ("my_package.Thing",)


def test_what_follows_a_break_is_not_passed_over() -> None:
    found = read(pickle.dumps(Command())[:-1] + b"\xff\xff")
    assert found.dangerous == ("posix.system",)
    assert found.fault


def test_a_pickle_that_is_too_long_is_said_to_be_unread() -> None:
    data = b"\x80\x03B" + struct.pack("<I", MAX_PICKLE) + bytes(MAX_PICKLE) + b"."
    assert "not read" in read(data).fault


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04", b"PK\x03\x04" + bytes(100), b"\x80\x04", b"(" * 999]
)
def test_broken_bytes_are_a_fault_or_nothing(data: bytes) -> None:
    found = read(data)
    assert not found.dangerous
    assert bool(found.fault) == bool(data)
