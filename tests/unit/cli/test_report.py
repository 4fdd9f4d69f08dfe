"""`airbundle report`: the files, their signature, and an earlier run beside the last one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bundler.adapters.signer_ed25519 import generate
from bundler.cli.app import run
from bundler.cli.capacity import FILE
from bundler.cli.comparing import AB_RECORD
from bundler.domain.facts import AcceptanceRecord
from bundler.format.codec import to_bytes
from bundler.format.digests import sha256_file
from tests.fakes.acceptance import FINGERPRINT, acceptance, search, settings


def keep(root: Path, record: AcceptanceRecord, name: str) -> Path:
    """A run as `accept` leaves it; the newest of the root."""
    folder = root / "acceptance" / name
    folder.mkdir(parents=True)
    (folder / "record.json").write_bytes(to_bytes(record))
    (folder.parent / "last").write_text(name)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    keep(tmp_path / "root", acceptance(levels=(1, 10), slo_ms=5000), "2026-01-01T000000Z")
    return tmp_path / "root"


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    generate(tmp_path / "k.key.pem", tmp_path / "k.pub.pem")
    return tmp_path / "k.key.pem", tmp_path / "k.pub.pem"


def report(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["report", *map(str, words), "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_searches_and_comparisons_of_the_same_bundle_are_in_the_page(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, name, found in (
        ("2026-01-02T000000Z-find-max", FILE, search()),
        ("2026-01-02T000000Z-ab", AB_RECORD, settings()),
        ("2026-01-03T000000Z-ab", AB_RECORD, settings().model_copy(update={"manifest_sha256": "b" * 64, "said": "!!"})),
    ):  # fmt: skip
        (root / "acceptance" / folder).mkdir()
        (root / "acceptance" / folder / name).write_bytes(to_bytes(found))
    broken = root / "acceptance" / "2026-01-04T000000Z-find-max"
    broken.mkdir()
    (broken / FILE).write_text("{")
    (root / "acceptance" / "2026-01-05T000000Z-ab" / AB_RECORD).mkdir(parents=True)
    assert run(["report", "--root", str(root)]) == 0
    assert capsys.readouterr().out.count("left out:") == 2
    page = (root / "acceptance" / "2026-01-01T000000Z" / "report.html").read_text("utf-8")
    assert "passes up to 22 in flight" in page
    assert "kernel=triton" in page
    assert "!!" not in page


def test_a_signed_report_is_checked_by_airbundle_and_by_openssl(
    root: Path, keys: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, public = keys
    out = tmp_path / "out"
    found = report(capsys, "--root", root, "--out", out, "--sign", key)
    assert str(out / "report.json.sig") in found["files"]
    assert len((out / "report.json.sig").read_bytes()) == 64
    # A receipt names the record by its SHA-256: it is the report's too.
    record = root / "acceptance" / "2026-01-01T000000Z" / "record.json"
    assert sha256_file(out / "report.json") == sha256_file(record)
    told = report(capsys, "--verify", out / "report.json", "--key", public)
    assert (told["ok"], told["verdict"], told["key_id"]) == (True, found["verdict"], found["key_id"])  # fmt: skip
    if shutil.which("openssl"):
        words = ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", public,
                 "-sigfile", "report.json.sig", "-in", "report.json"]  # fmt: skip
        subprocess.run(words, cwd=out, check=True, capture_output=True)


def test_a_changed_or_foreign_report_is_refused(
    root: Path, keys: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, public = keys
    report(capsys, "--root", root, "--out", tmp_path, "--sign", key)
    generate(tmp_path / "o.key.pem", tmp_path / "o.pub.pem")
    file = tmp_path / "report.json"
    assert run(["report", "--verify", str(file), "--key", str(tmp_path / "o.pub.pem")]) == 8
    file.write_bytes(file.read_bytes().replace(b'"verdict": "PASS"', b'"verdict": "FAIL"', 1))
    assert run(["report", "--verify", str(file), "--key", str(public)]) == 8
    (tmp_path / "report.json.sig").unlink()
    assert run(["report", "--verify", str(file), "--key", str(public)]) == 17
    assert run(["report", "--verify", str(file)]) == 2
    assert "belong together" in capsys.readouterr().err


def test_a_report_of_another_run_does_not_keep_the_signature(
    root: Path, keys: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    report(capsys, "--root", root, "--out", out, "--sign", keys[0])
    report(capsys, "--root", root, "--out", out)
    assert (out / "report.json.sig").is_file()
    keep(
        root,
        acceptance(levels=(1, 10), slow=2).model_copy(update={"began": "later"}),
        "2026-02-01T000000Z",
    )
    kept = (out / "report.json.sig").read_bytes()
    told = report(capsys, "--root", root, "--out", out, "--dry-run")
    assert ("remove", str(out / "report.json.sig")) in [(one["act"], one["what"]) for one in told["changes"]]  # fmt: skip
    assert (out / "report.json.sig").read_bytes() == kept
    report(capsys, "--root", root, "--out", out)
    assert not (out / "report.json.sig").exists()


@pytest.mark.parametrize("last", [b"\xff\xfe", b"x" * 5000, b"a\0b", b"../..", b""])
def test_what_the_last_run_is_called_may_be_damaged(
    root: Path, last: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "acceptance" / "last").write_bytes(last)
    assert report(capsys, "--root", root)["files"]


def later(root: Path, **changes: Any) -> None:
    record = acceptance(**({"levels": (1, 10), "slo_ms": 5000} | changes))
    keep(root, record.model_copy(update={"began": "2026-02-01T00:00:00Z"}), "2026-02-01T000000Z")


def pages(root: Path) -> tuple[str, str]:
    folder = root / "acceptance" / "2026-02-01T000000Z"
    return (folder / "compare.html").read_text("utf-8"), (folder / "compare.md").read_text("utf-8")


def test_a_run_that_is_slower_than_the_earlier_one_is_called_worse(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later(root, slow=2.0)
    found = report(capsys, "--root", root, "--compare", "2026-01-01T000000Z")
    assert found["compared"] == "worse"
    page, text = pages(root)
    assert "B is worse" in page
    assert page.index("무엇이 다른가") < page.index("ttft_ms_p50")
    assert re.search(r"\| 1 \| ttft\\_ms\\_p50 \| .* \| 2\.00 \| worse \|", text)


def test_runs_of_two_set_ups_are_not_comparable_and_the_page_says_in_what(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later(root, fingerprint=FINGERPRINT.model_copy(update={"kernel": "deepgemm"}))
    earlier = root / "acceptance" / "2026-01-01T000000Z" / "record.json"
    found = report(capsys, "--root", root, "--compare", earlier)
    assert found["compared"] == "not comparable"
    for text in pages(root):
        assert "NOT COMPARABLE" in text
        assert "deepgemm" in text
        assert "worse" not in text.split("Glossary")[0].replace("B is worse", "")


def test_a_level_whose_gate_failed_is_not_judged_and_the_others_are(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later(root, slow=2.0, flaw="prefix cache")
    report(capsys, "--root", root, "--compare", "2026-01-01T000000Z")
    _, text = pages(root)
    outcomes = dict(
        re.findall(r"\| (\d+) \| ttft\\_ms\\_p50 \| .* \| \d\.\d\d \| ([a-z ]+) \|", text)
    )
    assert outcomes == {"1": "worse", "10": "not judged"}


def test_a_run_is_not_compared_with_itself_or_with_nothing(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for other in ("2026-01-01T000000Z", "nowhere"):
        assert run(["report", "--root", str(root), "--compare", other]) == 17
    assert "no such run" in capsys.readouterr().err


def test_a_level_of_no_users_is_no_figure(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = json.loads((root / "acceptance" / "2026-01-01T000000Z" / "record.json").read_text())
    changed["began"] = "2025-01-01T00:00:00Z"
    changed["levels"][0]["concurrency"] = 0
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    said = report(capsys, "--root", root, "--compare", tmp_path / "changed.json", code=9)
    assert "the run of 2025-01-01T00:00:00Z: output_tokens_per_s" in said["error"]
    assert "at 0 users is no figure" in said["error"]


def test_no_word_of_a_record_is_markup_in_the_page(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root / "acceptance" / "2026-01-01T000000Z"
    record = json.loads((folder / "record.json").read_text())
    record["comparisons"][0]["kind"] = "<script>x"
    (folder / "record.json").write_text(json.dumps(record))
    report(capsys, "--root", root)
    assert "<script>x" not in (folder / "report.html").read_text("utf-8")


def test_a_release_in_use_that_is_a_link_to_itself_is_none(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "current").symlink_to("current")
    said = report(capsys, "--root", root, "--questions", code=17)
    assert "no release is installed" in said["error"]
