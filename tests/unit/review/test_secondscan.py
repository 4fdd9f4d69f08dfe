"""picklescan beside our own reading: named with its version, bounded, and never made up."""

from __future__ import annotations

import io
import pickle
import struct
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from bundler.domain.inventory import FileCheck
from bundler.review.pickles import read_pickles
from tests.fakes.planted import Command, PlantedBundle, torch_archive
from tests.unit.review.test_inventory import subject_of

pytest.importorskip("picklescan")
NAME = f"picklescan {version('picklescan')}"


def opinion(data: bytes):
    return read_pickles(io.BytesIO(data), len(data), second=True).second


def test_both_see_a_command_and_neither_sees_one_in_numbers() -> None:
    assert opinion(pickle.dumps(Command())).dangerous == ("posix.system",)
    assert opinion(torch_archive({"w": Command()})).dangerous == ("posix.system",)
    harmless = opinion(pickle.dumps({"a": [1, 2.5]}))
    assert (harmless.dangerous, harmless.suspicious, harmless.fault) == ((), (), "")


def test_what_was_not_read_is_not_passed() -> None:
    assert opinion(b"PK\x03\x04" + bytes(100)).fault
    assert opinion(b"\x80\x04").fault
    # Each STACK_GLOBAL would have it walk back over the memo.
    long = b"\x80\x04\x8c\x02os" + b"\x94" * 20_000 + (b"\x8c\x02os\x8c\x01x\x93" * 2_000) + b"."
    assert "too long for it" in opinion(long).fault
    strange = b"\x80\x02" + b"c\xff\n\xfe\n" + b"j" + struct.pack("<I", 9) + b"."
    assert opinion(strange) is not None


def checks(folder: Path) -> dict[tuple[str, str], FileCheck]:
    subject = subject_of(PlantedBundle(folder).build())
    [model] = subject.inventory.of("model")
    return {(one.where, one.by): one for one in model.checks}


def test_each_file_has_its_result(tmp_path: Path) -> None:
    found = checks(tmp_path)
    assert found["evil.bin", NAME].result == "found"
    assert "posix.system" in found["evil.bin", NAME].said
    assert found["plain.pkl", NAME].result == "passed"
    assert found["tokenizer_config.json", "airbundle"].result == "found"
    assert found["toy.gguf", "airbundle"].check == "GGUF header"
    assert found["toy.gguf: tokenizer.chat_template", "airbundle"].result == "passed"


def test_without_it_nothing_is_invented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bundler.review.modelcontents.scanner", lambda: "")
    monkeypatch.setitem(sys.modules, "picklescan", None)
    found = checks(tmp_path)
    assert found["evil.bin", "picklescan"].result == "not checked"
    assert not any(by == NAME for _, by in found)


@pytest.mark.parametrize(
    ("data", "result"),
    [
        (b"\x02\0\0\0\0\0\0\0{}", "passed"),
        (b"\xff" * 8 + b"{}", "found"),
        (b"", "found"),
    ],
)
def test_a_safetensors_header_is_read(tmp_path: Path, data: bytes, result: str) -> None:
    bundle = PlantedBundle(tmp_path)
    bundle.prepare()
    (bundle.folder / "model" / "weights.safetensors").write_bytes(data)
    bundle.build_only()
    [model] = subject_of(bundle).inventory.of("model")
    [check] = [one for one in model.checks if one.where == "weights.safetensors"]
    assert (check.check, check.result) == ("safetensors header", result)
    assert any(one.where == "weights.safetensors" for one in model.executes) == (result == "found")
